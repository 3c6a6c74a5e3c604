/*
 * A CUPTI client inside a program: it takes the callbacks, enables kinds, reads every buffer and
 * prints the records as one line each. Correlation ids and absolute times differ from run to run,
 * so a record of device work shows the API call that its id leads to, and durations. The order of
 * lines is that of the text. OWN_KINDS: numbers of kinds to enable, else the usual ones.
 * OWN_DUMP=1: by cuptiActivityEnableAndDump.
 * OWN_EXTERNAL=1: all of it inside one external region. OWN_CLOCK=1: a clock of its own, 3 ticks a
 * nanosecond of the simulated device. OWN_BUFFER: bytes of a buffer, 65536. OWN_CALLBACKS=1:
 * subscribes to the calls too.
 */
#include "cupti_own.h"
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 20000
static char *lines[LINES];
static size_t line_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* what an id leads to: filled by API records, read when all have come */
struct call {
    CUpti_CallbackDomain domain;
    CUpti_CallbackId cbid;
    uint64_t external;
};
#define CALLS 200000
static struct call calls[CALLS];
struct pending {
    char text[200];
    uint32_t correlation;
};
static struct pending *pending;
static size_t pending_count;
static size_t buffers, records, empty;
static uint64_t kernel_ns, copy_ns, set_ns, graph_ns;

static void need(const char *what, CUptiResult r)
{
    if (r == CUPTI_SUCCESS)
        return;
    const char *text = "?";
    (void)cuptiGetResultString(r, &text);
    printf("cupti: %s: %s\n", what, text);
}

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *most)
{
    *size = getenv("OWN_BUFFER") ? (size_t)atol(getenv("OWN_BUFFER")) : 65536;
    *buffer = aligned_alloc(8, *size);
    *most = 0;
}

__attribute__((format(printf, 2, 3))) static void later(uint32_t correlation, const char *format,
                                                        ...)
{
    pending = realloc(pending, (pending_count + 1) * sizeof *pending);
    struct pending *p = &pending[pending_count++];
    p->correlation = correlation;
    __builtin_va_list list;
    __builtin_va_start(list, format);
    vsnprintf(p->text, sizeof p->text, format, list);
    __builtin_va_end(list);
}

static void read_record(const CUpti_Activity *r)
{
    records++;
    switch (r->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const CUpti_ActivityKernel10 *k = (const void *)r;
        kernel_ns += k->end - k->start;
        later(k->correlationId, "kernel %s %llu ns grid %d block %d shared %d%s", k->name,
              (unsigned long long)(k->end - k->start), k->gridX, k->blockX, k->dynamicSharedMemory,
              k->graphNodeId ? " in a graph" : "");
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const CUpti_ActivityMemcpy6 *c = (const void *)r;
        copy_ns += c->end - c->start;
        later(c->correlationId, "copy kind %d %llu bytes %llu ns%s%s", c->copyKind,
              (unsigned long long)c->bytes, (unsigned long long)(c->end - c->start),
              c->flags ? " async" : "", c->graphNodeId ? " in a graph" : "");
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const CUpti_ActivityMemcpyPtoP4 *c = (const void *)r;
        copy_ns += c->end - c->start;
        later(c->correlationId, "copy kind %d from %u to %u %llu bytes %llu ns", c->copyKind,
              c->srcDeviceId, c->dstDeviceId, (unsigned long long)c->bytes,
              (unsigned long long)(c->end - c->start));
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const CUpti_ActivityMemset4 *m = (const void *)r;
        set_ns += m->end - m->start;
        later(m->correlationId, "set %llu bytes to %u %llu ns", (unsigned long long)m->bytes,
              m->value, (unsigned long long)(m->end - m->start));
        break;
    }
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: {
        const CUpti_ActivityGraphTrace2 *g = (const void *)r;
        graph_ns += g->end - g->start;
        later(g->correlationId, "graph %llu ns", (unsigned long long)(g->end - g->start));
        break;
    }
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME: {
        const CUpti_ActivityAPI *a = (const void *)r;
        if (a->correlationId >= CALLS)
            break;
        struct call *c = &calls[a->correlationId];
        c->cbid = a->cbid;
        c->domain = r->kind == CUPTI_ACTIVITY_KIND_DRIVER ? CUPTI_CB_DOMAIN_DRIVER_API
                                                          : CUPTI_CB_DOMAIN_RUNTIME_API;
        later(a->correlationId, "call returns %u", a->returnValue);
        break;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const CUpti_ActivityExternalCorrelation *e = (const void *)r;
        if (e->correlationId < CALLS)
            calls[e->correlationId].external = e->externalId;
        break;
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
        const CUpti_ActivitySynchronization2 *s = (const void *)r;
        later(s->correlationId, "synchronization type %d", s->type);
        break;
    }
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        later(0, "overhead");
        break;
    default:
        later(0, "record of kind %d", r->kind);
        break;
    }
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                               size_t valid)
{
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&lock);
    buffers++;
    empty += !valid;
    CUpti_Activity *r = NULL;
    while (valid && cuptiActivityGetNextRecord(buffer, valid, &r) == CUPTI_SUCCESS)
        read_record(r);
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static uint64_t (*device_now)(void);
static uint64_t clock_reads;
static uint64_t CUPTIAPI ticks(void)
{
    __atomic_fetch_add(&clock_reads, 1, __ATOMIC_RELAXED);
    return device_now() * 3;
}

