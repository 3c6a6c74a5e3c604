/* Copies that touch an array, and three-dimensional ones. RT_TWICE. */
#include "tests/sim/cudart/rt.h"

RT_API cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
    RT2(cudaMemcpy3D, 3020, ptds_v7000, p);
    CUDA_MEMCPY3D c;
    CUresult r = rt_copy_params(p, &c);
    return RT_END(r ? r : drv.cuMemcpy3D(&c));
}

RT_API cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
    RT2(cudaMemcpy3DAsync, 3020, ptsz_v7000, p, stream);
    CUDA_MEMCPY3D c;
    CUresult r = rt_copy_params(p, &c);
    return RT_END(r ? r : drv.cuMemcpy3DAsync(&c, stream));
}

static CUDA_MEMCPY2D to_array(cudaArray_t dst, size_t w, size_t h, const void *src, size_t pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind)
{
    return (CUDA_MEMCPY2D){
        .srcMemoryType = rt_source_type(kind),
        .srcHost = src,
        .srcDevice = RT_ADDRESS(src),
        .srcPitch = pitch,
        .dstXInBytes = w,
        .dstY = h,
        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
        .dstArray = (CUarray)dst,
        .WidthInBytes = width,
        .Height = height,
    };
}

static CUDA_MEMCPY2D from_array(void *dst, size_t pitch, cudaArray_const_t src, size_t w, size_t h,
                                size_t width, size_t height, enum cudaMemcpyKind kind)
{
    return (CUDA_MEMCPY2D){
        .srcXInBytes = w,
        .srcY = h,
        .srcMemoryType = CU_MEMORYTYPE_ARRAY,
        .srcArray = (CUarray)src,
        .dstMemoryType = rt_target_type(kind),
        .dstHost = dst,
        .dstDevice = RT_ADDRESS(dst),
        .dstPitch = pitch,
        .WidthInBytes = width,
        .Height = height,
    };
}

RT_API cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset,
                                       const void *src, size_t spitch, size_t width, size_t height,
                                       enum cudaMemcpyKind kind)
{
    RT2(cudaMemcpy2DToArray, 3020, ptds_v7000, dst, wOffset, hOffset, src, spitch, width, height,
        kind);
    CUDA_MEMCPY2D c = to_array(dst, wOffset, hOffset, src, spitch, width, height, kind);
    return RT_END(drv.cuMemcpy2DUnaligned(&c));
}

RT_API cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
                                            const void *src, size_t spitch, size_t width,
                                            size_t height, enum cudaMemcpyKind kind,
                                            cudaStream_t stream)
{
    RT2(cudaMemcpy2DToArrayAsync, 3020, ptsz_v7000, dst, wOffset, hOffset, src, spitch, width,
        height, kind, stream);
    CUDA_MEMCPY2D c = to_array(dst, wOffset, hOffset, src, spitch, width, height, kind);
    return RT_END(drv.cuMemcpy2DAsync(&c, stream));
}

RT_API cudaError_t cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src,
                                         size_t wOffset, size_t hOffset, size_t width,
                                         size_t height, enum cudaMemcpyKind kind)
{
    RT2(cudaMemcpy2DFromArray, 3020, ptds_v7000, dst, dpitch, src, wOffset, hOffset, width, height,
        kind);
    CUDA_MEMCPY2D c = from_array(dst, dpitch, src, wOffset, hOffset, width, height, kind);
    return RT_END(drv.cuMemcpy2DUnaligned(&c));
}

RT_API cudaError_t cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src,
                                              size_t wOffset, size_t hOffset, size_t width,
                                              size_t height, enum cudaMemcpyKind kind,
                                              cudaStream_t stream)
{
    RT2(cudaMemcpy2DFromArrayAsync, 3020, ptsz_v7000, dst, dpitch, src, wOffset, hOffset, width,
        height, kind, stream);
    CUDA_MEMCPY2D c = from_array(dst, dpitch, src, wOffset, hOffset, width, height, kind);
    return RT_END(drv.cuMemcpy2DAsync(&c, stream));
}

RT_API cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
                                            cudaArray_const_t src, size_t wOffsetSrc,
                                            size_t hOffsetSrc, size_t width, size_t height,
                                            enum cudaMemcpyKind kind)
{
    RT2(cudaMemcpy2DArrayToArray, 3020, ptds_v7000, dst, wOffsetDst, hOffsetDst, src, wOffsetSrc,
        hOffsetSrc, width, height, kind);
    CUDA_MEMCPY2D c = from_array(NULL, 0, src, wOffsetSrc, hOffsetSrc, width, height, kind);
    c.dstXInBytes = wOffsetDst;
    c.dstY = hOffsetDst;
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    c.dstArray = (CUarray)dst;
    return RT_END(drv.cuMemcpy2DUnaligned(&c));
}
