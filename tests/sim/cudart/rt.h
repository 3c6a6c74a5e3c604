/*
 * What the files of the simulated CUDA runtime (build/sim/libcudart.so.13) share. The runtime keeps
 * no memory, stream or kernel of its own: it looks up the driver's functions as the real one does,
 * and every call becomes the driver's.
 *
 * Files in RT_TWICE of build.mk are compiled a second time with CUDA_API_PER_THREAD_DEFAULT_STREAM.
 * The toolkit's header then renames their functions (cudaMemcpy is cudaMemcpy_ptds), and `drv` is
 * the table of the driver's per-thread variants. They must hold nothing that has no such variant.
 */
#ifndef SIM_CUDART_RT_H
#define SIM_CUDART_RT_H

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define RT_PT 1
#else
#define RT_PT 0
#endif
/* cuda.h then renames nothing: names are as cuGetProcAddress wants them. The runtime's header must
   rename, in the second compilation. */
#define __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL_ODR
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cudaProfilerTypedefs.h>
#undef __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>
#include <generated_cuda_runtime_api_meta.h>
#include <cupti_runtime_cbid.h>
#include <stdbool.h>
#include "tests/sim/cuda/gpu.h"

#define RT_API __attribute__((visibility("default")))

struct rt_driver {
#define DRV(name, version) PFN_##name##_v##version name;
#define DRV_PT(name, version, pt) DRV(name, version)
#include "tests/sim/cudart/driver.def"
#undef DRV
#undef DRV_PT
};
/* Filled once, by the first call; [1] has the per-thread variants where there are some. */
extern struct rt_driver rt_drv[2];
#define drv rt_drv[RT_PT]

/* Opens libcuda.so.1, no more: so that a listener hears of the call that the rest is done in. */
void rt_driver_open(void);
/* Finds its functions and calls cuInit. The first answer stays. */
CUresult rt_driver_init(void);
/* The driver that was opened: whether it announces calls, and has failures for them. */
void rt_listen(void *library);
/* The driver's own look-up; NULL before rt_driver_init. */
PFN_cuGetProcAddress_v12000 rt_lookup(void);

enum rt_need { RT_NEEDS_NOTHING, RT_NEEDS_DRIVER, RT_NEEDS_CONTEXT };
/* Tells a listener that the call begins and makes ready what it needs. An error: the call ends. */
CUresult rt_begin(struct gtsim_call *call, enum rt_need need);
/* Keeps the error for cudaGetLastError, tells the listener, returns the error. */
cudaError_t rt_end(struct gtsim_call *call, CUresult result);
/* The thread's last error; takes it away if asked, unless it is one that stays. */
cudaError_t rt_last_error(bool take);

/* The device that the calling thread has chosen; choosing makes its primary context current. */
int rt_device(void);
CUresult rt_set_device(int device);
CUresult rt_reset_device(void);
/* Current context of the thread, and the primary one of any device (retained for good). */
CUresult rt_primary(int device, CUcontext *context);

/* The kernel behind a host function or a cudaKernel_t; NULL: none. */
CUkernel rt_kernel(const void *function);
const char *rt_kernel_name(const void *function);
/* A kernel that the program got from a library it loaded: for the two above. Copies the name. */
void rt_kernel_known(CUkernel kernel, const char *name);
CUresult rt_symbol(const void *symbol, CUdeviceptr *address, size_t *size);

/* Bytes of one element of an array. */
CUresult rt_element_bytes(CUarray array, size_t *bytes);
CUresult rt_copy_params(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out);
CUmemorytype rt_source_type(enum cudaMemcpyKind kind), rt_target_type(enum cudaMemcpyKind kind);

/*
 * Begin a function's body: RT(cudaMalloc, 3020, devPtr, size) for one that needs a context, with
 * the version its parameters have in generated_cuda_runtime_api_meta.h. The 2 is for RT_TWICE:
 * RT2(cudaMemcpy, 3020, ptds_v7000, ...). A body ends with `return RT_END(result)`.
 */
#define RT_BODY(id, need, ...)                                                                     \
    id##_params params_ = {__VA_ARGS__};                                                           \
    RT_NO_PARAMS(id, need, &params_)
#define RT_NO_PARAMS(id, need, address) RT_LAUNCH(id, need, address, NULL)
/* and with the name of the kernel that it launches */
#define RT_LAUNCH(id, need, address, kernel_name)                                                  \
    struct gtsim_call call_ = {.domain = GTSIM_RUNTIME,                                            \
                               .cbid = CUPTI_RUNTIME_TRACE_CBID_##id,                              \
                               .name = __func__,                                                   \
                               .params = address,                                                  \
                               .symbol = kernel_name};                                             \
    CUresult begun_ = rt_begin(&call_, need);                                                      \
    if (begun_)                                                                                    \
    return rt_end(&call_, begun_)
#define RT_END(result) rt_end(&call_, result)

#define RT(name, version, ...) RT_BODY(name##_v##version, RT_NEEDS_CONTEXT, __VA_ARGS__)
#define RT_VOID(name, version) RT_NO_PARAMS(name##_v##version, RT_NEEDS_CONTEXT, NULL)
#define RT_DRIVER(name, version, ...) RT_BODY(name##_v##version, RT_NEEDS_DRIVER, __VA_ARGS__)
#if RT_PT
#define RT2(name, version, pt_version, ...)                                                        \
    RT_BODY(name##_##pt_version, RT_NEEDS_CONTEXT, __VA_ARGS__)
#else
#define RT2(name, version, pt_version, ...)                                                        \
    RT_BODY(name##_v##version, RT_NEEDS_CONTEXT, __VA_ARGS__)
#endif

#define RT_ADDRESS(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

#endif
