/* What the program calls of CUPTI. It gets the answers that it would get alone: a subscription of
 * its own, its own kinds of records, its own buffers; behind them is our one subscription, and what
 * is enabled is what either of us wants. Where our side is off, calls go straight on. */
#include "cupti.h"

#include <dlfcn.h>
#include <string.h>
#include "core/core.h"
#include "core/device.h"
#include "core/record.h"
#include "dl.h"
#include "hook.h"

#define HOOK(name, parameters) GT_EXPORT int name parameters;
#define CALL(field, parameters, name)
#include "hooks/cupti.def"
#undef HOOK
#undef CALL

enum {
#define HOOK(name, parameters) AT_##name,
#define CALL(field, parameters, name)
#include "hooks/cupti.def"
#undef HOOK
#undef CALL
    HOOKS
};
static _Atomic(void *) behind[HOOKS];

/* What the program holds as its subscriber. */
static char subscriber;

static const char *const libraries[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.0",
                                        "libcupti.so", NULL};

static void *real(int at, const char *name)
{
    void *f = atomic_load_explicit(&behind[at], memory_order_acquire);
    if (f)
        return f;
    f = gt_dl_behind(name, libraries);
    atomic_store_explicit(&behind[at], f, memory_order_release);
    return f;
}

/* The call as it is, for when our side is off. */
#define STRAIGHT(name, type, ...)                                                                  \
    (real(AT_##name, #name) ? ((int(*) type)real(AT_##name, #name))(__VA_ARGS__)                   \
                            : GT_CUPTI_NOT_INITIALIZED)

/* Takes the lock, with our side on the copy of CUPTI that holds `f`. 0: our side is off, and the
 * lock is free. */
static int ours(void *f)
{
    void *library;
    if (!f || !gt_source_on(GT_SOURCE_CUDA) || !(library = gt_dl_handle_of(f)))
        return 0;
    gt_cupti_enter();
    if (gt_cupti_use(library) == 0)
        return 1;
    gt_cupti_leave();
    return 0;
}
#define OURS(name) ours(real(AT_##name, #name))

static int is_programs(const void *handle)
{
    return handle == &subscriber && gt_cupti.program.subscribed;
}

/* ---- subscribing ---- */

/* The lock is held. */
static int subscribe(void **handle, gt_cupti_callback *callback, void *user)
{
    if (!handle)
        return GT_CUPTI_INVALID;
    if (gt_cupti.program.subscribed)
        return GT_CUPTI_MULTIPLE_SUBSCRIBERS;
    gt_cupti.program.subscribed = 1;
    gt_cupti.program.user = user;
    atomic_store_explicit(&gt_cupti.program.callback, callback, memory_order_release);
    *handle = &subscriber;
    return GT_CUPTI_OK;
}

GT_EXPORT int cuptiSubscribe(void **handle, gt_cupti_callback *callback, void *user)
{
    if (!OURS(cuptiSubscribe))
        return STRAIGHT(cuptiSubscribe, (void **, gt_cupti_callback *, void *), handle, callback,
                        user);
    int rc = subscribe(handle, callback, user);
    gt_cupti_leave();
    return rc;
}

/* The parameters ask for a name in error messages, and take the old one's: with us there is one. */
GT_EXPORT int cuptiSubscribe_v2(void **handle, gt_cupti_callback *callback, void *user,
                                void *parameters)
{
    if (!OURS(cuptiSubscribe_v2))
        return STRAIGHT(cuptiSubscribe_v2, (void **, gt_cupti_callback *, void *, void *), handle,
                        callback, user, parameters);
    int rc = subscribe(handle, callback, user);
    gt_cupti_leave();
    return rc;
}

/* What one of the program's callbacks is to be from now on. Ours stay enabled. */
static int want(uint32_t on, int domain, uint32_t id)
{
    uint64_t bit = UINT64_C(1) << id % 64;
    if (domain < 0 || domain >= GT_CUPTI_DOMAINS || id >= GT_CUPTI_CALLBACKS)
        return GT_CUPTI_INVALID;
    if (on || !gt_cupti_needs(domain, id)) {
        int rc = gt_cupti.call.enable_callback(on, gt_cupti.subscriber, domain, id);
        if (rc)
            return rc;
    }
    if (on)
        atomic_fetch_or_explicit(&gt_cupti.program.wants[domain][id / 64], bit,
                                 memory_order_relaxed);
    else
        atomic_fetch_and_explicit(&gt_cupti.program.wants[domain][id / 64], ~bit,
                                  memory_order_relaxed);
    return GT_CUPTI_OK;
}

/* CUPTI's own switch for all of a domain, then ours again. */
static int want_domain(uint32_t on, int domain)
{
    int rc = gt_cupti.call.enable_domain(on, gt_cupti.subscriber, domain);
    if (rc || domain < 0 || domain >= GT_CUPTI_DOMAINS)
        return rc;
    for (uint32_t i = 0; i < GT_CUPTI_CALLBACKS / 64; i++)
        atomic_store_explicit(&gt_cupti.program.wants[domain][i], on ? ~UINT64_C(0) : 0,
                              memory_order_relaxed);
    for (uint32_t id = 0; !on && id < GT_CUPTI_CALLBACKS; id++)
        if (gt_cupti_needs(domain, id))
            gt_cupti.call.enable_callback(1, gt_cupti.subscriber, domain, id);
    return GT_CUPTI_OK;
}

static void want_nothing(void)
{
    for (int domain = 0; domain < GT_CUPTI_DOMAINS; domain++)
        for (uint32_t id = 0; id < GT_CUPTI_CALLBACKS; id++)
            if (gt_cupti_bit(gt_cupti.program.wants, domain, id))
                want(0, domain, id);
}

GT_EXPORT int cuptiUnsubscribe(void *handle)
{
    if (!OURS(cuptiUnsubscribe))
        return STRAIGHT(cuptiUnsubscribe, (void *), handle);
    int rc = is_programs(handle) ? GT_CUPTI_OK : GT_CUPTI_INVALID;
    if (!rc) {
        atomic_store_explicit(&gt_cupti.program.callback, NULL, memory_order_release);
        want_nothing();
        gt_cupti.program.subscribed = 0;
    }
    gt_cupti_leave();
    return rc;
}

GT_EXPORT int cuptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t id)
{
    if (!OURS(cuptiEnableCallback))
        return STRAIGHT(cuptiEnableCallback, (uint32_t, void *, int, uint32_t), on, handle, domain,
                        id);
    int rc = is_programs(handle) ? want(on, domain, id) : GT_CUPTI_INVALID;
    gt_cupti_leave();
    return rc;
}

