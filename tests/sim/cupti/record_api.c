/* Records of calls: the API's, what waits, what CUPTI itself costs. With the lock held. */
#include "tests/sim/cupti/cupti_sim.h"
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static CUpti_ActivityThreadIdType id_type = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;

uint32_t cupti_thread_id(void)
{
    if (id_type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
        return (uint32_t)syscall(SYS_gettid);
    return (uint32_t)(uintptr_t)pthread_self();
}

SIM_API CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
    if (type != CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT &&
        type != CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
        return CUPTI_ERROR_NOT_SUPPORTED;
    id_type = type;
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type)
{
    if (!type)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *type = id_type;
    return CUPTI_SUCCESS;
}

void cupti_record_call(const struct gtsim_call *call)
{
    if (cupti_records(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION))
        cupti_put_external(call->correlation);
    CUpti_ActivityAPI r = {
        .kind =
            call->domain == GTSIM_DRIVER ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME,
        .cbid = call->cbid,
        .start = call->start_ns,
        .end = call->end_ns,
        .processId = (uint32_t)getpid(),
        .threadId = cupti_thread_id(),
        .correlationId = call->correlation,
        .returnValue = (uint32_t)call->result,
    };
    cupti_put(&r, sizeof r);
}

/* Which stream a call waits for: all of these have it as their first parameter. */
static CUstream stream_of(const struct gtsim_call *call)
{
    return call->params ? ((const cuStreamSynchronize_params *)call->params)->hStream : NULL;
}

void cupti_record_sync(const struct gtsim_call *call)
{
    if (call->domain != GTSIM_DRIVER || !cupti_records(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION))
        return;
    CUpti_ActivitySynchronization2 r;
    memset(&r, 0, sizeof r);
    r.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    r.start = call->start_ns;
    r.end = call->end_ns;
    r.correlationId = call->correlation;
    r.contextId = call->context_id;
    r.streamId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    r.cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    r.returnValue = (uint32_t)call->result;
    switch (call->cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize:
        r.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
        break;
    case CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz:
        r.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
        r.streamId = cupti_driver.stream_id(call->context, stream_of(call));
        break;
    case CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent_ptsz:
        r.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
        r.streamId = cupti_driver.stream_id(call->context, stream_of(call));
        break;
    case CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize:
        r.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
        break;
    default:
        return;
    }
    cupti_put(&r, sizeof r);
}

void cupti_record_flush(void)
{
    if (!cupti_records(CUPTI_ACTIVITY_KIND_OVERHEAD))
        return;
    CUpti_ActivityOverhead3 r;
    memset(&r, 0, sizeof r);
    r.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    r.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
    r.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    r.objectId.pt.processId = (uint32_t)getpid();
    r.objectId.pt.threadId = cupti_thread_id();
    r.start = r.end = cupti_now();
    cupti_put(&r, sizeof r);
}

size_t cupti_record_size(CUpti_ActivityKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
        return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return sizeof(CUpti_ActivityGraphTrace2);
    default:
        return 0;
    }
}
