/* Copies and sets, in all the ways that the API has: each becomes a 3D copy or a 2D set. */
#include "sim.h"
#include <string.h>

/* Bytes that a side touches, from its first. */
static size_t extent(const struct sim_work *w, const struct sim_side *s)
{
    return (w->copy.depth - 1) * s->slice + (w->copy.height - 1) * s->pitch + w->copy.width;
}

static CUresult side(const struct sim_work *w, struct sim_side *s, CUmemorytype type,
                     const void *host, CUdeviceptr device, CUarray array, size_t pitch,
                     size_t height, size_t x, size_t y, size_t z)
{
    const char *base = type == CU_MEMORYTYPE_HOST ? host : (const char *)device;

    if (type == CU_MEMORYTYPE_ARRAY) {
        if (!sim_is(array, SIM_ARRAY))
            return CUDA_ERROR_INVALID_HANDLE;
        base = array->data;
        pitch = array->pitch;
        height = array->height;
    }
    if (!base)
        return CUDA_ERROR_INVALID_VALUE;
    if (w->copy.height > 1 || w->copy.depth > 1) {
        pitch = pitch ? pitch : w->copy.width;
        if (pitch < w->copy.width)
            return CUDA_ERROR_INVALID_VALUE;
    }
    s->pitch = pitch;
    s->slice = pitch * (height ? height : w->copy.height);
    s->base = (char *)(uintptr_t)base + z * s->slice + y * pitch + x;
    s->kind = type == CU_MEMORYTYPE_ARRAY ? GTSIM_ARRAY : GTSIM_PAGEABLE;
    s->device = type == CU_MEMORYTYPE_ARRAY ? array->device : -1;
    if (type == CU_MEMORYTYPE_ARRAY)
        return s->base + extent(w, s) > array->data + array->bytes ? CUDA_ERROR_INVALID_VALUE
                                                                   : CUDA_SUCCESS;
    pthread_mutex_lock(&sim_lock);
    const struct sim_block *b = sim_block_of(s->base);
    bool inside = b && s->base + extent(w, s) <= b->start + b->size;
    if (b) {
        s->kind = b->kind;
        s->device = b->device;
    }
    pthread_mutex_unlock(&sim_lock);
    return inside || (!b && type != CU_MEMORYTYPE_DEVICE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_copy_work(struct sim_work *w, const CUDA_MEMCPY3D *c)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    memset(w, 0, sizeof *w);
    w->type = CU_GRAPH_NODE_TYPE_MEMCPY;
    w->copy.width = c->WidthInBytes;
    w->copy.height = c->Height;
    w->copy.depth = c->Depth;
    w->copy.asked = *c;
    if (!c->WidthInBytes || !c->Height || !c->Depth)
        return CUDA_SUCCESS;
    CUresult r = side(w, &w->copy.from, c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray,
                      c->srcPitch, c->srcHeight, c->srcXInBytes, c->srcY, c->srcZ);
    if (r)
        return r;
    return side(w, &w->copy.to, c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray,
                c->dstPitch, c->dstHeight, c->dstXInBytes, c->dstY, c->dstZ);
}

static CUresult copy(const CUDA_MEMCPY3D *c, CUstream handle, bool wait)
{
    struct sim_work w;

    SIM_STREAM_OR_RETURN(s, handle);
    CUresult r = sim_copy_work(&w, c);
    if (r || !w.copy.width || !w.copy.height || !w.copy.depth)
        return r;
    return sim_submit(s, &w, wait);
}

static CUresult linear(CUmemorytype to_type, const void *to, CUmemorytype from_type,
                       const void *from, size_t n, CUstream s, bool wait)
{
    CUDA_MEMCPY3D c = {.srcMemoryType = from_type,
                       .srcHost = from,
                       .srcDevice = (CUdeviceptr)from,
                       .dstMemoryType = to_type,
                       .dstHost = (void *)(uintptr_t)to,
                       .dstDevice = (CUdeviceptr)to,
                       .WidthInBytes = n,
                       .Height = 1,
                       .Depth = 1};

    return copy(&c, s, wait);
}

#define H CU_MEMORYTYPE_HOST
#define D CU_MEMORYTYPE_DEVICE
#define U CU_MEMORYTYPE_UNIFIED

CUresult sim_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return linear(U, (void *)dst, U, (void *)src, ByteCount, NULL, true);
}

CUresult sim_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return linear(U, (void *)dst, U, (void *)src, ByteCount, hStream, false);
}

CUresult sim_cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    return linear(D, (void *)dstDevice, H, srcHost, ByteCount, NULL, true);
}

CUresult sim_cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                                  CUstream hStream)
{
    return linear(D, (void *)dstDevice, H, srcHost, ByteCount, hStream, false);
}

CUresult sim_cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    return linear(H, dstHost, D, (void *)srcDevice, ByteCount, NULL, true);
}

CUresult sim_cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                  CUstream hStream)
{
    return linear(H, dstHost, D, (void *)srcDevice, ByteCount, hStream, false);
}

