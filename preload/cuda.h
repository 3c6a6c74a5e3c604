/* CUDA's calls: what the files of the part share.
 *   cuda.c        wrappers of the driver's functions, made from hooks/cuda.def
 *   cudart.c      wrappers of the runtime's functions, made from hooks/cudart.def
 *   cuda_call.c   what every wrapper does: the real function, the range of the call
 *   cuda_proc.c   cuGetProcAddress and its like: programs get our functions from there too
 *   cuda_names.c  names of kernels by handle
 *   cuda_memory.c  what the driver allocated and freed
 *   cuda_context.c  contexts, which take their memory along
 *   cuda_bytes.c  how much a call moved, where its arguments do not say so directly
 * The wrappers run on the program's threads. They pass arguments and results on untouched. */
#ifndef GT_CUDA_H
#define GT_CUDA_H

#include <stdatomic.h>
#include "abi/cuda.h"
#include "core/memory.h"
#include "cuda_events.h"
#include "cupti.h"
#include "hook.h"
#include "torch.h" /* gt_torch_opened */

#define GT_CUDA_HIDDEN __attribute__((visibility("hidden")))

/* What a call does. FOLLOWED: something of ours comes after it. LOOKUP hands out functions, CONTROL
 * is the program's word on when to record: neither is recorded. */
enum gt_cuda_kind {
    GT_CUDA_LAUNCH = 1,
    GT_CUDA_ALLOC,
    GT_CUDA_FREE,
    GT_CUDA_COPY,
    GT_CUDA_SET,
    GT_CUDA_SYNC,
    GT_CUDA_STREAM,
    GT_CUDA_EVENT,
    GT_CUDA_GRAPH,
    GT_CUDA_MEMORY,
    GT_CUDA_MODULE,
    GT_CUDA_CONTEXT,
    GT_CUDA_CONTEXT_END,
    GT_CUDA_FOLLOWED,
    GT_CUDA_IPC,
    GT_CUDA_PEER,
    GT_CUDA_LOOKUP,
    GT_CUDA_CONTROL,
};

/* What is known of a function before the program starts. No pointers, so that the loader has
 * nothing to write; aligned, so that no name lies across the end of a page, where the hot path does
 * not look. */
struct gt_cuda_info {
    char key[56];
    uint16_t since; /* CUDA version times 1000, as in cuGetProcAddress; 0 in the runtime */
    uint8_t kind;
} __attribute__((aligned(64)));

/* The real function. A program may close the driver and open it again elsewhere: `at` is
 * gt_torch_opened when `fn` was last known to be right, for nothing can come in without a dlopen;
 * `base` is where its library lay. Any thread writes, with values that are right for all. */
struct gt_cuda_real {
    _Atomic(void *) fn; /* NULL: not known, or not there */
    _Atomic(void *) base;
    _Atomic unsigned at; /* plus 1; 0: never looked for. Released after the others */
};

struct gt_cuda_api {
    const struct gt_hook *hooks;
    const struct gt_cuda_info *info;
    struct gt_cuda_real *real;
    size_t count;
    const char *const *libraries;
};
extern const struct gt_cuda_api gt_cuda_driver GT_CUDA_HIDDEN;

/* ---- cuda_call.c ---- */

/* The real function number i, looked up anew where a dlopen may have changed it; NULL: there is
 * none. May wait for the loader's lock. */
void *gt_cuda_find(const struct gt_cuda_api *api, size_t i) GT_CUDA_HIDDEN;
static inline void *gt_cuda_real(const struct gt_cuda_api *api, struct gt_cuda_real *real, size_t i)
{
    /* acquire pairs with the release of gt_cuda_learn */
    unsigned at = atomic_load_explicit(&real[i].at, memory_order_acquire);
    void *fn = atomic_load_explicit(&real[i].fn, memory_order_relaxed);

    if (__builtin_expect(
            fn && at == atomic_load_explicit(&gt_torch_opened, memory_order_relaxed) + 1, 1))
        return fn;
    return gt_cuda_find(api, i);
}

