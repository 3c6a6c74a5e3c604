/* Finds CUPTI, subscribes, and notes at each launch which range it belongs to: cupti.h. Called from
 * the wrapper of cuInit, by CUPTI (the callback, on the thread that launches), and at the end. */
#include "cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/core.h"
#include "core/device.h"
#include "core/record.h"
#include "core/say.h"
#include "cuda.h"
#include "dl.h"

struct gt_cupti gt_cupti = {.lock = ATOMIC_FLAG_INIT};

/* 0: not tried, 1: it records, 2: it does not work here. Written under the lock. */
static atomic_int tried;

static const struct call {
    size_t offset;
    const char *name;
} calls[] = {
#define HOOK(name, parameters)
#define CALL(field, parameters, name) {offsetof(struct gt_cupti_calls, field), name},
#include "hooks/cupti.def"
#undef CALL
#undef HOOK
};

/* ---- launches ---- */

static uint32_t programs_kinds(void)
{
    uint32_t flags = 0;
    static const uint32_t kinds[] = {GT_CUPTI_KERNEL, GT_CUPTI_COPY, GT_CUPTI_SET};
    for (int i = 0; i < 3; i++)
        if (atomic_load_explicit(&gt_cupti.program.kinds[kinds[i]], memory_order_relaxed))
            flags |= GT_CUPTI_PROGRAMS(kinds[i]);
    return flags;
}

/* A runtime call and the driver's below it may have the same id: the inner one comes second and
 * stays. One that launches into a graph that is being made leads to nothing now. */
static void launch(int domain, const struct gt_cupti_call *call)
{
    struct gt_origin o = gt_origin_here();
    o.flags |= programs_kinds();
    if (domain != GT_CUPTI_DRIVER || gt_cuda_captures())
        o.flags |= GT_ORIGIN_SEEN;
    gt_origin_put(GT_SOURCE_CUDA, call->correlation, &o);
}

/* The one callback that CUPTI has of this process. */
static void callback(void *user, int domain, uint32_t id, const void *data)
{
    gt_cupti_callback *theirs =
        atomic_load_explicit(&gt_cupti.program.callback, memory_order_acquire);
    (void)user;
    if (gt_cupti_bit(gt_cupti.ours, domain, id)) {
        const struct gt_cupti_call *call = data;
        if (call->site == 0)
            launch(domain, call);
        else if (call->result && *(const int *)call->result)
            gt_origin_get(GT_SOURCE_CUDA, call->correlation); /* failed: nothing will come of it */
    }
    if (theirs && gt_cupti_bit(gt_cupti.program.wants, domain, id))
        theirs(gt_cupti.program.user, domain, id, data);
}

static int is_launch(const char *name)
{
    /* what runs on the host; graphs' nodes, which are made, not launched */
    if (strstr(name, "HostFunc") || strstr(name, "GraphAdd") || strstr(name, "NodeGet") ||
        strstr(name, "NodeSet") || strstr(name, "GraphExec"))
        return 0;
    return strstr(name, "Launch") || strstr(name, "Memcpy") || strstr(name, "Memset");
}

/* By name, since the numbers grow with each version. */
static void choose_launches(void)
{
    for (int domain = GT_CUPTI_DRIVER; domain <= GT_CUPTI_RUNTIME; domain++)
        for (uint32_t id = 1; id < GT_CUPTI_CALLBACKS; id++) {
            const char *name = NULL;
            if (gt_cupti.call.callback_name(domain, id, &name) || !name)
                continue;
            if (is_launch(name))
                atomic_fetch_or_explicit(&gt_cupti.ours[domain][id / 64], UINT64_C(1) << id % 64,
                                         memory_order_relaxed);
        }
}

static void enable_launches(uint32_t on)
{
    for (int domain = GT_CUPTI_DRIVER; domain <= GT_CUPTI_RUNTIME; domain++)
        for (uint32_t id = 1; id < GT_CUPTI_CALLBACKS; id++)
            if (gt_cupti_bit(gt_cupti.ours, domain, id) &&
                (on || !gt_cupti_bit(gt_cupti.program.wants, domain, id)))
                gt_cupti.call.enable_callback(on, gt_cupti.subscriber, domain, id);
}

/* ---- the library ---- */

/* The copy that the program has, else the system's. */
static void *open_library(void)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.0",
                                        "libcupti.so"};
    void *handle = NULL;
    for (int load = 0; load < 2 && !handle; load++)
        for (size_t i = 0; i < sizeof names / sizeof *names && !handle; i++)
            handle = gt_dl_open(names[i], RTLD_LAZY | RTLD_LOCAL | (load ? 0 : RTLD_NOLOAD));
    return handle;
}

