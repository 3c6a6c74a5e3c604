/* The runtime's description of a copy in the driver's terms. */
#include "tests/sim/cudart/rt.h"
#include <string.h>

/* With the kind "default" the driver is to find out itself. */
CUmemorytype rt_source_type(enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return CU_MEMORYTYPE_HOST;
    case cudaMemcpyDeviceToHost:
    case cudaMemcpyDeviceToDevice:
        return CU_MEMORYTYPE_DEVICE;
    default:
        return CU_MEMORYTYPE_UNIFIED;
    }
}

CUmemorytype rt_target_type(enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyDeviceToHost:
        return CU_MEMORYTYPE_HOST;
    case cudaMemcpyHostToDevice:
    case cudaMemcpyDeviceToDevice:
        return CU_MEMORYTYPE_DEVICE;
    default:
        return CU_MEMORYTYPE_UNIFIED;
    }
}

/* Where an array takes part, the runtime counts x and width in its elements, else in bytes. */
CUresult rt_copy_params(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    size_t from = 1, to = 1;
    CUresult r = CUDA_SUCCESS;
    if (p->srcArray)
        r = rt_element_bytes((CUarray)p->srcArray, &from);
    if (!r && p->dstArray)
        r = rt_element_bytes((CUarray)p->dstArray, &to);
    if (r)
        return r;

    memset(out, 0, sizeof *out);
    out->srcXInBytes = p->srcPos.x * from;
    out->srcY = p->srcPos.y;
    out->srcZ = p->srcPos.z;
    out->dstXInBytes = p->dstPos.x * to;
    out->dstY = p->dstPos.y;
    out->dstZ = p->dstPos.z;
    if (p->srcArray) {
        out->srcMemoryType = CU_MEMORYTYPE_ARRAY;
        out->srcArray = (CUarray)p->srcArray;
    } else {
        out->srcMemoryType = rt_source_type(p->kind);
        out->srcHost = p->srcPtr.ptr;
        out->srcDevice = RT_ADDRESS(p->srcPtr.ptr);
        out->srcPitch = p->srcPtr.pitch;
        out->srcHeight = p->srcPtr.ysize;
    }
    if (p->dstArray) {
        out->dstMemoryType = CU_MEMORYTYPE_ARRAY;
        out->dstArray = (CUarray)p->dstArray;
    } else {
        out->dstMemoryType = rt_target_type(p->kind);
        out->dstHost = p->dstPtr.ptr;
        out->dstDevice = RT_ADDRESS(p->dstPtr.ptr);
        out->dstPitch = p->dstPtr.pitch;
        out->dstHeight = p->dstPtr.ysize;
    }
    out->WidthInBytes = p->extent.width * (p->srcArray ? from : to);
    out->Height = p->extent.height;
    out->Depth = p->extent.depth;
    return CUDA_SUCCESS;
}

RT_API cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice,
                                  size_t count)
{
    RT(cudaMemcpyPeer, 4000, dst, dstDevice, src, srcDevice, count);
    CUcontext to, from;
    CUresult r = rt_primary(dstDevice, &to);
    if (!r)
        r = rt_primary(srcDevice, &from);
    return RT_END(r ? r : drv.cuMemcpyPeer(RT_ADDRESS(dst), to, RT_ADDRESS(src), from, count));
}

RT_API cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice,
                                       size_t count, cudaStream_t stream)
{
    RT(cudaMemcpyPeerAsync, 4000, dst, dstDevice, src, srcDevice, count, stream);
    CUcontext to, from;
    CUresult r = rt_primary(dstDevice, &to);
    if (!r)
        r = rt_primary(srcDevice, &from);
    return RT_END(
        r ? r : drv.cuMemcpyPeerAsync(RT_ADDRESS(dst), to, RT_ADDRESS(src), from, count, stream));
}

RT_API cudaError_t cudaGetSymbolAddress(void **devPtr, const void *symbol)
{
    RT(cudaGetSymbolAddress, 3020, devPtr, symbol);
    CUdeviceptr p = 0;
    size_t size;
    CUresult r = rt_symbol(symbol, &p, &size);
    if (!r)
        *devPtr = (void *)(uintptr_t)p;
    return RT_END(r);
}

RT_API cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
    RT(cudaGetSymbolSize, 3020, size, symbol);
    CUdeviceptr p;
    return RT_END(rt_symbol(symbol, &p, size));
}