/* The program was about to get `fn`, the real function number i: ours goes there from now on. */
void gt_cuda_learn(const struct gt_cuda_api *api, size_t i, void *fn) GT_CUDA_HIDDEN;

/* The one place where a call of CUDA is opened, and where it is closed. begin returns what end must
 * get, GT_CUDA_OFF where CUDA is not recorded; end returns `result`. */
#define GT_CUDA_OFF INT32_MIN
int gt_cuda_begin(const struct gt_cuda_info *info) GT_CUDA_HIDDEN;
unsigned gt_cuda_end(int begun, unsigned result, uint64_t bytes) GT_CUDA_HIDDEN;
/* 1 inside such a call: a signal handler that ends the process came in the middle of it. The driver
 * and CUPTI may hold locks then that this thread will never give back. */
int gt_cuda_in_call(void) GT_CUDA_HIDDEN;

/* A stream began (1) or ended (-1) to be captured into a graph; how many are being captured now. */
void gt_cuda_capture(int change) GT_CUDA_HIDDEN;
int gt_cuda_captures(void) GT_CUDA_HIDDEN;
/* 1: what is done in `stream` now becomes part of a graph. */
int gt_cuda_captured(CUstream stream) GT_CUDA_HIDDEN;

/* The program says when to record (cudaProfilerStart and Stop). */
void gt_cuda_profiler(int start) GT_CUDA_HIDDEN;

/* Of the calling thread. One word: what all libraries of a program have of it is little. */
struct gt_cuda_thread {
    uint32_t correlation; /* of the driver's call that it made last, of those that launch */
    uint16_t launch;      /* that call, as CUPTI numbers its callbacks; 0: none */
    uint8_t asking; /* not 0 while we ask the driver something of our own: a program that uses CUPTI
                       is not to see it */
};
extern __thread struct gt_cuda_thread gt_cuda_thread GT_CUDA_HIDDEN
    __attribute__((tls_model("initial-exec")));

/* ---- cuda_proc.c ---- */

/* The driver answered a look-up by name with *pfn: puts ours there if we stand in front of that
 * function. `version` as the program asked, 0 if that is not known. */
void gt_cuda_swap(const char *symbol, void **pfn, unsigned version, uint64_t flags,
                  const void *caller) GT_CUDA_HIDDEN;

/* 1 if `caller` is an address in the driver or in CUPTI: what those look up is for themselves.
 * Waits for the loader's lock. */
int gt_cuda_inside(const void *caller) GT_CUDA_HIDDEN;

/* ---- cuda_names.c ---- */

/* The program got `handle` (a CUfunction or CUkernel) for the kernel of that name. */
void gt_cuda_named(const void *handle, const char *name) GT_CUDA_HIDDEN;
/* It got `handle` for the kernel that `other` is a handle of. */
void gt_cuda_named_as(const void *handle, const void *other) GT_CUDA_HIDDEN;
/* Lives as long as the process; NULL if it is not known. */
const char *gt_cuda_name_of(const void *handle) GT_CUDA_HIDDEN;

/* ---- cuda_memory.c ---- */

/* The driver gave memory of a device (or of the host, which is not followed). `stream` of those
 * that have one, else GT_CUDA_UNTIMED. */
void gt_cuda_allocated(const struct gt_cuda_info *info, CUstream stream, uint64_t address,
                       uint64_t bytes) GT_CUDA_HIDDEN;
/* The program is about to give it back; gt_memory_freed must follow. */
struct gt_memory_block gt_cuda_freeing(int begun, const struct gt_cuda_info *info, CUstream stream,
                                       uint64_t address) GT_CUDA_HIDDEN;

/* ---- cuda_context.c ---- */

/* That of the calling thread, and its device; NULL: none. */
CUcontext gt_cuda_context_now(CUdevice *device) GT_CUDA_HIDDEN;

