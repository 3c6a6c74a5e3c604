/* What works in a stream and is the driver's under another name. RT_TWICE. */
#include "tests/sim/cudart/forward.h"

/* clang-format off */
FORWARD2(cudaStreamQuery, 3020, ptsz_v7000, cuStreamQuery, (cudaStream_t s), s)
FORWARD2(cudaStreamSynchronize, 3020, ptsz_v7000, cuStreamSynchronize, (cudaStream_t s), s)
FORWARD2(cudaStreamWaitEvent, 3020, ptsz_v7000, cuStreamWaitEvent,
         (cudaStream_t s, cudaEvent_t e, unsigned flags), s, e, flags)
FORWARD2(cudaStreamGetFlags, 5050, ptsz_v7000, cuStreamGetFlags,
         (cudaStream_t s, unsigned *flags), s, flags)
FORWARD2(cudaStreamGetPriority, 5050, ptsz_v7000, cuStreamGetPriority,
         (cudaStream_t s, int *priority), s, priority)
FORWARD2(cudaStreamGetId, 12000, ptsz_v12000, cuStreamGetId,
         (cudaStream_t s, unsigned long long *id), s, id)
FORWARD2(cudaStreamGetDevice, 12080, ptsz_v12080, cuStreamGetDevice,
         (cudaStream_t s, int *device), s, device)
FORWARD2(cudaStreamAttachMemAsync, 6000, ptsz_v7000, cuStreamAttachMemAsync,
         (cudaStream_t s, void *p, size_t n, unsigned flags), s, p, n, flags)
FORWARD2(cudaStreamAddCallback, 5000, ptsz_v7000, cuStreamAddCallback,
         (cudaStream_t s, cudaStreamCallback_t f, void *data, unsigned flags), s, f, data, flags)
FORWARD2(cudaStreamCopyAttributes, 11000, ptsz_v11000, cuStreamCopyAttributes,
         (cudaStream_t to, cudaStream_t from), to, from)
FORWARD2(cudaStreamGetAttribute, 11000, ptsz_v11000, cuStreamGetAttribute,
         (cudaStream_t s, cudaLaunchAttributeID id, cudaLaunchAttributeValue *v), s, id, v)
FORWARD2(cudaStreamSetAttribute, 11000, ptsz_v11000, cuStreamSetAttribute,
         (cudaStream_t s, cudaLaunchAttributeID id, const cudaLaunchAttributeValue *v), s, id, v)

FORWARD2(cudaStreamBeginCapture, 10000, ptsz_v10000, cuStreamBeginCapture,
         (cudaStream_t s, enum cudaStreamCaptureMode mode), s, mode)
FORWARD2(cudaStreamBeginCaptureToGraph, 12030, ptsz_v12030, cuStreamBeginCaptureToGraph,
         (cudaStream_t s, cudaGraph_t g, const cudaGraphNode_t *d, const cudaGraphEdgeData *e,
          size_t n, enum cudaStreamCaptureMode mode), s, g, d, e, n, mode)
FORWARD2(cudaStreamEndCapture, 10000, ptsz_v10000, cuStreamEndCapture,
         (cudaStream_t s, cudaGraph_t *g), s, g)
FORWARD2(cudaStreamIsCapturing, 10000, ptsz_v10000, cuStreamIsCapturing,
         (cudaStream_t s, enum cudaStreamCaptureStatus *status), s, status)
FORWARD2(cudaStreamGetCaptureInfo, 12030, ptsz_v12030, cuStreamGetCaptureInfo,
         (cudaStream_t s, enum cudaStreamCaptureStatus *status, unsigned long long *id,
          cudaGraph_t *g, const cudaGraphNode_t **d, const cudaGraphEdgeData **e, size_t *n),
         s, status, id, g, d, e, n)
FORWARD2(cudaStreamUpdateCaptureDependencies, 12030, ptsz_v12030, cuStreamUpdateCaptureDependencies,
         (cudaStream_t s, cudaGraphNode_t *d, const cudaGraphEdgeData *e, size_t n, unsigned flags),
         s, d, e, n, flags)

FORWARD2(cudaEventRecord, 3020, ptsz_v7000, cuEventRecord, (cudaEvent_t e, cudaStream_t s), e, s)
FORWARD2(cudaEventRecordWithFlags, 11010, ptsz_v11010, cuEventRecordWithFlags,
         (cudaEvent_t e, cudaStream_t s, unsigned flags), e, s, flags)
FORWARD2(cudaGraphLaunch, 10000, ptsz_v10000, cuGraphLaunch,
         (cudaGraphExec_t g, cudaStream_t s), g, s)
FORWARD2(cudaGraphUpload, 10000, ptsz_v10000, cuGraphUpload,
         (cudaGraphExec_t g, cudaStream_t s), g, s)

FORWARD2(cudaMallocAsync, 11020, ptsz_v11020, cuMemAllocAsync,
         (void **p, size_t n, cudaStream_t s), p, n, s)
FORWARD2(cudaFreeAsync, 11020, ptsz_v11020, cuMemFreeAsync, (void *p, cudaStream_t s), p, s)
FORWARD2(cudaMallocFromPoolAsync, 11020, ptsz_v11020, cuMemAllocFromPoolAsync,
         (void **p, size_t n, cudaMemPool_t pool, cudaStream_t s), p, n, pool, s)
FORWARD2(cudaMemPrefetchAsync, 12020, ptsz_v12020, cuMemPrefetchAsync,
         (const void *p, size_t n, struct cudaMemLocation to, unsigned flags, cudaStream_t s),
         p, n, to, flags, s)
/* clang-format on */
_Static_assert(sizeof(struct cudaMemLocation) == sizeof(CUmemLocation), "passed by value");
