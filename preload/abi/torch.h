/* What we need of the binary interface of libtorch_cpu.so and libc10.so, in words of our own. Seen
 * to hold in 1.13.1 and 2.13.0; the names of the functions are in hooks/torch.def.
 *
 * Functions that return a C++ object by value are declared with a C struct of the same size: over
 * 16 bytes both languages return it in the caller's memory. Where the sizes say otherwise
 * (std::unique_ptr is returned in memory too) torch_abi.c has the few instructions that differ. */
#ifndef GT_ABI_TORCH_H
#define GT_ABI_TORCH_H

#include <stddef.h>
#include <stdint.h>

/* RecordScope */
enum gt_torch_scope {
    GT_TORCH_FUNCTION = 0,
    GT_TORCH_BACKWARD = 1,
    GT_TORCH_SCRIPT = 2, /* a TorchScript function */
    GT_TORCH_USER = 7,   /* record_function */
    GT_TORCH_SCOPES = 10,
};

/* at::RecordFunction: an operator that runs. Only its address is ours to use. */
struct gt_torch_rf;
/* ObserverContext, what start hands to end: begins with the address of a virtual table whose second
 * entry is called to delete it. NULL is allowed. */
struct gt_torch_context;

/* at::RecordFunctionCallback. `start` is really
 *   std::unique_ptr<ObserverContext> start(const RecordFunction &) */
struct gt_torch_callback {
    void (*start)(void);
    void (*end)(const struct gt_torch_rf *rf, struct gt_torch_context *context);
    double sampling_probability;
    uint8_t scopes[GT_TORCH_SCOPES];
    uint8_t needs_inputs, needs_outputs, needs_ids;
};
_Static_assert(sizeof(struct gt_torch_callback) == 40, "passed by value");

/* std::vector<int64_t> and std::vector<std::vector<int64_t>>; both own their memory, from malloc */
struct gt_torch_dims {
    int64_t *begin, *end, *limit;
};
struct gt_torch_sizes {
    struct gt_torch_dims *begin, *end, *limit;
};

/* c10::IValue: an input of an operator. A tensor is the address of its c10::TensorImpl. */
struct gt_torch_value {
    const char *payload;
    uint32_t tag;
};
#define GT_TORCH_TAG_TENSOR 1u

/* Inside a c10::TensorImpl, from its sizes on; where these begin depends on the version. */
#define GT_TORCH_INLINE_DIMS 5
struct gt_torch_impl {
    uint64_t dims;
    union {
        const int64_t *far; /* more than 5 */
        int64_t near[GT_TORCH_INLINE_DIMS];
    } sizes;
    uint64_t strides[GT_TORCH_INLINE_DIMS];
    uint8_t unused[22]; /* storage offset, number of elements, type, device */
    /* bits 2-3: 0, 1: the sizes are those above; 2: a function tells them. Bit 4: they are symbols.
     */
    uint8_t policy;
};
#define GT_TORCH_POLICY(impl) ((impl)->policy >> 2 & 3)
#define GT_TORCH_IS_SYMBOLIC(impl) ((impl)->policy >> 4 & 1)

/* std::string of libstdc++ (the ABI that _GLIBCXX_USE_CXX11_ABI=1 has) */
struct gt_torch_string {
    const char *text;
    uint64_t length;
    char inside[16];
};
/* std::unordered_map<std::string, IValue> */
struct gt_torch_map {
    uint64_t words[7];
};

/* c10::Device, two bytes passed in one register: type, index */
enum gt_torch_device {
    GT_TORCH_CPU = 0,
    GT_TORCH_CUDA = 1,
    GT_TORCH_MKLDNN = 2,
    GT_TORCH_IDEEP = 5,
    GT_TORCH_HIP = 6,
    GT_TORCH_XPU = 12,
    GT_TORCH_PRIVATE = 20,
};

#endif
