/* Streams that record a graph instead of working. A capture begins in one stream and takes in those
   that wait for its events. What no capture allows (waiting, allocating, asking for an event ...)
   fails and invalidates it, unless the thread's capture mode says otherwise. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sim_capture *captures; /* under sim_lock */
static atomic_int active;
static uint64_t ids;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static int me(void)
{
    return (int)syscall(SYS_gettid);
}

static struct sim_capture *by_id(uint64_t id)
{
    struct sim_capture *c = captures;

    while (c && c->id != id)
        c = c->next;
    return c;
}

void sim_capture_last(CUstream s, const CUgraphNode *nodes, size_t count, bool too)
{
    size_t kept = too ? s->last_count : 0;
    CUgraphNode *grown = realloc(s->last, (kept + count + 1) * sizeof *grown);

    if (!grown)
        abort();
    s->last = grown;
    memcpy(s->last + kept, nodes, count * sizeof *nodes);
    s->last_count = kept + count;
}

static void join(CUstream s, struct sim_capture *c, const CUgraphNode *nodes, size_t count)
{
    s->capture = c;
    s->joined = c->streams;
    c->streams = s;
    sim_capture_last(s, nodes, count, false);
}

CUresult sim_capture_unsafe(void)
{
    CUresult r = CUDA_SUCCESS;

    if (!atomic_load(&active) || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&sim_lock);
    for (struct sim_capture *c = captures; c; c = c->next) {
        bool mine = c->thread == me() && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;

        if (mine || (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                     c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
            c->invalid = true;
            r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    pthread_mutex_unlock(&sim_lock);
    return r;
}

CUresult sim_capture_sync(CUstream s)
{
    if (s->capture) {
        s->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return sim_capture_legacy(s);
}

CUresult sim_capture_legacy(CUstream s)
{
    CUresult r = CUDA_SUCCESS;

    if (!s->legacy || !atomic_load(&active))
        return CUDA_SUCCESS;
    pthread_mutex_lock(&sim_lock);
    for (struct sim_capture *c = captures; c; c = c->next) {
        if (!(c->origin->flags & CU_STREAM_NON_BLOCKING) && c->origin->context == s->context) {
            c->invalid = true;
            r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    pthread_mutex_unlock(&sim_lock);
    return r;
}

CUresult sim_capture_add(CUstream s, const struct sim_work *w)
{
    CUgraphNode node = NULL;

    if (s->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUresult r = sim_node_add(s->capture->graph, s->last, s->last_count, w, &node);
    if (!r)
        sim_capture_last(s, &node, 1, false);
    return r;
}

void sim_capture_record(CUevent e, CUstream s)
{
    CUgraphNode *copy = realloc(e->last, (s->last_count + 1) * sizeof *copy);

    if (!copy)
        return;
    if (s->last_count)
        memcpy(copy, s->last, s->last_count * sizeof *copy);
    e->last = copy;
    e->last_count = s->last_count;
    e->capture_id = s->capture->id;
    e->recorded = false;
}

CUresult sim_capture_wait(CUstream s, CUevent e)
{
    CUresult r = CUDA_SUCCESS;

    pthread_mutex_lock(&sim_lock);
    struct sim_capture *c = by_id(e->capture_id);
    if (!c)
        r = CUDA_ERROR_CAPTURED_EVENT;
    else if (s->legacy)
        r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    else if (s->capture && s->capture != c)
        r = CUDA_ERROR_STREAM_CAPTURE_MERGE;
    else if (s->capture)
        sim_capture_last(s, e->last, e->last_count, true);
    else
        join(s, c, e->last, e->last_count);
    if (r && c)
        c->invalid = true;
    pthread_mutex_unlock(&sim_lock);
    return r;
}

static CUresult begin(CUstream handle, CUgraph graph, const CUgraphNode *nodes, size_t count,
                      CUstreamCaptureMode mode)
{
    SIM_STREAM_OR_RETURN(s, handle);
    if ((int)mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct sim_capture *c = calloc(1, sizeof *c);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->given = graph != NULL;
    c->graph = graph ? graph : sim_graph_new(false);
    c->origin = s;
    c->mode = mode;
    c->thread = me();
    pthread_mutex_lock(&sim_lock);
    c->id = ++ids;
    c->next = captures;
    captures = c;
    join(s, c, nodes, count);
    atomic_fetch_add(&active, 1);
    pthread_mutex_unlock(&sim_lock);
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamBeginCapture(CUstream hStream)
{
    return begin(hStream, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult sim_cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    return begin(hStream, NULL, NULL, 0, mode);
}

CUresult sim_cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                         const CUgraphNode *dependencies,
                                         const CUgraphEdgeData *dependencyData,
                                         size_t numDependencies, CUstreamCaptureMode mode)
{
    (void)dependencyData;
    if (!sim_is(hGraph, SIM_GRAPH) || (numDependencies && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    return begin(hStream, hGraph, dependencies, numDependencies, mode);
}

/* does `node` come before one of those, or is it one? */
static bool reached(CUgraphNode node, const CUgraphNode *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (from[i] == node || reached(node, from[i]->needs, from[i]->need_count))
            return true;
    }
    return false;
}

CUresult sim_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    CUresult r = CUDA_SUCCESS;

    SIM_STREAM_OR_RETURN(s, hStream);
    if (!phGraph)
        return CUDA_ERROR_INVALID_VALUE;
    *phGraph = NULL;
    struct sim_capture *c = s->capture;
    if (!c)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != s)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != me())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (c->invalid)
        r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    pthread_mutex_lock(&sim_lock);
    for (CUstream o = c->streams, next; o; o = next) {
        next = o->joined;
        for (size_t i = 0; !r && i < o->last_count; i++) {
            if (!reached(o->last[i], s->last, s->last_count))
                r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        }
        o->capture = NULL;
        o->joined = NULL;
    }
    for (struct sim_capture **p = &captures; *p; p = &(*p)->next) {
        if (*p == c) {
            *p = c->next;
            break;
        }
    }
    atomic_fetch_sub(&active, 1);
    pthread_mutex_unlock(&sim_lock);
    if (!r)
        *phGraph = c->graph;
    else if (!c->given)
        sim_graph_free(c->graph);
    free(c);
    return r;
}

static CUstreamCaptureStatus status(CUstream s)
{
    if (!s->capture)
        return CU_STREAM_CAPTURE_STATUS_NONE;
    return s->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                               : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult sim_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    if (!captureStatus)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = sim_capture_legacy(s);
    if (!r)
        *captureStatus = status(s);
    return r;
}

CUresult sim_cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                       cuuint64_t *id_out, CUgraph *graph_out,
                                       const CUgraphNode **dependencies_out,
                                       const CUgraphEdgeData **edgeData_out,
                                       size_t *numDependencies_out)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    if (!captureStatus_out)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = sim_capture_legacy(s);
    if (r)
        return r;
    *captureStatus_out = status(s);
    if (*captureStatus_out != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (id_out)
        *id_out = s->capture->id;
    if (graph_out)
        *graph_out = s->capture->graph;
    if (dependencies_out)
        *dependencies_out = s->last;
    if (edgeData_out)
        *edgeData_out = NULL;
    if (numDependencies_out)
        *numDependencies_out = s->last_count;
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                       cuuint64_t *id_out, CUgraph *graph_out,
                                       const CUgraphNode **dependencies_out,
                                       size_t *numDependencies_out)
{
    return sim_cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out,
                                         dependencies_out, NULL, numDependencies_out);
}

CUresult sim_cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                    cuuint64_t *id_out)
{
    return sim_cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, NULL, NULL, NULL,
                                         NULL);
}

CUresult sim_cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                                  const CUgraphEdgeData *dependencyData,
                                                  size_t numDependencies, unsigned int flags)
{
    (void)dependencyData;
    SIM_STREAM_OR_RETURN(s, hStream);
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (numDependencies && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    if (!s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    sim_capture_last(s, dependencies, numDependencies, flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies,
                                               size_t numDependencies, unsigned int flags)
{
    return sim_cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, NULL, numDependencies,
                                                    flags);
}

CUresult sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = thread_mode;

    if (!mode || (int)*mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
