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

struct gt_cupti gt_cupti;

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

/* A fork may have left it with a thread of the parent's. */
void gt_cupti_enter(void)
{
    uint32_t self = (uint32_t)getpid(), before = 0;
    while (!atomic_compare_exchange_weak_explicit(&gt_cupti.lock, &before, self,
                                                  memory_order_acquire, memory_order_relaxed)) {
        if (before == self)
            sched_yield();
        before = before == self ? 0 : before;
    }
}

uint32_t gt_cupti_programs_flags(void)
{
    const _Atomic uint8_t *on = gt_cupti.program.kinds;
    uint32_t flags = atomic_load_explicit(&gt_cupti.program.life, memory_order_relaxed)
                     << GT_CUPTI_LIFE_SHIFT;
    for (unsigned i = 0; i < GT_CUPTI_OURS; i++)
        if (atomic_load_explicit(&on[gt_cupti_kinds[i]], memory_order_relaxed))
            flags |= (uint32_t)GT_ORIGIN_OWN << i;
    if (!(flags & gt_cupti_flag(GT_CUPTI_KERNEL)) &&
        atomic_load_explicit(&on[GT_CUPTI_SERIAL_KERNEL], memory_order_relaxed))
        flags |= gt_cupti_flag(GT_CUPTI_KERNEL) | GT_CUPTI_SERIAL;
    return flags;
}

/* One that has a record all the same finds its place: only the waiting ends. */
void gt_cupti_moved_nothing(const char *key)
{
    const char *name = NULL;
    struct gt_cuda_thread *t = &gt_cuda_thread;
    if (t->launch && gt_cupti.call.callback_name(GT_CUPTI_DRIVER, t->launch, &name) == 0 && name &&
        strncmp(name, key, strlen(key)) == 0)
        gt_origin_get(GT_SOURCE_CUDA, t->correlation);
    t->launch = 0;
}

/* A runtime call and the driver's below it may have the same id: the inner one comes second and
 * stays. One that launches into a graph that is being made leads to nothing now. */
static void launch(int domain, uint32_t id, const struct gt_cupti_call *call)
{
    struct gt_origin o = gt_origin_here();
    o.flags |= gt_cupti_programs_flags();
    if (domain != GT_CUPTI_DRIVER || gt_cuda_captures())
        o.flags |= GT_ORIGIN_SEEN;
    gt_origin_put(GT_SOURCE_CUDA, call->correlation, &o);
    if (domain == GT_CUPTI_DRIVER) {
        gt_cuda_thread.launch = (uint16_t)id; /* less than GT_CUPTI_CALLBACKS */
        gt_cuda_thread.correlation = call->correlation;
    }
}

/* Counted, so that the program does not get its record. Inside a call of the runtime's it may have
 * the id of that, and of other calls of the driver in it. One that launches stays a launch. */
static void asked(int question, const struct gt_cupti_call *call)
{
    struct gt_origin o = {0};
    int flags = gt_origin_flags(GT_SOURCE_CUDA, call->correlation);
    if (call->site != 0 || (flags >= 0 && !(flags & GT_CUPTI_ASKED)))
        return;
    if (flags >= 0)
        o = gt_origin_get(GT_SOURCE_CUDA, call->correlation);
    o.flags = GT_ORIGIN_SILENT | GT_CUPTI_ASKED;
    o.slot += UINT32_C(1) << 8 * question;
    gt_origin_put(GT_SOURCE_CUDA, call->correlation, &o);
}

/* The one callback that CUPTI has of this process. */
static void callback(void *user, int domain, uint32_t id, const void *data)
{
    gt_cupti_callback *theirs =
        atomic_load_explicit(&gt_cupti.program.callback, memory_order_acquire);
    (void)user;
    if (gt_cuda_thread.asking) {
        int question = gt_cupti_question(domain, id);
        if (question >= 0)
            asked(question, data);
        return;
    }
    if (atomic_load_explicit(&gt_cupti.recording, memory_order_relaxed) &&
        gt_cupti_bit(gt_cupti.ours, domain, id)) {
        const struct gt_cupti_call *call = data;
        if (call->site == 0)
            launch(domain, id, call);
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

/* What cuda_context.c and cuda_bytes.c ask. */
static int question_of(const char *name)
{
    static const char *const names[GT_CUPTI_QUESTIONS] = {"cuArray3DGetDescriptor_v2",
                                                          "cuCtxGetCurrent", "cuCtxGetDevice",
                                                          "cuDevicePrimaryCtxGetState"};
    for (unsigned i = 0; i < GT_CUPTI_QUESTIONS; i++)
        if (strcmp(name, names[i]) == 0)
            return (int)i;
    return -1;
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
            else if (domain == GT_CUPTI_DRIVER && question_of(name) >= 0)
                gt_cupti.questions[question_of(name)] = id;
        }
}

static void enable_launches(uint32_t on)
{
    for (int domain = GT_CUPTI_DRIVER; domain <= GT_CUPTI_RUNTIME; domain++)
        for (uint32_t id = 1; id < GT_CUPTI_CALLBACKS; id++)
            if (gt_cupti_needs(domain, id) &&
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
    for (unsigned i = 0; i < GT_CUPTI_OURS; i++)
        if (!gt_cupti.program.kinds[gt_cupti_kinds[i]])
            gt_cupti.call.disable((int)gt_cupti_kinds[i]);
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
        gt_cupti.program.clock = NULL;
        atomic_store(&gt_cupti.shared, 0);
        memset((void *)gt_cupti.ours, 0, sizeof gt_cupti.ours);
        memset(gt_cupti.questions, 0, sizeof gt_cupti.questions);
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
    atomic_store(&gt_cupti.shared, 1);
    return 0;
}

int gt_cupti_enable(void)
{
    int rc, serial = gt_cupti.program.kinds[GT_CUPTI_SERIAL_KERNEL];
    if (atomic_load_explicit(&gt_cupti.recording, memory_order_relaxed))
        return 0;
    /* the older kind of kernels' records excludes the one that we take: the program gets ours */
    if (serial)
        gt_cupti.call.disable(GT_CUPTI_SERIAL_KERNEL);
    /* the first is the call that fails where CUPTI can't work, with a result of its own */
    for (unsigned i = 0; i < GT_CUPTI_OURS; i++)
        if ((rc = gt_cupti.call.enable((int)gt_cupti_kinds[i]))) {
            if (i)
                disable();
            if (serial)
                gt_cupti.call.enable(GT_CUPTI_SERIAL_KERNEL);
            return rc;
        }
    enable_launches(1);
    gt_cupti_clock_is(gt_cupti.program.clock);
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
    if (!atomic_load_explicit(&gt_cupti.recording, memory_order_relaxed))
        return;
    gt_cupti.call.flush_all(0);
    gt_cupti_count_dropped(NULL, 0);
}
