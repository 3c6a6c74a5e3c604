/* ROCTX: called by the program on its own threads, by the exported names or by dlsym.
 *
 * We listen and do not replace: every call goes on to the real library, whose result is what the
 * program gets, and another profiler that listens there hears the same as without us. Unlike NVTX,
 * ROCTX has no place of its own for a tool. Without a real library (the program looked the names up
 * in the global scope) the results are ours, by the same rules. */
#include "hook.h"

#include <stdatomic.h>
#include "core/hot.h"
#include "dl.h"
#include "nvtx_text.h"

#define TAG GT_TAG(GT_SOURCE_ROCTX, 0, 0)

static inline int on(void)
{
    return gt_source_on(GT_SOURCE_ROCTX);
}

/* ---- the real library ---- */

/* NULL until it was looked for; &nobody if there is none. The function is mapped before its address
 * can be known: release and acquire only order what dlsym did. */
static const char nobody;
#define HOOK(name, result, parameters, arguments)                                                  \
    typedef result name##_fn parameters;                                                           \
    static name##_fn on_##name;                                                                    \
    static _Atomic(void *) behind_##name;
#include "hooks/roctx.def"
#undef HOOK

static __attribute__((noinline, cold)) void *find(_Atomic(void *) *behind, const char *name)
{
    static const char *const libraries[] = {"libroctx64.so.4",
                                            "librocprofiler-sdk-roctx.so.1",
                                            "librocprofiler-sdk-roctx.so.0",
                                            "libroctx64.so.1",
                                            "libroctx64.so",
                                            NULL};
    void *f = gt_dl_behind(name, libraries), *none = NULL;

    if (!f)
        f = (void *)(uintptr_t)&nobody;
    if (!atomic_compare_exchange_strong_explicit(behind, &none, f, memory_order_release,
                                                 memory_order_acquire))
        f = none;
    return f;
}

static inline void *look(_Atomic(void *) *behind, const char *name)
{
    void *f = atomic_load_explicit(behind, memory_order_acquire);

    if (unlikely(!f))
        f = find(behind, name);
    return f == &nobody ? NULL : f;
}
#define REAL(name) ((name##_fn *)look(&behind_##name, #name))

/* ---- ranges of one thread, marks ---- */

/* Its own work is outside of our range, as the program's range is meant. */
static int on_roctxRangePushA(const char *text)
{
    roctxRangePushA_fn *real = REAL(roctxRangePushA);
    int theirs = real ? real(text) : -1, ours = -1;

    if (likely(on()))
        ours = gt_hot_push(TAG, text, gt_nvtx_push_new);
    return real ? theirs : ours;
}

static int on_roctxRangePop(void)
{
    roctxRangePop_fn *real = REAL(roctxRangePop);
    int ours = likely(on()) ? gt_hot_pop(GT_TAG_GROUP(TAG)) : -1;

    return real ? real() : ours;
}

static void on_roctxMarkA(const char *text)
{
    roctxMarkA_fn *real = REAL(roctxMarkA);

    if (on())
        gt_mark(TAG,
                &(struct gt_attr){.name = text, .scope = GT_SCOPE_USER, .stack = GT_STACK_RANGE});
    if (real)
        real(text);
}

/* ---- ranges that may end on any thread ---- */

/* The program has the real library's id, so ours is kept under it: in one of the places that
 * follow from the id. A place is taken by its key (id + 1; 0: free) and read by the one who takes
 * the range out. */
#define PLACES 4096u
#define PROBES 64u
#define NOT_KEPT UINT64_MAX /* it is open, but recording was paused or out of memory */
static struct place {
    _Atomic uint64_t key, ours;
} places[PLACES];

static struct place *place(uint64_t id, uint32_t probe)
{
    return &places[((uint32_t)(id * 0x9e3779b97f4a7c15u >> 40) + probe) % PLACES];
}

static void keep(uint64_t id, uint64_t ours)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        struct place *p = place(id, i);
        uint64_t none = 0;

        /* `ours` is written when the key is there: whoever ends the range got its id after that.
         * Pairs: acquire here with the release of the one who left the place. */
        if (atomic_compare_exchange_strong_explicit(&p->key, &none, id + 1, memory_order_acquire,
                                                    memory_order_relaxed)) {
            atomic_store_explicit(&p->ours, ours, memory_order_release);
            return;
        }
    }
    gt_end_instant(ours); /* thousands are open: its stop will be one too many */
}

/* 0: no such range. */
static uint64_t take(uint64_t id)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        struct place *p = place(id, i);
        uint64_t ours;

        if (atomic_load_explicit(&p->key, memory_order_relaxed) != id + 1)
            continue;
        ours = atomic_exchange_explicit(&p->ours, 0, memory_order_acq_rel);
        if (!ours)
            continue; /* another thread ends it too, and was first */
        atomic_store_explicit(&p->key, 0, memory_order_release);
        return ours;
    }
    return 0;
}

static uint64_t on_roctxRangeStartA(const char *text)
{
    roctxRangeStartA_fn *real = REAL(roctxRangeStartA);
    uint64_t theirs = real ? real(text) : 0, ours = 0;

    if (!on())
        return theirs;
    ours = gt_start(TAG, &(struct gt_attr){.name = text, .scope = GT_SCOPE_USER});
    if (!real)
        return ours;
    keep(theirs, ours ? ours : NOT_KEPT);
    return theirs;
}

static void on_roctxRangeStop(uint64_t id)
{
    roctxRangeStop_fn *real = REAL(roctxRangeStop);

    if (on()) {
        uint64_t ours = real ? take(id) : id;

        /* gt_end counts an unknown one; without a real library 0 is a start that was not kept */
        if (ours != NOT_KEPT && (ours || real))
            gt_end(ours);
    }
    if (real)
        real(id);
}

/* ---- control, names ---- */

/* Unlike ours they do not nest. We pause the process or nothing: a pause of one thread (tid not 0)
 * is not followed. */
static atomic_int paused;

static int on_roctxProfilerPause(uint64_t tid)
{
    roctxProfilerPause_fn *real = REAL(roctxProfilerPause);

    if (on() && tid == 0 && !atomic_exchange(&paused, 1))
        gt_pause();
    return real ? real(tid) : 0;
}

static int on_roctxProfilerResume(uint64_t tid)
{
    roctxProfilerResume_fn *real = REAL(roctxProfilerResume);

    if (on() && tid == 0 && atomic_exchange(&paused, 0))
        gt_resume();
    return real ? real(tid) : 0;
}

static int on_roctxNameOsThread(const char *name)
{
    roctxNameOsThread_fn *real = REAL(roctxNameOsThread);

    if (on())
        gt_name_thread(GT_SOURCE_ROCTX, 0, name);
    return real ? real(name) : 0;
}

/* ---- the ways in ---- */

#define HOOK(name, result, parameters, arguments)                                                  \
    GT_EXPORT result name parameters;                                                              \
    GT_EXPORT result name parameters                                                               \
    {                                                                                              \
        return on_##name arguments;                                                                \
    }
#include "hooks/roctx.def"
#undef HOOK

#define HOOK(name, ...) {#name, (void (*)(void))on_##name, &behind_##name},
static const struct gt_hook by_name[] = {
#include "hooks/roctx.def"
};
#undef HOOK

const struct gt_hooks gt_roctx_hooks = {
    .prefix = "roctx",
    .prefix_len = 5,
    .hooks = by_name,
    .count = sizeof(by_name) / sizeof(*by_name),
    .source = GT_SOURCE_ROCTX,
};
