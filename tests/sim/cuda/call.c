/* Every call of the simulated driver passes here on its caller's thread: errors on demand
   (GTSIM_FAIL), the trace (GTSIM_TRACE) and the announcements to the simulated CUPTI. */
#include "sim.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct failure {
    char name[64];
    long nth; /* 0: every call */
    int error;
    atomic_long calls;
};

_Thread_local int sim_per_thread;
_Thread_local uint32_t sim_correlation; /* of the call that is open on this thread */

static _Thread_local struct gtsim_call *open_call;
static _Atomic(const struct gtsim_listener *) listener;
static atomic_uint correlations;
static struct failure failures[32];
static int failure_count;
static char hidden[4096]; /* ",name,name," */
static int trace_fd = -1;

long sim_number(const char *variable, long otherwise)
{
    const char *text = getenv(variable);

    return text && *text ? strtol(text, NULL, 0) : otherwise;
}

/* GTSIM_FAIL=NAME:NTH=ERROR,NAME:*=ERROR: a name with or without its version and variant */
static void read_failures(const char *text)
{
    while (text && *text && failure_count < 32) {
        struct failure *f = &failures[failure_count];
        char nth[16];

        if (sscanf(text, "%63[^:=,]:%15[0-9*]=%d", f->name, nth, &f->error) == 3) {
            f->nth = nth[0] == '*' ? 0 : atol(nth);
            failure_count++;
        } else {
            fprintf(stderr, "gtsim: GTSIM_FAIL: not NAME:NTH=ERROR: %s\n", text);
        }
        text = strchr(text, ',');
        text += text != NULL;
    }
}

__attribute__((constructor)) static void read_variables(void)
{
    const char *file = getenv("GTSIM_TRACE"), *hide = getenv("GTSIM_HIDE");

    read_failures(getenv("GTSIM_FAIL"));
    if (hide)
        snprintf(hidden, sizeof hidden, ",%s,", hide);
    if (file && *file)
        trace_fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

bool sim_hidden(const char *name)
{
    char word[128];

    if (!hidden[0] || snprintf(word, sizeof word, ",%s,", name) >= (int)sizeof word)
        return false;
    return strstr(hidden, word) != NULL;
}

void sim_trace(const char *format, ...)
{
    char line[512];
    int kept = errno;
    va_list list;

    if (trace_fd < 0)
        return;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    if (n > (int)sizeof line - 2)
        n = sizeof line - 2;
    line[n++] = '\n';
    if (write(trace_fd, line, (size_t)n) < 0)
        trace_fd = -1;
    errno = kept;
}

static int failure_of(const char *name, const char *base)
{
    int error = 0;

    for (int i = 0; i < failure_count; i++) {
        struct failure *f = &failures[i];

        if (strcmp(f->name, name) && strcmp(f->name, base))
            continue;
        long n = atomic_fetch_add(&f->calls, 1) + 1;
        if (!f->nth || n == f->nth)
            error = f->error;
    }
    return error;
}

SIM_API int gtsim_failure(const char *name)
{
    return failure_count ? failure_of(name, name) : 0;
}

const struct gtsim_listener *sim_listener(void)
{
    return atomic_load_explicit(&listener, memory_order_acquire);
}

SIM_API const struct gtsim_listener *gtsim_attach(const struct gtsim_listener *l)
{
    return atomic_exchange(&listener, l);
}

SIM_API void gtsim_enter(struct gtsim_call *call)
{
    const struct gtsim_listener *l = sim_listener();

    call->up = open_call;
    if (call->domain == GTSIM_DRIVER && call->up && call->up->domain == GTSIM_RUNTIME)
        call->correlation = call->up->correlation;
    else
        call->correlation = l ? atomic_fetch_add(&correlations, 1) + 1 : 0;
    open_call = call;
    sim_correlation = call->correlation;
    call->user = 0;
    call->result = 0;
    if (!l)
        return;
    call->context = sim_current();
    call->context_id = gtsim_context_id(call->context);
    call->start_ns = sim_clock();
    if (l->enter)
        l->enter(call);
    /* a call that the listener made has changed it */
    open_call = call;
    sim_correlation = call->correlation;
}

SIM_API void gtsim_leave(struct gtsim_call *call, int result)
{
    const struct gtsim_listener *l = sim_listener();

    call->result = result;
    if (l && call->correlation) {
        call->context = sim_current();
        call->context_id = gtsim_context_id(call->context);
        call->end_ns = sim_clock();
        if (l->leave)
            l->leave(call);
    }
    open_call = call->up;
    sim_correlation = open_call ? open_call->correlation : 0;
}

CUresult sim_enter(struct gtsim_call *call, const struct sim_entry *entry, const void *params,
                   const void *function)
{
    CUresult r = SIM_GO;

    call->domain = GTSIM_DRIVER;
    call->cbid = entry->cbid;
    call->name = entry->name;
    call->params = params;
    call->symbol = NULL;
    if (function && sim_listener())
        (void)sim_function_name((CUfunction)function, &call->symbol);
    gtsim_enter(call);
    sim_per_thread = entry->per_thread;
    if (failure_count)
        r = failure_of(entry->name, entry->base);
    if (failure_count && !r)
        r = SIM_GO;
    if (r == SIM_GO && sim_state != 1 && !entry->early)
        r = sim_state ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NOT_INITIALIZED;
    if (r == SIM_GO && sim_hidden(entry->name))
        r = CUDA_ERROR_NOT_SUPPORTED;
    return r;
}

CUresult sim_leave(struct gtsim_call *call, CUresult r)
{
    sim_per_thread = 0;
    if (trace_fd >= 0)
        sim_trace("call %s %d", call->name, (int)r);
    sim_deliver();
    gtsim_leave(call, (int)r);
    return r;
}

void sim_announce(const struct gtsim_resource *resource)
{
    const struct gtsim_listener *l = sim_listener();

    if (l && l->resource)
        l->resource(resource);
}