/* A call that may end a context, and all memory of it that nobody freed. */
struct gt_cuda_ending {
    CUcontext context; /* NULL: not known, or none */
    CUdevice device;   /* its primary context; -1: it is none */
    int counted;       /* it only ends when nobody retains it any more */
};
struct gt_cuda_ending gt_cuda_ending_context(CUcontext context) GT_CUDA_HIDDEN;
struct gt_cuda_ending gt_cuda_ending_primary(CUdevice device, int counted) GT_CUDA_HIDDEN;
struct gt_cuda_ending gt_cuda_ending_devices(void) GT_CUDA_HIDDEN; /* of the current device */
/* Before the call, and after it while its range is open. */
void gt_cuda_context_ending(const struct gt_cuda_ending *e) GT_CUDA_HIDDEN;
void gt_cuda_context_ended(const struct gt_cuda_ending *e, int failed) GT_CUDA_HIDDEN;

/* The program got the primary context of `device`. */
void gt_cuda_primary(CUdevice device, CUcontext context) GT_CUDA_HIDDEN;

/* ---- cuda_bytes.c ---- */

uint64_t gt_cuda_batch_bytes(const size_t *sizes, size_t count) GT_CUDA_HIDDEN;
uint64_t gt_cuda_batch3d_bytes(const CUDA_MEMCPY3D_BATCH_OP *ops, size_t count) GT_CUDA_HIDDEN;
uint64_t gt_cuda_array_format_bytes(uint64_t elements, unsigned format,
                                    unsigned channels) GT_CUDA_HIDDEN;
#define gt_cuda_array_bytes(a)                                                                     \
    gt_cuda_array_format_bytes((uint64_t)(a)->Width *((a)->Height ? (a)->Height : 1), (a)->Format, \
                               (a)->NumChannels)
#define gt_cuda_array3d_bytes(a)                                                                   \
    gt_cuda_backed(                                                                                \
        gt_cuda_array_format_bytes((uint64_t)(a)->Width *((a)->Height ? (a)->Height : 1) *         \
                                       ((a)->Depth ? (a)->Depth : 1),                              \
                                   (a)->Format, (a)->NumChannels),                                 \
        (a)->Flags)
/* 0 for an array that gets its memory later. */
uint64_t gt_cuda_backed(uint64_t bytes, unsigned flags) GT_CUDA_HIDDEN;
uint64_t gt_cuda_mipmapped_bytes(const CUDA_ARRAY3D_DESCRIPTOR *a, unsigned levels) GT_CUDA_HIDDEN;
uint64_t gt_cudart_mipmapped_bytes(const cudaChannelFormatDesc *desc, const cudaExtent *extent,
                                   unsigned levels, unsigned flags) GT_CUDA_HIDDEN;
uint64_t gt_cudart_array_bytes(const cudaChannelFormatDesc *desc, size_t width, size_t height,
                               size_t depth) GT_CUDA_HIDDEN;
uint64_t gt_cudart_3d_bytes(const cudaMemcpy3DParms *p) GT_CUDA_HIDDEN;
uint64_t gt_cudart_peer_bytes(const cudaMemcpy3DPeerParms *p) GT_CUDA_HIDDEN;
uint64_t gt_cudart_batch3d_bytes(const cudaMemcpy3DBatchOp *ops, size_t count) GT_CUDA_HIDDEN;

/* ---- a wrapper's body ---- */

#define GT_CUDA_NOT_THERE(api, index, name, arguments, result)                                     \
    name##_fn *real = (name##_fn *)gt_cuda_real(&api, api##_real, index);                          \
    if (__builtin_expect(!real, 0))                                                                \
    return (result)GT_CUDA_NOT_INITIALIZED

