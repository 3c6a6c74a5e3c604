/* The core's life: configuration, the page that a fork wipes, pause, end. */
#include "core/core.h"
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include "core/clock.h"
#include "core/fork.h"
#include "core/ident.h"
#include "core/record.h"
#include "core/say.h"
#include "core/session.h"
#include "core/slot.h"
#include "core/stacks.h"
#include "core/sys.h"
#include "core/thread.h"
#include "core/window.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

extern char **environ;

union gt_fork_page gt_fork __attribute__((aligned(GT_PAGE)));
_Atomic int gt_paused;
struct gt_config gt_config;
void (*gt_core_opened)(void);

static void wipe_in_child(void)
{
    memset(&gt_fork, 0, sizeof gt_fork);
}

static void init(void)
{
    static char cwd[4096];
    static char exe[4096]; /* the first call may come on a fibre's small stack */
    gt_say_init();
    gt_config_parse(&gt_config, environ);
    if (gt_sys(SYS_getcwd, (long)cwd, sizeof cwd, 0, 0, 0, 0) > 0)
        gt_config.cwd = cwd;
    if (getauxval(AT_SECURE))
        gt_config.disable = 1; /* never write a file with somebody else's rights */
    if (gt_ident_exe(exe, sizeof exe)) {
        const char *base = strrchr(exe, '/');
        if (!gt_config_glob(gt_config.exe, base ? base + 1 : exe))
            gt_config.disable = 1;
    }
    /* pthread_atfork misses _Fork and raw clone, so only where the kernel (before 4.14) can't do it
     */
    if (gt_sys(SYS_madvise, (long)&gt_fork, sizeof gt_fork, MADV_WIPEONFORK, 0, 0, 0) < 0)
        pthread_atfork(NULL, NULL, wipe_in_child);
    gt_window_init();
    gt_stacks_init();
    gt_fork_init();
    gt_slot_init();
}

void gt_core_init(void)
{
    static _Atomic int done; /* 1: under way, 2: yes */
    int none = 0;
    if (atomic_load_explicit(&done, memory_order_acquire) == 2)
        return;
    if (atomic_compare_exchange_strong(&done, &none, 1)) {
        init();
        atomic_store_explicit(&done, 2, memory_order_release);
    }
    while (atomic_load_explicit(&done, memory_order_acquire) != 2)
        gt_sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

int gt_source_on(uint32_t source)
{
    gt_core_init();
    return !gt_config.disable && (gt_config.sources >> source & 1);
}

/* Ranges that have stacks take the slow way too, but only from the way that knows the clock. */
static uint32_t tsc_go(uint32_t go)
{
    return gt_clock_kind == GT_CLOCK_TSC && !(gt_config.stacks & GT_STACKS_RANGES) ? go : 0;
}

/* A window that shuts by itself has no thread of ours to do it: every call looks at the time. */
static uint32_t wanted_go(void)
{
    int slow = gt_config.window.kind == GT_WINDOW_TIME && gt_config.window.duration_ns;
    return slow || gt_is_paused() || atomic_load(&gt_fork.phase) != GT_PHASE_OPEN ? 0
                                                                                  : gt_window_pass;
}

void gt_pause_apply(void)
{
    uint32_t go = wanted_go(), now;
    for (;; go = now) { /* until what was stored last is what is wanted, whoever stores too */
        atomic_store(&gt_fork.go_tsc, tsc_go(go));
        atomic_store(&gt_fork.go, go);
        if ((now = wanted_go()) == go)
            return;
    }
}

static void pause_by(int n)
{
    atomic_fetch_add(&gt_paused, n);
    if (atomic_load_explicit(&gt_fork.phase, memory_order_acquire) == GT_PHASE_OPEN)
        gt_pause_apply();
}

void gt_pause(void)
{
    pause_by(1);
}

void gt_resume(void)
{
    gt_core_init(); /* a program may resume before anything was recorded */
    int n = atomic_load(&gt_paused);
    do {
        if (n <= 0)
            break; /* a resume without its pause */
    } while (!atomic_compare_exchange_weak(&gt_paused, &n, n - 1));
    if (n <= 1)
        gt_window_resumed();
    pause_by(0);
}

int gt_core_began(void)
{
    uint32_t phase = atomic_load_explicit(&gt_fork.phase, memory_order_acquire);
    return phase != GT_PHASE_NONE && phase != GT_PHASE_OFF;
}

int gt_core_end(void)
{
    uint32_t open = GT_PHASE_OPEN;
    struct gt_header *h = gt_session.header;
    if (!gt_core_began())
        return 0; /* no system call in a process that recorded nothing: a sandbox may kill for it */
    if (gt_session.pid != (uint32_t)gt_sys(SYS_getpid, 0, 0, 0, 0, 0, 0))
        return 0; /* a vfork child shares our memory; a fork child has no session yet */
    /* Another thread makes the session just now; it holds its signals, so it will get on. Unless we
     * are it, in the handler of a signal that can't be held. */
    while (atomic_load_explicit(&gt_fork.phase, memory_order_acquire) == GT_PHASE_OPENING &&
           (gt_self == &gt_nobody || gt_self->door != GT_DOOR_SHUT))
        gt_sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    if (atomic_load(&gt_fork.phase) == GT_PHASE_OPEN)
        gt_window_look();
    if (!atomic_compare_exchange_strong(&gt_fork.phase, &open, GT_PHASE_CLOSED))
        return 0;
    atomic_store(&gt_fork.go_tsc, 0);
    atomic_store(&gt_fork.go, 0);
    h->end = gt_clock_pair();
    h->stderr_same = (uint32_t)gt_say_possible();
    atomic_store_explicit(&h->state, GT_STATE_ENDED, memory_order_release);
    return 1;
}
