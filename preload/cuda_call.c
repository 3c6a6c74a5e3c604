/* What every wrapper of CUDA does, on the program's threads: finds the real function, opens the
 * range of the call and closes it. */
#include "cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include "core/compat.h"
#include "core/core.h"
#include "core/record.h"
#include "dl.h"

/* ---- the real function ---- */

void gt_cuda_learn(const struct gt_cuda_api *api, size_t i, void *fn)
{
    unsigned at = atomic_load_explicit(&gt_torch_opened, memory_order_relaxed) + 1;
    struct gt_cuda_real *real = &api->real[i];
    Dl_info info;

    if (fn && gt_dl_ours(fn))
        return; /* a handle of the program's led to our own function, which is not behind itself */
    atomic_store_explicit(&real->base, fn && dladdr(fn, &info) ? info.dli_fbase : NULL,
                          memory_order_relaxed);
    atomic_store_explicit(&real->fn, fn, memory_order_relaxed);
    atomic_store_explicit(&real->at, at, memory_order_release);
}

/* Its library is still where it was. */
static int still_there(const struct gt_cuda_real *real, void *fn)
{
    Dl_info info;

    return dladdr(fn, &info) &&
           info.dli_fbase == atomic_load_explicit(&real->base, memory_order_relaxed);
}

__attribute__((noinline, cold)) void *gt_cuda_find(const struct gt_cuda_api *api, size_t i)
{
    struct gt_cuda_real *real = &api->real[i];
    unsigned at = atomic_load_explicit(&gt_torch_opened, memory_order_relaxed) + 1;
    unsigned before = atomic_load_explicit(&real->at, memory_order_acquire);
    void *fn = atomic_load_explicit(&real->fn, memory_order_relaxed);
    int saved = errno;

    if (!fn && before == at)
        return NULL; /* looked for since the last dlopen */
    if (fn && still_there(real, fn)) {
        atomic_store_explicit(&real->at, at, memory_order_release);
    } else {
        fn = gt_dl_find(api->hooks[i].name, api->libraries);
        gt_cuda_learn(api, i, fn);
    }
    errno = saved;
    return fn;
}

/* ---- the range of a call ---- */

__thread struct gt_cuda_thread gt_cuda_thread;

#define TAG GT_TAG(GT_SOURCE_CUDA, 0, 0)

static void events_before(const struct gt_cuda_info *info)
{
    if (info->kind == GT_CUDA_CONTEXT_END)
        gt_cuda_events_let_go();
    else if (info->kind == GT_CUDA_SYNC)
        gt_cuda_events_collect(1);
}

int gt_cuda_begin(const struct gt_cuda_info *info)
{
    if (unlikely(!gt_source_on(GT_SOURCE_CUDA)))
        return GT_CUDA_OFF;
    if (unlikely(atomic_load_explicit(&gt_cuda_events, memory_order_relaxed)))
        events_before(info);
    return gt_push_call(TAG, info->key);
}

unsigned gt_cuda_end(int begun, unsigned result, uint64_t bytes)
{
    if (unlikely(begun == GT_CUDA_OFF))
        return result;
    if (unlikely(atomic_load_explicit(&gt_cuda_events, memory_order_relaxed)))
        gt_cuda_events_collect(0); /* the call may have waited for some */
    /* A driver call inside a runtime call moves what that one moved. */
    gt_pop_call(GT_TAG_GROUP(TAG), begun == 0 ? bytes : 0,
                result != 0 && result != GT_CUDA_NOT_READY);
    return result;
}

int gt_cuda_in_call(void)
{
    return gt_call_open(GT_TAG_GROUP(TAG));
}

/* ---- captures ---- */

static atomic_int captures;

/* A capture that became invalid may end twice, or not at all. */
void gt_cuda_capture(int change)
{
    if (atomic_fetch_add_explicit(&captures, change, memory_order_relaxed) + change < 0)
        atomic_store_explicit(&captures, 0, memory_order_relaxed);
}

int gt_cuda_captures(void)
{
    return atomic_load_explicit(&captures, memory_order_relaxed);
}

/* ---- when to record ---- */

/* Unlike ours they do not nest. The runtime's calls the driver's, and comes second. */
static atomic_int stopped;

void gt_cuda_profiler(int start)
{
    if (!gt_source_on(GT_SOURCE_CUDA))
        return;
    /* without a stop it must not end another source's pause, but it may be what a window waits for
     * that begins with a resume */
    if (start && (atomic_exchange(&stopped, 0) || atomic_load(&gt_paused) == 0))
        gt_resume();
    else if (!start && !atomic_exchange(&stopped, 1))
        gt_pause();
}