/* the host does not wait for this one */
CUresult sim_cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    return linear(D, (void *)dstDevice, D, (void *)srcDevice, ByteCount, NULL, false);
}

CUresult sim_cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                  CUstream hStream)
{
    return linear(D, (void *)dstDevice, D, (void *)srcDevice, ByteCount, hStream, false);
}

CUresult sim_cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                          CUcontext srcContext, size_t ByteCount)
{
    if (!sim_is(dstContext, SIM_CONTEXT) || !sim_is(srcContext, SIM_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    return linear(D, (void *)dstDevice, D, (void *)srcDevice, ByteCount, NULL, false);
}

CUresult sim_cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                               CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
    if (!sim_is(dstContext, SIM_CONTEXT) || !sim_is(srcContext, SIM_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    return linear(D, (void *)dstDevice, D, (void *)srcDevice, ByteCount, hStream, false);
}

static CUresult array_copy(CUarray to_array, CUmemorytype to_type, const void *to,
                           CUarray from_array, CUmemorytype from_type, const void *from,
                           size_t to_offset, size_t from_offset, size_t n, CUstream s, bool wait)
{
    CUDA_MEMCPY3D c = {.srcMemoryType = from_type,
                       .srcXInBytes = from_offset,
                       .srcHost = from,
                       .srcDevice = (CUdeviceptr)from,
                       .srcArray = from_array,
                       .dstMemoryType = to_type,
                       .dstXInBytes = to_offset,
                       .dstHost = (void *)(uintptr_t)to,
                       .dstDevice = (CUdeviceptr)to,
                       .dstArray = to_array,
                       .WidthInBytes = n,
                       .Height = 1,
                       .Depth = 1};

    return copy(&c, s, wait);
}

#define A CU_MEMORYTYPE_ARRAY

CUresult sim_cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice,
                             size_t ByteCount)
{
    return array_copy(dstArray, A, NULL, NULL, D, (void *)srcDevice, dstOffset, 0, ByteCount, NULL,
                      false);
}

CUresult sim_cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset,
                             size_t ByteCount)
{
    return array_copy(NULL, D, (void *)dstDevice, srcArray, A, NULL, 0, srcOffset, ByteCount, NULL,
                      false);
}

CUresult sim_cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
                             size_t ByteCount)
{
    return array_copy(dstArray, A, NULL, NULL, H, srcHost, dstOffset, 0, ByteCount, NULL, true);
}

CUresult sim_cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
                                  size_t ByteCount, CUstream hStream)
{
    return array_copy(dstArray, A, NULL, NULL, H, srcHost, dstOffset, 0, ByteCount, hStream, false);
}

CUresult sim_cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    return array_copy(NULL, H, dstHost, srcArray, A, NULL, 0, srcOffset, ByteCount, NULL, true);
}

CUresult sim_cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset,
                                  size_t ByteCount, CUstream hStream)
{
    return array_copy(NULL, H, dstHost, srcArray, A, NULL, 0, srcOffset, ByteCount, hStream, false);
}

CUresult sim_cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
                             size_t ByteCount)
{
    return array_copy(dstArray, A, NULL, srcArray, A, NULL, dstOffset, srcOffset, ByteCount, NULL,
                      false);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream s, bool wait)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D d = {.srcXInBytes = c->srcXInBytes,
                       .srcY = c->srcY,
                       .srcMemoryType = c->srcMemoryType,
                       .srcHost = c->srcHost,
                       .srcDevice = c->srcDevice,
                       .srcArray = c->srcArray,
                       .srcPitch = c->srcPitch,
                       .dstXInBytes = c->dstXInBytes,
                       .dstY = c->dstY,
                       .dstMemoryType = c->dstMemoryType,
                       .dstHost = c->dstHost,
                       .dstDevice = c->dstDevice,
                       .dstArray = c->dstArray,
                       .dstPitch = c->dstPitch,
                       .WidthInBytes = c->WidthInBytes,
                       .Height = c->Height,
                       .Depth = 1};
    return copy(&d, s, wait);
}

CUresult sim_cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d(pCopy, NULL, true);
}

CUresult sim_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d(pCopy, NULL, true);
}

CUresult sim_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return copy_2d(pCopy, hStream, false);
}

CUresult sim_cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
    return copy(pCopy, NULL, true);
}

CUresult sim_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
    return copy(pCopy, hStream, false);
}

/* the same fields but for what were reserved ones */
static CUresult copy_peer(const CUDA_MEMCPY3D_PEER *p, CUstream s, bool wait)
{
    CUDA_MEMCPY3D c;

    _Static_assert(sizeof *p == sizeof c, "as CUDA_MEMCPY3D");
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&c, p, sizeof c);
    return copy(&c, s, wait);
}

CUresult sim_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
    return copy_peer(pCopy, NULL, true);
}

CUresult sim_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
    return copy_peer(pCopy, hStream, false);
}
