/* Sets of memory, by bytes as the runtime's all are. RT_TWICE. */
#include "tests/sim/cudart/rt.h"

RT_API cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
    RT2(cudaMemset, 3020, ptds_v7000, devPtr, value, count);
    return RT_END(drv.cuMemsetD8(RT_ADDRESS(devPtr), (unsigned char)value, count));
}

RT_API cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
    RT2(cudaMemsetAsync, 3020, ptsz_v7000, devPtr, value, count, stream);
    return RT_END(drv.cuMemsetD8Async(RT_ADDRESS(devPtr), (unsigned char)value, count, stream));
}

RT_API cudaError_t cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height)
{
    RT2(cudaMemset2D, 3020, ptds_v7000, devPtr, pitch, value, width, height);
    return RT_END(drv.cuMemsetD2D8(RT_ADDRESS(devPtr), pitch, (unsigned char)value, width, height));
}

RT_API cudaError_t cudaMemset2DAsync(void *devPtr, size_t pitch, int value, size_t width,
                                     size_t height, cudaStream_t stream)
{
    RT2(cudaMemset2DAsync, 3020, ptsz_v7000, devPtr, pitch, value, width, height, stream);
    return RT_END(drv.cuMemsetD2D8Async(RT_ADDRESS(devPtr), pitch, (unsigned char)value, width,
                                        height, stream));
}

/* The driver has no set in three dimensions: one a slice, or one for all where they touch. */
static CUresult slices(struct cudaPitchedPtr p, int value, struct cudaExtent extent, bool async,
                       cudaStream_t stream)
{
    size_t count = extent.depth, rows = extent.height;
    if (p.ysize == extent.height || count == 1) {
        rows *= count;
        count = count ? 1 : 0;
    }
    CUresult r = CUDA_SUCCESS;
    for (size_t z = 0; z < count && !r; z++) {
        CUdeviceptr at = RT_ADDRESS(p.ptr) + z * p.pitch * p.ysize;
        r = async ? drv.cuMemsetD2D8Async(at, p.pitch, (unsigned char)value, extent.width, rows,
                                          stream)
                  : drv.cuMemsetD2D8(at, p.pitch, (unsigned char)value, extent.width, rows);
    }
    return r;
}

RT_API cudaError_t cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value,
                                struct cudaExtent extent)
{
    RT2(cudaMemset3D, 3020, ptds_v7000, pitchedDevPtr, value, extent);
    return RT_END(slices(pitchedDevPtr, value, extent, false, NULL));
}

RT_API cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitchedDevPtr, int value,
                                     struct cudaExtent extent, cudaStream_t stream)
{
    RT2(cudaMemset3DAsync, 3020, ptsz_v7000, pitchedDevPtr, value, extent, stream);
    return RT_END(slices(pitchedDevPtr, value, extent, true, stream));
}
