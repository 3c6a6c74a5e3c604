/* Memory, pools, streams, events and devices: the driver's functions under another name. */
#include "tests/sim/cudart/forward.h"

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "pool");
_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc), "pool access");
_Static_assert(sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData), "export");
_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "passed by value");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "passed by value");

/* clang-format off */
FORWARD(cudaMalloc, 3020, cuMemAlloc, (void **p, size_t n), p, n)
FORWARD(cudaMallocManaged, 6000, cuMemAllocManaged, (void **p, size_t n, unsigned flags), p, n, flags)
FORWARD(cudaHostAlloc, 3020, cuMemHostAlloc, (void **p, size_t n, unsigned flags), p, n, flags)
FORWARD(cudaHostRegister, 4000, cuMemHostRegister, (void *p, size_t n, unsigned flags), p, n, flags)
FORWARD(cudaHostUnregister, 4000, cuMemHostUnregister, (void *p), p)
FORWARD(cudaHostGetDevicePointer, 3020, cuMemHostGetDevicePointer,
        (void **d, void *p, unsigned flags), d, p, flags)
FORWARD(cudaHostGetFlags, 3020, cuMemHostGetFlags, (unsigned *flags, void *p), flags, p)
FORWARD(cudaMemGetInfo, 3020, cuMemGetInfo, (size_t *unused, size_t *total), unused, total)
FORWARD(cudaMemAdvise, 12020, cuMemAdvise,
        (const void *p, size_t n, enum cudaMemoryAdvise a, struct cudaMemLocation l), p, n, a, l)
FORWARD(cudaMemRangeGetAttribute, 8000, cuMemRangeGetAttribute,
        (void *d, size_t dn, enum cudaMemRangeAttribute a, const void *p, size_t n), d, dn, a, p, n)
FORWARD(cudaMemRangeGetAttributes, 8000, cuMemRangeGetAttributes,
        (void **d, size_t *dn, enum cudaMemRangeAttribute *a, size_t an, const void *p, size_t n),
        d, dn, a, an, p, n)
FORWARD(cudaGetMipmappedArrayLevel, 5000, cuMipmappedArrayGetLevel,
        (cudaArray_t *a, cudaMipmappedArray_const_t m, unsigned level), a, m, level)

FORWARD(cudaMemPoolCreate, 11020, cuMemPoolCreate,
        (cudaMemPool_t *pool, const struct cudaMemPoolProps *props), pool, props)
FORWARD(cudaMemPoolDestroy, 11020, cuMemPoolDestroy, (cudaMemPool_t pool), pool)
FORWARD(cudaMemPoolTrimTo, 11020, cuMemPoolTrimTo, (cudaMemPool_t pool, size_t keep), pool, keep)
FORWARD(cudaMemPoolSetAttribute, 11020, cuMemPoolSetAttribute,
        (cudaMemPool_t pool, enum cudaMemPoolAttr a, void *v), pool, a, v)
FORWARD(cudaMemPoolGetAttribute, 11020, cuMemPoolGetAttribute,
        (cudaMemPool_t pool, enum cudaMemPoolAttr a, void *v), pool, a, v)
FORWARD(cudaMemPoolSetAccess, 11020, cuMemPoolSetAccess,
        (cudaMemPool_t pool, const struct cudaMemAccessDesc *d, size_t n), pool, d, n)
FORWARD(cudaMemPoolGetAccess, 11020, cuMemPoolGetAccess,
        (enum cudaMemAccessFlags *flags, cudaMemPool_t pool, struct cudaMemLocation *l),
        flags, pool, l)
FORWARD(cudaMemPoolExportToShareableHandle, 11020, cuMemPoolExportToShareableHandle,
        (void *h, cudaMemPool_t pool, enum cudaMemAllocationHandleType t, unsigned flags),
        h, pool, t, flags)
FORWARD(cudaMemPoolImportFromShareableHandle, 11020, cuMemPoolImportFromShareableHandle,
        (cudaMemPool_t *pool, void *h, enum cudaMemAllocationHandleType t, unsigned flags),
        pool, h, t, flags)
FORWARD(cudaMemPoolExportPointer, 11020, cuMemPoolExportPointer,
        (struct cudaMemPoolPtrExportData *d, void *p), d, p)
FORWARD(cudaMemPoolImportPointer, 11020, cuMemPoolImportPointer,
        (void **p, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *d), p, pool, d)
FORWARD(cudaDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool,
        (cudaMemPool_t *pool, int device), pool, device)