/* A recorded call. The arguments that say how much it moved are looked at when it has succeeded. */
#define GT_CUDA_RECORDED(api, index, name, arguments, result, bytes)                               \
    GT_CUDA_NOT_THERE(api, index, name, arguments, result);                                        \
    int begun = gt_cuda_begin(&api##_info[index]);                                                 \
    result r = real arguments;                                                                     \
    return gt_cuda_end(begun, r, r == 0 ? (uint64_t)(bytes) : 0)

/* The optional arguments of a line: the stream, what is launched. UNTIMED: it has none. */
#define GT_CUDA_UNTIMED ((CUstream)-1)
#define GT_CUDA_STREAM_OF(none, stream, ...) (stream)
#define GT_CUDA_KERNEL_OF(none, stream, kernel, ...) (kernel)
#define GT_CUDA_NO_KERNEL gt_cuda_kernel(NULL, 0, 0, 0, 0, 0, 0, 0)
/* In functions of that variant the default stream is the thread's own. */
#define GT_CUDA_PER_THREAD(stream) ((stream) ? (stream) : (CUstream)2)

/* A recorded call that makes the device do something. */
#define GT_CUDA_TIMED(api, index, name, arguments, result, bytes, ...)                             \
    GT_CUDA_NOT_THERE(api, index, name, arguments, result);                                        \
    int begun = gt_cuda_begin(&api##_info[index]), timed = 0;                                      \
    struct gt_cuda_pair pair;                                                                      \
    if (__builtin_expect(atomic_load_explicit(&gt_cuda_events, memory_order_relaxed), 0)) {        \
        CUstream at = GT_CUDA_STREAM_OF(0, ##__VA_ARGS__, GT_CUDA_UNTIMED, 0);                     \
        timed = at != GT_CUDA_UNTIMED && gt_cuda_pair_begin(&pair, at);                            \
    }                                                                                              \
    result r = real arguments;                                                                     \
    if (__builtin_expect(timed, 0)) {                                                              \
        struct gt_cuda_kernel k =                                                                  \
            GT_CUDA_KERNEL_OF(0, ##__VA_ARGS__, GT_CUDA_NO_KERNEL, GT_CUDA_NO_KERNEL);             \
        gt_cuda_pair_end(&pair, GT_CUDA_STREAM_OF(0, ##__VA_ARGS__, 0, 0), &api##_info[index], r,  \
                         r == 0 ? (uint64_t)(bytes) : 0, &k);                                      \
    }                                                                                              \
    uint64_t moved = r == 0 ? (uint64_t)(bytes) : 0;                                               \
    if (api##_info[index].since && api##_info[index].kind != GT_CUDA_LAUNCH &&                     \
        __builtin_expect(moved == 0, 0))                                                           \
        gt_cupti_moved_nothing(api##_info[index].key);                                             \
    return gt_cuda_end(begun, r, moved)

/* The driver's functions that give memory or take it back: where, is told by what their first
 * parameter points to, or by itself. */
#define GT_CUDA_FIRST(first, ...) (first)
#define GT_CUDA_ALLOCATING(api, index, name, arguments, result, bytes, ...)                        \
    GT_CUDA_NOT_THERE(api, index, name, arguments, result);                                        \
    int begun = gt_cuda_begin(&api##_info[index]);                                                 \
    result r = real arguments;                                                                     \
    uint64_t given = r == 0 ? (uint64_t)(bytes) : 0;                                               \
    if (given && begun != GT_CUDA_OFF)                                                             \
        gt_cuda_allocated(&api##_info[index],                                                      \
                          GT_CUDA_STREAM_OF(0, ##__VA_ARGS__, GT_CUDA_UNTIMED, 0),                 \
                          (uint64_t)(uintptr_t)*GT_CUDA_FIRST arguments, given);                   \
    return gt_cuda_end(begun, r, given)
#define GT_CUDA_FREEING(api, index, name, arguments, result, bytes, ...)                           \
    GT_CUDA_NOT_THERE(api, index, name, arguments, result);                                        \
    int begun = gt_cuda_begin(&api##_info[index]);                                                 \
    struct gt_memory_block block = gt_cuda_freeing(                                                \
        begun, &api##_info[index], GT_CUDA_STREAM_OF(0, ##__VA_ARGS__, GT_CUDA_UNTIMED, 0),        \
        (uint64_t)(uintptr_t)GT_CUDA_FIRST arguments);                                             \
    result r = real arguments;                                                                     \
    gt_memory_freed(&block, r != 0);                                                               \
    return gt_cuda_end(begun, r, 0)
#define GT_CUDA_ALLOC_gt_cuda_driver GT_CUDA_ALLOCATING
#define GT_CUDA_FREE_gt_cuda_driver GT_CUDA_FREEING
#define GT_CUDA_ALLOC_gt_cuda_runtime GT_CUDA_RECORDED
#define GT_CUDA_FREE_gt_cuda_runtime GT_CUDA_RECORDED

/* One after which something is done when it has succeeded, outside of its time. */
#define GT_CUDA_THEN(api, index, name, arguments, result, after)                                   \
    GT_CUDA_NOT_THERE(api, index, name, arguments, result);                                        \
    int begun = gt_cuda_begin(&api##_info[index]);                                                 \
    result r = real arguments;                                                                     \
    gt_cuda_end(begun, r, 0);                                                                      \
    if (r == 0 && begun != GT_CUDA_OFF)                                                            \
        after;                                                                                     \
    return r

/* One that is not: `after` is done when it has succeeded. */
#define GT_CUDA_WATCHED(api, index, name, arguments, result, after)                                \
    GT_CUDA_NOT_THERE(api, index, name, arguments, result);                                        \
    result r = real arguments;                                                                     \
    if (r == 0)                                                                                    \
        after;                                                                                     \
    return r

/* One that may end a context: `which` says which. */
#define GT_CUDA_ENDING(api, index, name, arguments, result, which)                                 \
    GT_CUDA_NOT_THERE(api, index, name, arguments, result);                                        \
    int begun = gt_cuda_begin(&api##_info[index]);                                                 \
    struct gt_cuda_ending ending = {0};                                                            \
    if (begun != GT_CUDA_OFF)                                                                      \
        ending = (which);                                                                          \
    gt_cuda_context_ending(&ending);                                                               \
    result r = real arguments;                                                                     \
    gt_cuda_context_ended(&ending, r != 0);                                                        \
    return gt_cuda_end(begun, r, 0)

#define GT_CUDA_BODY_LAUNCH GT_CUDA_TIMED
#define GT_CUDA_BODY_ALLOC(api, ...) GT_CUDA_ALLOC_##api(api, __VA_ARGS__)
#define GT_CUDA_BODY_FREE(api, ...) GT_CUDA_FREE_##api(api, __VA_ARGS__)
#define GT_CUDA_BODY_COPY GT_CUDA_TIMED
#define GT_CUDA_BODY_SET GT_CUDA_TIMED
#define GT_CUDA_BODY_SYNC GT_CUDA_RECORDED
#define GT_CUDA_BODY_STREAM GT_CUDA_RECORDED
#define GT_CUDA_BODY_EVENT GT_CUDA_RECORDED
#define GT_CUDA_BODY_GRAPH GT_CUDA_RECORDED
#define GT_CUDA_BODY_MEMORY GT_CUDA_RECORDED
#define GT_CUDA_BODY_MODULE GT_CUDA_RECORDED
#define GT_CUDA_BODY_CONTEXT GT_CUDA_RECORDED
#define GT_CUDA_BODY_CONTEXT_END GT_CUDA_ENDING
#define GT_CUDA_BODY_FOLLOWED GT_CUDA_THEN
#define GT_CUDA_BODY_IPC GT_CUDA_RECORDED
#define GT_CUDA_BODY_PEER GT_CUDA_RECORDED
#define GT_CUDA_BODY_LOOKUP GT_CUDA_WATCHED
#define GT_CUDA_BODY_CONTROL GT_CUDA_WATCHED

/* The function and its exported name, which are one: a program may compare addresses. */
#define GT_CUDA_WRAPPER(api, result, name, kind, bytes, parameters, arguments, ...)                \
    typedef result name##_fn parameters;                                                           \
    static result on_##name parameters                                                             \
    {                                                                                              \
        GT_CUDA_BODY_##kind(api, I_##name, name, arguments, result, bytes, ##__VA_ARGS__);         \
    }                                                                                              \
    GT_EXPORT name##_fn name __attribute__((alias("on_" #name)));

#endif
