/* See cuda_events.h. Events are made once for each context and used again. What waits for its end
 * is in a ring; whoever comes next asks for the oldest few, one thread at a time. */
#include "cuda_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/device.h"
#include "core/record.h"
#include "core/session.h"
#include "core/sys.h"
#include "cuda.h"
#include "cupti.h"

atomic_int gt_cuda_events;

/* ---- the driver's functions that we call ---- */

#define CALLS(X)                                                                                   \
    X(cuCtxGetCurrent, (CUcontext *))                                                              \
    X(cuCtxGetDevice, (CUdevice *))                                                                \
    X(cuEventCreate, (CUevent *, unsigned))                                                        \
    X(cuEventDestroy_v2, (CUevent))                                                                \
    X(cuEventElapsedTime, (float *, CUevent, CUevent))                                             \
    X(cuEventQuery, (CUevent))                                                                     \
    X(cuEventRecord, (CUevent, CUstream))                                                          \
    X(cuFuncGetName, (const char **, CUfunction))                                                  \
    X(cuStreamIsCapturing, (CUstream, unsigned *))                                                 \
    X(cuThreadExchangeStreamCaptureMode, (unsigned *))
enum {
#define X(name, parameters) AT_##name,
    CALLS(X)
#undef X
        COUNT
};
static const struct gt_hook names[] = {
#define X(name, parameters) {#name, NULL, NULL},
    CALLS(X)
#undef X
};
static struct gt_cuda_real real[COUNT];
static const char *const libraries[] = {"libcuda.so.1", "libcuda.so", NULL};
static const struct gt_cuda_api driver = {names, NULL, real, COUNT, libraries};

