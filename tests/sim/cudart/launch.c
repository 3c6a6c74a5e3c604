/*
 * Kernel launches. RT_TWICE: the second time for the per-thread default stream. A host function is
 * turned into the driver's kernel here; nvcc 13's stubs bring the kernel itself.
 */
#include "tests/sim/cudart/rt.h"

#if RT_PT
#define __cudaLaunchKernel __cudaLaunchKernel_ptsz
#define STUB_ID __cudaLaunchKernel_ptsz_v13000
#define PLAIN_ID cudaLaunchKernel_ptsz_v7000
#define EX_ID cudaLaunchKernelExC_ptsz_v11060
#define COOPERATIVE_ID cudaLaunchCooperativeKernel_ptsz_v9000
#else
#define STUB_ID __cudaLaunchKernel_v13000
#define PLAIN_ID cudaLaunchKernel_v7000
#define EX_ID cudaLaunchKernelExC_v11060
#define COOPERATIVE_ID cudaLaunchCooperativeKernel_v9000
#endif
/* so that the names above are expanded before they are pasted */
#define LAUNCH(id, address, name) RT_LAUNCH(id, RT_NEEDS_CONTEXT, address, name)
#define PARAMS_OF(id) PARAMS_OF_(id)
#define PARAMS_OF_(id) id##_params

static CUresult launch(CUkernel k, dim3 grid, dim3 block, void **args, size_t shared,
                       cudaStream_t stream)
{
    if (!k)
        return (CUresult)cudaErrorInvalidDeviceFunction;
    return drv.cuLaunchKernel((CUfunction)k, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                              (unsigned)shared, stream, args, NULL);
}

RT_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                                      size_t shared, cudaStream_t stream)
{
    LAUNCH(STUB_ID, NULL, rt_kernel_name(kernel));
    return RT_END(launch(kernel, grid, block, args, shared, stream));
}

RT_API cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
                                    size_t sharedMem, cudaStream_t stream)
{
    PARAMS_OF(PLAIN_ID) params = {func, gridDim, blockDim, args, sharedMem, stream};
    LAUNCH(PLAIN_ID, &params, rt_kernel_name(func));
    return RT_END(launch(rt_kernel(func), gridDim, blockDim, args, sharedMem, stream));
}

RT_API cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim,
                                               void **args, size_t sharedMem, cudaStream_t stream)
{
    PARAMS_OF(COOPERATIVE_ID) params = {func, gridDim, blockDim, args, sharedMem, stream};
    LAUNCH(COOPERATIVE_ID, &params, rt_kernel_name(func));
    CUkernel k = rt_kernel(func);
    if (!k)
        return RT_END((CUresult)cudaErrorInvalidDeviceFunction);
    return RT_END(drv.cuLaunchCooperativeKernel((CUfunction)k, gridDim.x, gridDim.y, gridDim.z,
                                                blockDim.x, blockDim.y, blockDim.z,
                                                (unsigned)sharedMem, stream, args));
}

/* The attributes have the same numbers and layout in both interfaces. */
_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "launch attributes");

RT_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func,
                                       void **args)
{
    PARAMS_OF(EX_ID) params = {config, func, args};
    LAUNCH(EX_ID, &params, rt_kernel_name(func));
    CUkernel k = rt_kernel(func);
    if (!k)
        return RT_END((CUresult)cudaErrorInvalidDeviceFunction);
    if (!config)
        return RT_END((CUresult)cudaErrorInvalidConfiguration);
    CUlaunchConfig c = {
        .gridDimX = config->gridDim.x,
        .gridDimY = config->gridDim.y,
        .gridDimZ = config->gridDim.z,
        .blockDimX = config->blockDim.x,
        .blockDimY = config->blockDim.y,
        .blockDimZ = config->blockDim.z,
        .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
        .hStream = config->stream,
        .attrs = (CUlaunchAttribute *)config->attrs,
        .numAttrs = config->numAttrs,
    };
    return RT_END(drv.cuLaunchKernelEx(&c, (CUfunction)k, args, NULL));
}

RT_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
    RT2(cudaLaunchHostFunc, 10000, ptsz_v10000, stream, fn, userData);
    return RT_END(drv.cuLaunchHostFunc(stream, fn, userData));
}
