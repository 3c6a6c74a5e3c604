/*
 * `kernel<<<grid, block, shared, stream>>>`: the caller pushes the configuration, the stub that
 * nvcc wrote pops it and launches. One stack a thread; it nests only where an argument of the call
 * itself launches.
 */
#include "tests/sim/cudart/rt.h"
#include <string.h>

struct configuration {
    dim3 grid, block;
    size_t shared;
    struct CUstream_st *stream;
};
#define DEPTH 32
static __thread struct configuration stack[DEPTH];
static __thread int depth;

RT_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                            struct CUstream_st *stream)
{
    if (depth == DEPTH)
        return cudaErrorInvalidConfiguration;
    stack[depth++] = (struct configuration){grid, block, shared, stream};
    return cudaSuccess;
}

RT_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    if (!depth)
        return cudaErrorMissingConfiguration;
    const struct configuration *c = &stack[--depth];
    *grid = c->grid;
    *block = c->block;
    *shared = c->shared;
    memcpy(stream, &c->stream, sizeof c->stream);
    return cudaSuccess;
}

/* What an nvcc 13 stub calls once for each kernel, before its first launch. */
RT_API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    RT_NO_PARAMS(__cudaGetKernel_v13000, RT_NEEDS_CONTEXT, NULL);
    *kernel = rt_kernel(function);
    return RT_END(*kernel ? CUDA_SUCCESS : (CUresult)cudaErrorInvalidDeviceFunction);
}

RT_API cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    RT(cudaGetKernel, 12000, kernel, function);
    *kernel = rt_kernel(function);
    return RT_END(*kernel ? CUDA_SUCCESS : (CUresult)cudaErrorInvalidDeviceFunction);
}