GT_EXPORT int cuptiEnableDomain(uint32_t on, void *handle, int domain)
{
    if (!OURS(cuptiEnableDomain))
        return STRAIGHT(cuptiEnableDomain, (uint32_t, void *, int), on, handle, domain);
    int rc = is_programs(handle) ? want_domain(on, domain) : GT_CUPTI_INVALID;
    gt_cupti_leave();
    return rc;
}

/* The domains that there are in every version; a newer one's further ones are said to be off. */
GT_EXPORT int cuptiEnableAllDomains(uint32_t on, void *handle)
{
    if (!OURS(cuptiEnableAllDomains))
        return STRAIGHT(cuptiEnableAllDomains, (uint32_t, void *), on, handle);
    int rc = is_programs(handle) ? GT_CUPTI_OK : GT_CUPTI_INVALID;
    for (int domain = 1; !rc && domain < GT_CUPTI_DOMAINS; domain++)
        if (want_domain(on, domain) != 0)
            break; /* past the last one */
    gt_cupti_leave();
    return rc;
}

GT_EXPORT int cuptiGetCallbackState(uint32_t *on, void *handle, int domain, uint32_t id)
{
    if (!OURS(cuptiGetCallbackState))
        return STRAIGHT(cuptiGetCallbackState, (uint32_t *, void *, int, uint32_t), on, handle,
                        domain, id);
    int rc = is_programs(handle) ? gt_cupti.call.callback_state(on, gt_cupti.subscriber, domain, id)
                                 : GT_CUPTI_INVALID;
    if (!rc)
        *on = (uint32_t)gt_cupti_bit(gt_cupti.program.wants, domain, id);
    gt_cupti_leave();
    return rc;
}

/* ---- records ---- */

GT_EXPORT int cuptiActivityRegisterCallbacks(gt_cupti_request *request, gt_cupti_complete *complete)
{
    if (!OURS(cuptiActivityRegisterCallbacks))
        return STRAIGHT(cuptiActivityRegisterCallbacks, (gt_cupti_request *, gt_cupti_complete *),
                        request, complete);
    int rc = request && complete ? GT_CUPTI_OK : GT_CUPTI_INVALID;
    if (!rc) {
        atomic_store_explicit(&gt_cupti.program.complete, complete, memory_order_release);
        atomic_store_explicit(&gt_cupti.program.request, request, memory_order_release);
    }
    gt_cupti_leave();
    return rc;
}

/* CUPTI alone would refuse a kind before the program has told where its records go. The older kind
 * of kernels' records, which excludes ours, is made of ours. */
GT_EXPORT int cuptiActivityEnable(int kind)
{
    if (!OURS(cuptiActivityEnable))
        return STRAIGHT(cuptiActivityEnable, (int), kind);
    int rc = kind == GT_CUPTI_SERIAL_KERNEL && gt_cupti.recording ? GT_CUPTI_OK
                                                                  : gt_cupti.call.enable(kind);
    if (!rc && kind >= 0 && kind < GT_CUPTI_KINDS)
        gt_cupti.program.kinds[kind] = 1;
    gt_cupti_leave();
    return rc;
}

