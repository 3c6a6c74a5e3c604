/* The stand-in's libc10.so: see sim.h. */
#include "sim.h"
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

namespace c10
{
TensorImpl::~TensorImpl() {}

UndefinedTensorImpl::UndefinedTensorImpl()
{
    policy = 1 << 2;
}
UndefinedTensorImpl UndefinedTensorImpl::_singleton;

NestedTensorImpl::NestedTensorImpl()
{
    policy = 2 << 2;
}

static long values;
IValue::IValue() : number(0), tag(0)
{
    values++;
}
IValue::IValue(const IValue &other) : number(other.number), tag(other.tag)
{
    values++;
}
IValue::~IValue()
{
    values--;
}

/* what the program's profiler wants on this thread: 0 it does not run, 1 no memory, 2 memory */
static thread_local int profiling;

bool memoryProfilingEnabled()
{
    return profiling == 2;
}

static void tell(void *, int64_t bytes, size_t allocated, Device device)
{
    if (profiling == 2)
        printf("profiler: %ld bytes, %zu in use, device %d\n", (long)bytes, allocated, device.type);
}
#if SIM_VERSION == 113
void reportMemoryUsageToProfiler(void *block, int64_t bytes, int64_t allocated, int64_t,
                                 Device device)
#else
void reportMemoryUsageToProfiler(void *block, int64_t bytes, size_t allocated, size_t,
                                 Device device)
#endif
{
    tell(block, bytes, (size_t)allocated, device);
}
} // namespace c10

/* As PyTorch's allocator does it: blocks are known from when somebody wants to know. */
static std::mutex lock;
static std::map<void *, size_t> known;
static size_t in_use;

extern "C" long sim_values(void)
{
    return c10::values;
}

extern "C" void *sim_alloc(size_t bytes)
{
    void *block = malloc(bytes);
    size_t now;

    if (!c10::memoryProfilingEnabled())
        return block;
    {
        std::lock_guard<std::mutex> guard(lock);
        known[block] = bytes;
        now = in_use += bytes;
    }
    c10::reportMemoryUsageToProfiler(block, (int64_t)bytes, now, 0, {0, -1});
    return block;
}

extern "C" void sim_free(void *block)
{
    size_t bytes = 0, now;

    if (c10::memoryProfilingEnabled()) {
        {
            std::lock_guard<std::mutex> guard(lock);
            auto it = known.find(block);
            if (it != known.end()) {
                bytes = it->second;
                in_use -= bytes;
                known.erase(it);
            }
            now = in_use;
        }
        if (bytes)
            c10::reportMemoryUsageToProfiler(block, -(int64_t)bytes, now, 0, {0, -1});
    }
    free(block);
}

extern "C" void sim_device(int type, int64_t bytes)
{
    c10::reportMemoryUsageToProfiler(&known, bytes, 0, 0, {(int8_t)type, 0});
}

extern "C" void sim_profiler_memory(int state)
{
    c10::profiling = state;
}