static int load_calls(void *library)
{
    struct gt_cupti_calls found;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        void *f = gt_dl_in(library, calls[i].name);
        if (!f && strcmp(calls[i].name, "cuptiSubscribe_v2") != 0)
            return GT_CUPTI_NOT_INITIALIZED;
        memcpy((char *)&found + calls[i].offset, &f, sizeof f);
    }
    gt_cupti.call = found;
    return 0;
}

static void disable(void)
{
    atomic_store_explicit(&gt_cupti.recording, 0, memory_order_relaxed);
    for (uint32_t kind = 0; kind < GT_CUPTI_KINDS; kind++)
        if (gt_cupti_is_ours(kind) && !gt_cupti.program.kinds[kind])
            gt_cupti.call.disable((int)kind);
    enable_launches(0);
}

int gt_cupti_use(void *library)
{
    int rc;
    if (gt_cupti.library == library && gt_cupti.subscriber)
        return 0;
    if (gt_cupti.subscriber) { /* the program has brought another copy: there can be only one */
        disable();
        gt_cupti.call.flush_all(0);
        gt_cupti.call.unsubscribe(gt_cupti.subscriber);
        gt_cupti.subscriber = NULL;
        memset((void *)gt_cupti.ours, 0, sizeof gt_cupti.ours);
    }
    if ((rc = load_calls(library)))
        return rc;
    gt_cupti.library = library;
    if ((rc = gt_cupti.call.subscribe(&gt_cupti.subscriber, callback, NULL))) {
        gt_cupti.subscriber = NULL;
        return rc;
    }
    choose_launches();
    if ((rc = gt_cupti.call.register_callbacks(gt_cupti_our_request, gt_cupti_our_complete)))
        return rc;
    return 0;
}

int gt_cupti_enable(void)
{
    int rc;
    if (atomic_load_explicit(&gt_cupti.recording, memory_order_relaxed))
        return 0;
    /* this is the call that fails where CUPTI can't work, with a result of its own */
    if ((rc = gt_cupti.call.enable(GT_CUPTI_KERNEL)))
        return rc;
    if ((rc = gt_cupti.call.enable(GT_CUPTI_COPY)) || (rc = gt_cupti.call.enable(GT_CUPTI_SET))) {
        disable();
        return rc;
    }
    enable_launches(1);
    gt_cupti_clock_is(NULL);
    atomic_store_explicit(&gt_cupti.recording, 1, memory_order_relaxed);
    return 0;
}

/* ---- start and end ---- */

/* In the child of a fork CUPTI is the parent's. */
static pid_t owner;

/* What is not taken counts as unfinished. */
static void at_exit(void)
{
    if (getpid() == owner && !gt_cuda_in_call())
        gt_cupti_end();
}

static void tell(int rc)
{
    char number[] = "000";
    if (!rc) {
        gt_say(GT_SAY_NOTE, "libcupti.so is not here: times of devices come from pairs of events");
        return;
    }
    for (int i = 2; i >= 0; i--, rc /= 10)
        number[i] = (char)('0' + rc % 10);
    gt_say(GT_SAY_WARNING, "CUPTI does not work here (error ", number,
           "): times of devices come from pairs of events");
}

int gt_cupti_start(void)
{
    int known = atomic_load_explicit(&tried, memory_order_acquire), rc = 0, saved = errno;
    void *library = NULL;
    if (known)
        return known == 1;
    /* outside the lock: it may run constructors, and wait for the loader */
    if (!gt_cupti.library)
        library = open_library();
    gt_cupti_enter();
    known = atomic_load_explicit(&tried, memory_order_relaxed);
    if (!known) {
        known = 2;
        if (gt_cupti.subscriber || library) {
            rc = gt_cupti.subscriber ? 0 : gt_cupti_use(library);
            rc = rc ? rc : gt_cupti_enable();
            known = rc ? 2 : 1;
        }
        atomic_store_explicit(&tried, known, memory_order_release);
        /* the driver's own handler was registered before us, so it runs after this one */
        owner = getpid();
        if (known == 1)
            atexit(at_exit);
        else
            tell(rc);
    }
    gt_cupti_leave();
    errno = saved;
    return known == 1;
}

void gt_cupti_end(void)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&done))
        return;
    if (atomic_load_explicit(&gt_cupti.recording, memory_order_relaxed))
        gt_cupti.call.flush_all(0);
}