/* Likewise; it may ask for a buffer for what there is already: no lock meanwhile. */
GT_EXPORT int cuptiActivityEnableAndDump(int kind)
{
    if (!OURS(cuptiActivityEnableAndDump))
        return STRAIGHT(cuptiActivityEnableAndDump, (int), kind);
    int made = kind == GT_CUPTI_SERIAL_KERNEL && gt_cupti.recording;
    gt_cupti_leave();
    int rc = made ? GT_CUPTI_OK : STRAIGHT(cuptiActivityEnableAndDump, (int), kind);
    gt_cupti_enter();
    if (!rc && kind >= 0 && kind < GT_CUPTI_KINDS)
        gt_cupti.program.kinds[kind] = 1;
    gt_cupti_leave();
    return rc;
}

GT_EXPORT int cuptiActivityDisable(int kind)
{
    if (!OURS(cuptiActivityDisable))
        return STRAIGHT(cuptiActivityDisable, (int), kind);
    int keep =
        gt_cupti.recording && (gt_cupti_is_ours((uint32_t)kind) || kind == GT_CUPTI_SERIAL_KERNEL);
    int rc = keep ? GT_CUPTI_OK : gt_cupti.call.disable(kind);
    if (!rc && kind >= 0 && kind < GT_CUPTI_KINDS)
        gt_cupti.program.kinds[kind] = 0;
    gt_cupti_leave();
    return rc;
}

/* Runs callbacks, ours and through them the program's, which may call any of these: no lock. */
GT_EXPORT int cuptiActivityFlushAll(uint32_t forced)
{
    return STRAIGHT(cuptiActivityFlushAll, (uint32_t), forced);
}

/* We took the number when the buffer came; the program's share of it is not known apart. Programs
 * ask for it when they get a buffer, which may be while another thread ends CUPTI: no lock. */
GT_EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n)
{
    if (!atomic_load_explicit(&gt_cupti.shared, memory_order_relaxed))
        return STRAIGHT(cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *), context,
                        stream, n);
    int rc = n ? GT_CUPTI_OK : GT_CUPTI_INVALID;
    if (!rc)
        *n = (size_t)atomic_exchange_explicit(&gt_cupti.program.dropped, 0, memory_order_relaxed);
    return rc;
}

/* What is in the buffers has the old clock's times: out with it first. */
GT_EXPORT int cuptiActivityRegisterTimestampCallback(gt_cupti_clock *clock)
{
    if (!OURS(cuptiActivityRegisterTimestampCallback))
        return STRAIGHT(cuptiActivityRegisterTimestampCallback, (gt_cupti_clock *), clock);
    gt_cupti_leave();
    gt_cupti.call.flush_all(0);
    gt_cupti_enter();
    int rc = gt_cupti.call.register_clock(clock);
    if (!rc) {
        gt_cupti.program.clock = clock;
        gt_cupti_clock_is(clock);
    }
    gt_cupti_leave();
    return rc;
}

/* CUPTI forgets everything of everybody. We go on with it at once: the program's end of it is no
 * end of ours. */
GT_EXPORT int cuptiFinalize(void)
{
    if (!OURS(cuptiFinalize))
        return STRAIGHT(cuptiFinalize, (void));
    void *library = gt_cupti.library;
    int recording = gt_cupti.recording;
    gt_cupti_leave();
    gt_cupti.call.flush_all(0);
    gt_cupti_enter();
    int rc = gt_cupti.call.finalize();
    if (!rc) {
        uint32_t life = gt_cupti.program.life + 1;
        memset(&gt_cupti.program, 0, sizeof gt_cupti.program);
        gt_cupti.program.life = life;
        atomic_store(&gt_cupti.shared, 0);
        memset((void *)gt_cupti.ours, 0, sizeof gt_cupti.ours);
        memset(gt_cupti.questions, 0, sizeof gt_cupti.questions);
        gt_cupti.subscriber = NULL;
        gt_cupti.recording = 0;
        if (gt_cupti_use(library) == 0 && recording)
            gt_cupti_enable();
    }
    gt_cupti_leave();
    return rc;
}

/* ---- the table ---- */

#define HOOK(name, parameters) {#name, (void (*)(void))name, &behind[AT_##name]},
#define CALL(field, parameters, name)
static const struct gt_hook hooks[] = {
#include "hooks/cupti.def"
};
#undef HOOK
#undef CALL

const struct gt_hooks gt_cupti_hooks = {.prefix = "cupti",
                                        .prefix_len = 5,
                                        .hooks = hooks,
                                        .count = sizeof hooks / sizeof *hooks,
                                        .source = GT_SOURCE_CUDA};
