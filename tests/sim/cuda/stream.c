/* Streams: what a handle means, when the next thing in one could start, waiting for them. The
   legacy default stream waits for all blocking streams of its context and they for it; others are
   independent. */
#include "sim.h"
#include <unistd.h>
#include <sys/syscall.h>

static atomic_uint ids = 12;
static atomic_int made; /* by the program and not destroyed */

int sim_streams(void)
{
    return atomic_load(&made);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

CUstream sim_stream_new(CUcontext c, unsigned flags, int priority)
{
    CUstream s = sim_new(SIM_STREAM, sizeof *s);

    if (!s)
        return NULL;
    s->context = c;
    s->flags = flags;
    s->priority = priority;
    s->id = atomic_fetch_add(&ids, 1) + 1;
    return s;
}

void sim_stream_end(CUstream s)
{
    sim_drop(s);
}

/* the default stream of this thread alone, made when it is first used */
static CUstream thread_stream(CUcontext c)
{
    int me = (int)syscall(SYS_gettid);

    pthread_mutex_lock(&sim_lock);
    CUstream s = c->threads;
    while (s && s->thread != me)
        s = s->next;
    if (!s) {
        s = sim_stream_new(c, 0, 0);
        if (s) {
            s->thread = me;
            s->next = c->threads;
            c->threads = s;
        }
    }
    pthread_mutex_unlock(&sim_lock);
    return s;
}

CUstream sim_stream(CUstream handle)
{
    CUcontext c = sim_current();

    if (handle == CU_STREAM_PER_THREAD || (!handle && sim_per_thread))
        return c ? thread_stream(c) : NULL;
    if (!handle || handle == CU_STREAM_LEGACY)
        return c ? c->legacy : NULL;
    return sim_is(handle, SIM_STREAM) ? handle : NULL;
}

static bool blocking(const struct CUstream_st *s)
{
    return !(s->flags & CU_STREAM_NON_BLOCKING);
}

uint64_t sim_stream_ready(CUstream s)
{
    uint64_t ready = later(sim_host_clock(), s->end_ns);

    if (s->legacy)
        return later(ready, s->context->blocking_ns);
    return blocking(s) ? later(ready, s->context->legacy->end_ns) : ready;
}

void sim_stream_extend(CUstream s, uint64_t end)
{
    s->end_ns = later(s->end_ns, end);
    if (blocking(s))
        s->context->blocking_ns = later(s->context->blocking_ns, end);
    s->context->all_ns = later(s->context->all_ns, end);
}

uint64_t sim_stream_done(CUstream s)
{
    pthread_mutex_lock(&sim_lock);
    uint64_t end = later(s->end_ns, s->legacy ? s->context->blocking_ns : 0);
    pthread_mutex_unlock(&sim_lock);
    return end;
}

CUresult sim_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    SIM_CONTEXT_OR_RETURN(c);
    if (!phStream || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    CUstream s = sim_stream_new(c, flags, priority);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    atomic_fetch_add(&made, 1);
    *phStream = s;
    sim_announce(&(struct gtsim_resource){.cbid = 3, .context = c, .stream = s});
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    return sim_cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult sim_cuStreamDestroy_v2(CUstream hStream)
{
    if (!sim_is(hStream, SIM_STREAM) || hStream->legacy || hStream->thread)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_announce(
        &(struct gtsim_resource){.cbid = 4, .context = hStream->context, .stream = hStream});
    atomic_fetch_sub(&made, 1);
    /* what is in it goes on: its end is known to the context */
    pthread_mutex_lock(&sim_lock);
    sim_stream_end(hStream);
    pthread_mutex_unlock(&sim_lock);
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamSynchronize(CUstream hStream)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    CUresult r = sim_capture_sync(s);
    if (r)
        return r;
    sim_wait_until(sim_stream_done(s));
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamQuery(CUstream hStream)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    CUresult r = sim_capture_sync(s);
    if (r)
        return r;
    return sim_poll_answer(sim_stream_done(s));
}

CUresult sim_cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = s->flags;
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetPriority(CUstream hStream, int *priority)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    if (!priority)
        return CUDA_ERROR_INVALID_VALUE;
    *priority = s->priority;
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = s->context;
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = s->context->device;
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    if (!streamId)
        return CUDA_ERROR_INVALID_VALUE;
    *streamId = s->id;
    return CUDA_SUCCESS;
}

SIM_API uint32_t gtsim_stream_id(CUcontext context, CUstream stream)
{
    if (sim_is(stream, SIM_STREAM))
        return stream->id;
    if (!sim_is(context, SIM_CONTEXT))
        return 0;
    if (!stream || stream == CU_STREAM_LEGACY)
        return context->legacy->id;
    if (stream != CU_STREAM_PER_THREAD)
        return 0;
    CUstream s = thread_stream(context);
    return s ? s->id : 0;
}