FORWARD(cudaDeviceSetMemPool, 11020, cuDeviceSetMemPool, (int device, cudaMemPool_t pool), device, pool)
FORWARD(cudaDeviceGetMemPool, 11020, cuDeviceGetMemPool, (cudaMemPool_t *pool, int device), pool, device)
FORWARD(cudaMemGetDefaultMemPool, 13000, cuMemGetDefaultMemPool,
        (cudaMemPool_t *pool, struct cudaMemLocation *l, enum cudaMemAllocationType t), pool, l, t)
FORWARD(cudaMemGetMemPool, 13000, cuMemGetMemPool,
        (cudaMemPool_t *pool, struct cudaMemLocation *l, enum cudaMemAllocationType t), pool, l, t)
FORWARD(cudaMemSetMemPool, 13000, cuMemSetMemPool,
        (struct cudaMemLocation *l, enum cudaMemAllocationType t, cudaMemPool_t pool), l, t, pool)

FORWARD(cudaIpcGetEventHandle, 4010, cuIpcGetEventHandle, (cudaIpcEventHandle_t *h, cudaEvent_t e), h, e)
FORWARD(cudaIpcOpenEventHandle, 4010, cuIpcOpenEventHandle, (cudaEvent_t *e, cudaIpcEventHandle_t h), e, h)
FORWARD(cudaIpcGetMemHandle, 4010, cuIpcGetMemHandle, (cudaIpcMemHandle_t *h, void *p), h, p)
FORWARD(cudaIpcOpenMemHandle, 4010, cuIpcOpenMemHandle,
        (void **p, cudaIpcMemHandle_t h, unsigned flags), p, h, flags)
FORWARD(cudaIpcCloseMemHandle, 4010, cuIpcCloseMemHandle, (void *p), p)

FORWARD(cudaStreamCreateWithFlags, 5000, cuStreamCreate, (cudaStream_t *s, unsigned flags), s, flags)
FORWARD(cudaStreamCreateWithPriority, 5050, cuStreamCreateWithPriority,
        (cudaStream_t *s, unsigned flags, int priority), s, flags, priority)
FORWARD(cudaStreamDestroy, 5050, cuStreamDestroy, (cudaStream_t s), s)
FORWARD(cudaThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode,
        (enum cudaStreamCaptureMode *mode), mode)
FORWARD(cudaEventCreateWithFlags, 3020, cuEventCreate, (cudaEvent_t *e, unsigned flags), e, flags)
FORWARD(cudaEventQuery, 3020, cuEventQuery, (cudaEvent_t e), e)
FORWARD(cudaEventSynchronize, 3020, cuEventSynchronize, (cudaEvent_t e), e)
FORWARD(cudaEventDestroy, 3020, cuEventDestroy, (cudaEvent_t e), e)
FORWARD(cudaEventElapsedTime, 12080, cuEventElapsedTime,
        (float *ms, cudaEvent_t from, cudaEvent_t to), ms, from, to)

FORWARD(cudaDeviceGetLimit, 3020, cuCtxGetLimit, (size_t *v, enum cudaLimit limit), v, limit)
FORWARD(cudaDeviceSetLimit, 3020, cuCtxSetLimit, (enum cudaLimit limit, size_t v), limit, v)
FORWARD(cudaDeviceGetCacheConfig, 3020, cuCtxGetCacheConfig, (enum cudaFuncCache *c), c)
FORWARD(cudaDeviceSetCacheConfig, 3020, cuCtxSetCacheConfig, (enum cudaFuncCache c), c)
FORWARD(cudaDeviceGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange,
        (int *least, int *greatest), least, greatest)
FORWARD_DRIVER(cudaDeviceGetAttribute, 5000, cuDeviceGetAttribute,
               (int *v, enum cudaDeviceAttr a, int device), v, a, device)
FORWARD_DRIVER(cudaDeviceGetByPCIBusId, 4010, cuDeviceGetByPCIBusId, (int *d, const char *id), d, id)
FORWARD_DRIVER(cudaDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId, (char *id, int n, int d), id, n, d)
FORWARD_DRIVER(cudaDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer,
               (int *can, int device, int peer), can, device, peer)
FORWARD_DRIVER(cudaDeviceGetP2PAttribute, 8000, cuDeviceGetP2PAttribute,
               (int *v, enum cudaDeviceP2PAttr a, int from, int to), v, a, from, to)
FORWARD(cudaDeviceGraphMemTrim, 11040, cuDeviceGraphMemTrim, (int device), device)
FORWARD(cudaDeviceGetGraphMemAttribute, 11040, cuDeviceGetGraphMemAttribute,
        (int device, enum cudaGraphMemAttributeType a, void *v), device, a, v)
FORWARD(cudaDeviceSetGraphMemAttribute, 11040, cuDeviceSetGraphMemAttribute,
        (int device, enum cudaGraphMemAttributeType a, void *v), device, a, v)
/* clang-format on */
