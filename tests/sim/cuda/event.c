/* Events: the time at which their stream got to them, which is known as soon as they are recorded.
 */
#include "sim.h"

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* It ends with its context. */
static bool is_event(const struct CUevent_st *e)
{
    return sim_is(e, SIM_EVENT) && sim_is(e->context, SIM_CONTEXT) &&
           e->context->id == e->context_id;
}

CUresult sim_cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    SIM_CONTEXT_OR_RETURN(c);
    if (!phEvent || Flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    if (Flags & CU_EVENT_INTERPROCESS)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUevent e = sim_new(SIM_EVENT, sizeof *e);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->context = c;
    e->context_id = c->id;
    e->flags = Flags;
    *phEvent = e;
    return CUDA_SUCCESS;
}

CUresult sim_cuEventDestroy_v2(CUevent hEvent)
{
    if (!is_event(hEvent))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_drop(hEvent);
    return CUDA_SUCCESS;
}

CUresult sim_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    if (!is_event(hEvent))
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->context != hEvent->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->capture && !flags) {
        /* marks a place in the capture, for other streams to wait for */
        sim_capture_record(hEvent, s);
        return CUDA_SUCCESS;
    }
    struct sim_work w = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = hEvent};
    return sim_submit(s, &w, false);
}

CUresult sim_cuEventRecord(CUevent hEvent, CUstream hStream)
{
    return sim_cuEventRecordWithFlags(hEvent, hStream, 0);
}

CUresult sim_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    if (!is_event(hEvent))
        return CUDA_ERROR_INVALID_HANDLE;
    if (hEvent->capture_id)
        return sim_capture_wait(s, hEvent);
    if (s->capture && !(Flags & CU_EVENT_WAIT_EXTERNAL))
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    struct sim_work w = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .event = hEvent};
    return sim_submit(s, &w, false);
}

/* an event that a capture recorded has no time */
static CUresult usable(CUevent e)
{
    if (!is_event(e))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult r = sim_capture_unsafe();
    if (r)
        return r;
    return e->capture_id ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

CUresult sim_cuEventSynchronize(CUevent hEvent)
{
    CUresult r = usable(hEvent);

    if (!r && hEvent->recorded)
        sim_wait_until(hEvent->ns);
    return r;
}

CUresult sim_cuEventQuery(CUevent hEvent)
{
    CUresult r = usable(hEvent);

    if (r || !hEvent->recorded)
        return r;
    return sim_poll_answer(hEvent->ns);
}

CUresult sim_cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    if (!pMilliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_event(hStart) || !is_event(hEnd))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!hStart->recorded || !hEnd->recorded ||
        (hStart->flags | hEnd->flags) & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    if (later(hStart->ns, hEnd->ns) > sim_clock())
        return CUDA_ERROR_NOT_READY;
    *pMilliseconds = (float)((double)(int64_t)(hEnd->ns - hStart->ns) / 1e6);
    return CUDA_SUCCESS;
}