/* ---- callbacks: launches, by the runtime's id that the driver's call inside must have too */
static struct {
    int runtime, driver, inside, same_id, named, kernels;
} told;
static __thread uint32_t open_launch;
#define LAUNCH_IDS 100000
static unsigned char launch_id[LAUNCH_IDS];

static void CUPTIAPI called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                            const void *data)
{
    (void)user;
    const CUpti_CallbackData *d = data;
    bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
    if (runtime ? cbid != CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000
                : cbid != CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel)
        return;
    if (d->callbackSite == CUPTI_API_EXIT) {
        if (runtime)
            open_launch = 0;
        return;
    }
    pthread_mutex_lock(&lock);
    told.named += d->symbolName && !strcmp(d->symbolName, "saxpy");
    if (runtime) {
        told.runtime++;
        open_launch = d->correlationId;
        if (d->correlationId < LAUNCH_IDS)
            launch_id[d->correlationId] = 1;
    } else {
        told.driver++;
        told.inside += open_launch != 0;
        told.same_id += open_launch == d->correlationId;
    }
    pthread_mutex_unlock(&lock);
}

static void subscribe(void)
{
    static CUpti_SubscriberHandle s;
    need("subscribe", cuptiSubscribe(&s, called, NULL));
    need("runtime", cuptiEnableDomain(1, s, CUPTI_CB_DOMAIN_RUNTIME_API));
    need("driver", cuptiEnableCallback(1, s, CUPTI_CB_DOMAIN_DRIVER_API,
                                       CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
}

void own_start(void)
{
    if (getenv("OWN_CALLBACKS"))
        subscribe();
    need("callbacks", cuptiActivityRegisterCallbacks(requested, completed));
    if (getenv("OWN_CLOCK")) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        *(void **)(void *)&device_now = driver ? dlsym(driver, "gtsim_now") : NULL;
        if (device_now)
            need("clock", cuptiActivityRegisterTimestampCallback(ticks));
    }
    const char *kinds = getenv("OWN_KINDS") ? getenv("OWN_KINDS") : "10 1 2 4 5 39 38";
    for (char *end; *kinds; kinds = end) {
        long kind = strtol(kinds, &end, 10);
        if (end == kinds)
            break;
        char what[40];
        snprintf(what, sizeof what, "enable %ld", kind);
        need(what, getenv("OWN_DUMP") ? cuptiActivityEnableAndDump((CUpti_ActivityKind)kind)
                                      : cuptiActivityEnable((CUpti_ActivityKind)kind));
    }
    if (getenv("OWN_EXTERNAL"))
        need("push",
             cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 4711));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void own_print(void)
{
    uint64_t id = 0;
    if (getenv("OWN_EXTERNAL"))
        need("pop",
             cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, &id));
    need("flush", cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    size_t dropped = 0;
    need("dropped", cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < pending_count && line_count < LINES; i++) {
        const struct pending *p = &pending[i];
        told.kernels += !strncmp(p->text, "kernel", 6) && p->correlation < LAUNCH_IDS &&
                        launch_id[p->correlation];
        const struct call *c = p->correlation < CALLS ? &calls[p->correlation] : NULL;
        const char *name = NULL;
        if (c && c->cbid)
            (void)cuptiGetCallbackName(c->domain, c->cbid, &name);
        char text[300];
        int n =
            snprintf(text, sizeof text, "%s%s%s", p->text, name ? " by " : "", name ? name : "");
        if (c && c->external)
            snprintf(text + n, sizeof text - (size_t)n, " external %llu",
                     (unsigned long long)c->external);
        lines[line_count++] = strdup(text);
    }
    qsort(lines, line_count, sizeof *lines, by_text);
    for (size_t i = 0; i < line_count; i++)
        printf("cupti: %s\n", lines[i]);
    printf("cupti: sums kernels %llu copies %llu sets %llu graphs %llu\n",
           (unsigned long long)kernel_ns, (unsigned long long)copy_ns, (unsigned long long)set_ns,
           (unsigned long long)graph_ns);
    printf("cupti: records %zu dropped %zu buffers %s clock %s popped %llu\n", records, dropped,
           buffers > 1 ? "several"
           : buffers   ? "one"
                       : "none",
           clock_reads ? "read" : "unread", (unsigned long long)id);
    if (getenv("OWN_CALLBACKS"))
        printf("cupti: launches told %d driver's %d inside %d same id %d of saxpy %d kernels of "
               "them %d\n",
               told.runtime, told.driver, told.inside, told.same_id, told.named, told.kernels);
    pthread_mutex_unlock(&lock);
}