/* CUDA_ERROR_NOT_FOUND where the driver is too old to have it */
#define CALL(name, type, ...)                                                                      \
    (gt_cuda_real(&driver, real, AT_##name)                                                        \
         ? ((CUresult(*) type)gt_cuda_real(&driver, real, AT_##name))(__VA_ARGS__)                 \
         : 500u)

/* ---- what waits ---- */

#define WAITING 4096u
#define LOOK_AT 64u /* at the most, each time */
#define RUNNING 2u  /* and so many that have not ended: each costs a call of the driver */
#define CONTEXTS 64u
#define KEPT 256u /* events of a context that wait for their next use */

struct waiting {
    struct gt_cuda_pair pair;
    struct gt_origin origin;
    struct gt_device_activity activity;
    char name[64]; /* of what is no kernel */
};

/* Who counts, by the address of its errno; NULL: nobody. The rest is that thread's. */
static _Atomic(const int *) busy;
/* the process that started the driver: in a fork's child all this is its parent's */
static pid_t owner;
static _Atomic(void *) memory;
static struct waiting *ring; /* WAITING of them */
static uint32_t first, count;
static struct context {
    CUcontext context;
    uint32_t kept;
    CUevent events[KEPT];
} contexts[CONTEXTS];

static int try_enter(void)
{
    const int *nobody = NULL;
    return atomic_compare_exchange_strong_explicit(&busy, &nobody, &errno, memory_order_acquire,
                                                   memory_order_relaxed);
}

static void enter(void)
{
    while (!try_enter())
        ;
}

/* 0 in the child of a fork, before it records and after. */
static int is_mine(void)
{
    return atomic_load_explicit(&gt_fork.phase, memory_order_acquire) == GT_PHASE_OPEN &&
           gt_session.pid == (uint32_t)owner;
}

static void leave(void)
{
    atomic_store_explicit(&busy, NULL, memory_order_release);
}

/* ---- events ---- */

static struct context *pool(CUcontext c)
{
    for (uint32_t i = 0; i < CONTEXTS; i++)
        if (contexts[i].context == c || !contexts[i].context) {
            contexts[i].context = c;
            return &contexts[i];
        }
    return NULL;
}

static CUevent take(CUcontext c)
{
    struct context *p;
    CUevent e = NULL;
    enter();
    p = pool(c);
    if (p && p->kept)
        e = p->events[--p->kept];
    leave();
    if (!e && CALL(cuEventCreate, (CUevent *, unsigned), &e, 0))
        e = NULL;
    return e;
}

/* `busy` is held. */
static void give(CUcontext c, CUevent e)
{
    struct context *p = e ? pool(c) : NULL;
    if (p && p->kept < KEPT)
        p->events[p->kept++] = e;
    else if (e)
        CALL(cuEventDestroy_v2, (CUevent), e);
}

static void give_pair(const struct gt_cuda_pair *p)
{
    enter();
    give(p->context, p->start);
    give(p->context, p->end);
    leave();
}

/* ---- captures ---- */

/* During a capture in another thread some calls are forbidden, unless a thread says that it knows
 * what it does. */
static unsigned relaxed(void)
{
    unsigned mode = 2; /* CU_STREAM_CAPTURE_MODE_RELAXED */
    if (gt_cuda_captures())
        CALL(cuThreadExchangeStreamCaptureMode, (unsigned *), &mode);
    return mode;
}

static void as_before(unsigned mode)
{
    if (mode != 2)
        CALL(cuThreadExchangeStreamCaptureMode, (unsigned *), &mode);
}

int gt_cuda_captured(CUstream stream)
{
    unsigned status = 0;
    return gt_cuda_captures() &&
           (CALL(cuStreamIsCapturing, (CUstream, unsigned *), stream, &status) || status);
}

/* ---- a call ---- */

int gt_cuda_pair_begin(struct gt_cuda_pair *p, CUstream stream)
{
    *p = (struct gt_cuda_pair){NULL, NULL, NULL};
    /* an event in a stream that is being captured would become part of the graph */
    if (!is_mine() || gt_cuda_captured(stream))
        return 0;
    unsigned mode = relaxed();
    if (CALL(cuCtxGetCurrent, (CUcontext *), &p->context) == 0 && p->context) {
        p->start = take(p->context);
        p->end = p->start ? take(p->context) : NULL;
    }
    /* events that it does not take are not kept: the driver may be another one by now */
    if (p->end && CALL(cuEventRecord, (CUevent, CUstream), p->start, stream))
        p->end = NULL;
    as_before(mode);
    return 1;
}

/* "cuMemcpyHtoDAsync" -> "Memcpy HtoD", "cuMemsetD8" -> "Memset". What kind of memory the host's is
 * can't be told here. */
static void name_of(char *to, const char *key, enum gt_activity_kind kind)
{
    static const char *const ways[] = {"HtoD", "DtoH", "DtoD", "HtoA", "AtoH",
                                       "AtoA", "AtoD", "DtoA", "Peer"};
    strcpy(to, kind == GT_ACTIVITY_SET ? "Memset" : "Memcpy");
    for (size_t i = 0; kind == GT_ACTIVITY_COPY && i < sizeof ways / sizeof *ways; i++)
        if (strstr(key, ways[i])) {
            strcpy(to, "Memcpy ");
            strcpy(to + 7, i == 8 ? "PtoP" : ways[i]);
        }
}

static void describe(struct waiting *w, const struct gt_cuda_info *info, uint64_t bytes,
                     const struct gt_cuda_kernel *k)
{
    struct gt_device_activity *a = &w->activity;
    const char *name = NULL;
    CUdevice device = 0;
    CALL(cuCtxGetDevice, (CUdevice *), &device);
    *a = (struct gt_device_activity){.source = GT_SOURCE_CUDA,
                                     .kind = info->kind == GT_CUDA_COPY  ? GT_ACTIVITY_COPY
                                             : info->kind == GT_CUDA_SET ? GT_ACTIVITY_SET
                                                                         : GT_ACTIVITY_KERNEL,
                                     .type = GT_DEVICE_CUDA,
                                     .flags = GT_ACTIVITY_LEGACY,
                                     .device = (uint32_t)device,
                                     .bytes = bytes,
                                     .delay_ns = -1};
    if (a->kind != GT_ACTIVITY_KERNEL) {
        name_of(w->name, info->key, a->kind);
        return;
    }
    memcpy(a->launch.grid, k->grid, sizeof k->grid);
    memcpy(a->launch.block, k->block, sizeof k->block);
    a->launch.shared_dynamic = k->shared;
    /* the driver's text lives as long as the kernel: taken now */
    if (k->function && !(name = gt_cuda_name_of(k->function)) &&
        CALL(cuFuncGetName, (const char **, CUfunction), &name, k->function))
        name = NULL;
    a->name = gt_keep(name ? name : k->function ? "(kernel)" : "(graph)");
}

void gt_cuda_pair_end(struct gt_cuda_pair *p, CUstream stream, const struct gt_cuda_info *info,
                      unsigned result, uint64_t bytes, const struct gt_cuda_kernel *kernel)
{
    struct waiting w = {.pair = *p, .origin = gt_origin_here()};
    unsigned mode = relaxed();
    if (result || w.origin.flags & GT_ORIGIN_SILENT || !p->end ||
        CALL(cuEventRecord, (CUevent, CUstream), p->end, stream)) {
        if (p->end)
            give_pair(p);
        as_before(mode);
        if (!result && !(w.origin.flags & GT_ORIGIN_SILENT))
            gt_device_lost(1); /* it happened, and nobody knows how long it took */
        return;
    }
    describe(&w, info, bytes, kernel);
    as_before(mode);
    gt_cuda_events_collect(0);
    enter();
    if (!ring)
        ring = gt_sys_map_once(&memory, WAITING * sizeof *ring);
    if (ring && count < WAITING) {
        ring[(first + count++) % WAITING] = w;
        leave();
        gt_device_waits(1);
        return;
    }
    give(p->context, p->start);
    give(p->context, p->end);
    leave();
    gt_device_lost(1);
}

/* ---- what has ended ---- */

/* 0: it still runs. Else it is counted, or lost with its context; it waits until then: who is
 * killed in between has one too many, not one too few. */
static int settle(struct waiting *w)
{
    float ms = 0;
    CUresult r = CALL(cuEventQuery, (CUevent), w->pair.end);
    if (r == GT_CUDA_NOT_READY)
        return 0;
    if (r ||
        CALL(cuEventElapsedTime, (float *, CUevent, CUevent), &ms, w->pair.start, w->pair.end)) {
        gt_device_lost(1);
        gt_device_waits(-1);
        return 1;
    }
    w->activity.end_ns = ms > 0 ? (uint64_t)((double)ms * 1e6 + 0.5) : 0;
    if (w->activity.kind != GT_ACTIVITY_KERNEL)
        w->activity.name = w->name;
    gt_device_count(&w->activity, &w->origin);
    gt_device_waits(-1);
    give(w->pair.context, w->pair.start);
    give(w->pair.context, w->pair.end);
    return 1;
}

/* The order is that of the launches; streams end in their own, so one that runs does not hold up
 * the next: it goes to the back. */
void gt_cuda_events_collect(int last)
{
    if (!atomic_load_explicit(&gt_cuda_events, memory_order_relaxed) || !is_mine())
        return;
    if (last)
        enter();
    else if (!try_enter())
        return;
    unsigned mode = relaxed();
    uint32_t n = last || count < LOOK_AT ? count : LOOK_AT, running = 0;
    for (; n > 0 && ring && (last || running < RUNNING); n--) {
        struct waiting w = ring[first];
        first = (first + 1) % WAITING;
        count--;
        if (!settle(&w)) {
            ring[(first + count++) % WAITING] = w;
            running++;
        }
    }
    as_before(mode);
    leave();
}

/* The call will wait for what its context still runs, so nearly all has ended within the limit.
 * What has not is asked for later, and lost if its event is gone. */
void gt_cuda_events_let_go(void)
{
    const struct timespec pause = {.tv_nsec = 100000};
    if (!is_mine())
        return;
    for (int tries = 0; tries < 1000; tries++) {
        gt_cuda_events_collect(1);
        enter();
        uint32_t left = count;
        leave();
        if (!left)
            break;
        if (tries > 10)
            gt_sys(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
    }
    unsigned mode = relaxed();
    enter();
    for (uint32_t i = 0; i < CONTEXTS && contexts[i].context; i++)
        while (contexts[i].kept)
            CALL(cuEventDestroy_v2, (CUevent), contexts[i].events[--contexts[i].kept]);
    memset(contexts, 0, sizeof contexts);
    leave();
    as_before(mode);
}

/* From a handler that came in the middle of a call, or of a collect on its way in: what waits stays
 * unfinished. */
static void at_exit(void)
{
    if (!gt_cuda_in_call() && atomic_load_explicit(&busy, memory_order_relaxed) != &errno)
        gt_cuda_events_collect(1);
}

void gt_cuda_started(void)
{
    if (!gt_source_on(GT_SOURCE_CUDA) || gt_cupti_start())
        return;
    owner = getpid();
    if (!atomic_exchange(&gt_cuda_events, 1))
        atexit(at_exit); /* the driver's own handler came first, so it runs after this one */
}
