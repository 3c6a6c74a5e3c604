/* A stand-in for PyTorch: libc10.so and libtorch_cpu.so with the names and layouts that gputally
 * relies on, of our own making, so that its tests need no PyTorch. SIM_VERSION 213 or 113 says
 * which one's shape it has; SIM_LACKS leaves out what gputally can't do without. The program drives
 * it with the sim_ functions. */
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#ifndef SIM_VERSION
#define SIM_VERSION 213
#endif
#define SIM_SIZES_AT (SIM_VERSION == 113 ? 0x48 : 0x38)

namespace c10
{
struct Device {
    int8_t type, index;
};

struct TensorImpl {
    virtual ~TensorImpl();
    char head[SIM_SIZES_AT - 8];
    uint64_t dims = 1;
    int64_t sizes[5] = {0};
    int64_t strides[5] = {1};
    char rest[22];
    uint8_t policy = 0; /* 1 << 2: strides, 2 << 2: sizes are told by a function; 1 << 4: symbols */
};
struct UndefinedTensorImpl : TensorImpl {
    UndefinedTensorImpl();
    static UndefinedTensorImpl _singleton;
};
struct NestedTensorImpl : TensorImpl {
    NestedTensorImpl();
};

/* Counts itself, so that a test sees one that was lost or freed twice. */
struct IValue {
    IValue();
    IValue(const IValue &other);
    ~IValue();
    union {
        TensorImpl *tensor;
        int64_t number;
    };
    uint32_t tag; /* 1: tensor */
};

bool memoryProfilingEnabled();
#if SIM_VERSION == 113
void reportMemoryUsageToProfiler(void *block, int64_t bytes, int64_t allocated, int64_t reserved,
                                 Device device);
#else
void reportMemoryUsageToProfiler(void *block, int64_t bytes, size_t allocated, size_t reserved,
                                 Device device);
#endif
} // namespace c10

namespace at
{
/* With SIM_HIDES the number lies nowhere; with SIM_TWINS the thread's lies there twice. */
struct RecordFunction {
    const char *name() const;
    const char *overload_name() const;
    static uint64_t currentThreadId();
    char head[200];
    int64_t sequence = -1; /* of the node that it makes, or is of */
    const c10::IValue *inputs;
    size_t input_count;
    const char *text, *overload;
    char middle[SIM_VERSION == 113 ? 8 : 64];
    uint64_t forward_thread = 0;
    uint64_t handle = 0, twin = 0;
    int64_t debug_handle = -1;
    char behind[256];
};
struct ObserverContext {
    virtual ~ObserverContext() = default;
};
struct RecordFunctionCallback {
    std::unique_ptr<ObserverContext> (*start)(const RecordFunction &);
    void (*end)(const RecordFunction &, ObserverContext *);
    double sampling_probability;
    bool scopes[10];
    bool needs_inputs, needs_outputs, needs_ids;
};
uint64_t addGlobalCallback(RecordFunctionCallback callback);
bool hasGlobalCallbacks();
enum class RecordScope : uint8_t {};
namespace sequence_number
{
uint64_t peek();
uint64_t get_and_increment();
} // namespace sequence_number
} // namespace at

namespace torch::profiler::impl
{
struct ProfilerConfig;
enum class ActivityType {};
std::vector<std::vector<int64_t>> inputSizes(const at::RecordFunction &rf, bool flatten);
std::unordered_map<std::string, c10::IValue> saveExtraArgs(const at::RecordFunction &rf);
uint64_t computeFlops(const std::string &name,
                      const std::unordered_map<std::string, c10::IValue> &extra);
} // namespace torch::profiler::impl

/* ---- what the program calls, by dlsym or linked ---- */

extern "C" {
/* An operator; ends on whatever thread calls sim_end. */
void *sim_begin(int scope, const char *name, const char *overload, const c10::IValue *inputs,
                size_t count);
void sim_end(void *op);
/* An operator that may make a node of the autograd graph, and does so: sim_node, with the number
 * that it got in *sequence. Then one of the node, by sim_backward. */
void *sim_node(const char *name, int64_t *sequence);
void *sim_backward(const char *name, int64_t sequence, uint64_t thread);
uint64_t sim_thread(void);
/* A tensor of up to 5 sizes; kind 0 plain, 1 subclass, 2 symbolic, 3 nested. Lives for good. */
void sim_tensor(c10::IValue *value, int kind, const int64_t *sizes, size_t dims);
/* How often inputSizes was asked, and how many IValues there are besides the program's. */
long sim_asked(void);
long sim_values(void);
/* PyTorch's allocator of main memory, and one of a device, which reports always. */
void *sim_alloc(size_t bytes);
void sim_free(void *block);
void sim_device(int type, int64_t bytes);
/* The program's own profiler, with or without memory; prints what it was told. */
void sim_profiler(int on, int memory);
}
