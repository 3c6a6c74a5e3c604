/* Copies between two addresses, one- and two-dimensional. RT_TWICE. */
#include "tests/sim/cudart/rt.h"

static bool known(enum cudaMemcpyKind kind)
{
    return (unsigned)kind <= cudaMemcpyDefault;
}
#define BAD_KIND ((CUresult)cudaErrorInvalidMemcpyDirection)

static CUresult copy(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return drv.cuMemcpyHtoD(RT_ADDRESS(dst), src, n);
    case cudaMemcpyDeviceToHost:
        return drv.cuMemcpyDtoH(dst, RT_ADDRESS(src), n);
    case cudaMemcpyDeviceToDevice:
        return drv.cuMemcpyDtoD(RT_ADDRESS(dst), RT_ADDRESS(src), n);
    default:
        return known(kind) ? drv.cuMemcpy(RT_ADDRESS(dst), RT_ADDRESS(src), n) : BAD_KIND;
    }
}

static CUresult copy_async(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
                           cudaStream_t stream)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return drv.cuMemcpyHtoDAsync(RT_ADDRESS(dst), src, n, stream);
    case cudaMemcpyDeviceToHost:
        return drv.cuMemcpyDtoHAsync(dst, RT_ADDRESS(src), n, stream);
    case cudaMemcpyDeviceToDevice:
        return drv.cuMemcpyDtoDAsync(RT_ADDRESS(dst), RT_ADDRESS(src), n, stream);
    default:
        return known(kind) ? drv.cuMemcpyAsync(RT_ADDRESS(dst), RT_ADDRESS(src), n, stream)
                           : BAD_KIND;
    }
}

RT_API cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
    RT2(cudaMemcpy, 3020, ptds_v7000, dst, src, count, kind);
    return RT_END(copy(dst, src, count, kind));
}

RT_API cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
                                   enum cudaMemcpyKind kind, cudaStream_t stream)
{
    RT2(cudaMemcpyAsync, 3020, ptsz_v7000, dst, src, count, kind, stream);
    return RT_END(copy_async(dst, src, count, kind, stream));
}

/* ---- two dimensions */
static CUDA_MEMCPY2D rows(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                          size_t height, enum cudaMemcpyKind kind)
{
    return (CUDA_MEMCPY2D){
        .srcMemoryType = rt_source_type(kind),
        .srcHost = src,
        .srcDevice = RT_ADDRESS(src),
        .srcPitch = spitch,
        .dstMemoryType = rt_target_type(kind),
        .dstHost = dst,
        .dstDevice = RT_ADDRESS(dst),
        .dstPitch = dpitch,
        .WidthInBytes = width,
        .Height = height,
    };
}

RT_API cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch,
                                size_t width, size_t height, enum cudaMemcpyKind kind)
{
    RT2(cudaMemcpy2D, 3020, ptds_v7000, dst, dpitch, src, spitch, width, height, kind);
    if (!known(kind))
        return RT_END(BAD_KIND);
    CUDA_MEMCPY2D c = rows(dst, dpitch, src, spitch, width, height, kind);
    return RT_END(drv.cuMemcpy2DUnaligned(&c));
}

RT_API cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                                     size_t width, size_t height, enum cudaMemcpyKind kind,
                                     cudaStream_t stream)
{
    RT2(cudaMemcpy2DAsync, 3020, ptsz_v7000, dst, dpitch, src, spitch, width, height, kind, stream);
    if (!known(kind))
        return RT_END(BAD_KIND);
    CUDA_MEMCPY2D c = rows(dst, dpitch, src, spitch, width, height, kind);
    return RT_END(drv.cuMemcpy2DAsync(&c, stream));
}

/* ---- __device__ and __constant__ variables */
static CUresult part(const void *symbol, size_t offset, size_t count, char **address)
{
    CUdeviceptr p = 0;
    size_t size = 0;
    CUresult r = rt_symbol(symbol, &p, &size);
    if (!r && (offset > size || count > size - offset))
        r = CUDA_ERROR_INVALID_VALUE;
    *address = (char *)(uintptr_t)p + offset;
    return r;
}

RT_API cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count,
                                      size_t offset, enum cudaMemcpyKind kind)
{
    RT2(cudaMemcpyToSymbol, 3020, ptds_v7000, symbol, src, count, offset, kind);
    char *p;
    CUresult r = part(symbol, offset, count, &p);
    return RT_END(r ? r : copy(p, src, count, kind));
}

RT_API cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
                                        enum cudaMemcpyKind kind)
{
    RT2(cudaMemcpyFromSymbol, 3020, ptds_v7000, dst, symbol, count, offset, kind);
    char *p;
    CUresult r = part(symbol, offset, count, &p);
    return RT_END(r ? r : copy(dst, p, count, kind));
}

RT_API cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count,
                                           size_t offset, enum cudaMemcpyKind kind,
                                           cudaStream_t stream)
{
    RT2(cudaMemcpyToSymbolAsync, 3020, ptsz_v7000, symbol, src, count, offset, kind, stream);
    char *p;
    CUresult r = part(symbol, offset, count, &p);
    return RT_END(r ? r : copy_async(p, src, count, kind, stream));
}

RT_API cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count,
                                             size_t offset, enum cudaMemcpyKind kind,
                                             cudaStream_t stream)
{
    RT2(cudaMemcpyFromSymbolAsync, 3020, ptsz_v7000, dst, symbol, count, offset, kind, stream);
    char *p;
    CUresult r = part(symbol, offset, count, &p);
    return RT_END(r ? r : copy_async(dst, p, count, kind, stream));
}
