/* The core's own state, shared by its files. Nothing here is for the sources (they use record.h)
 * but gt_core_init and what preload/init.c and exit.c need.
 *
 * What must not survive a fork lives in gt_fork: a page of its own that the kernel wipes in the
 * child (MADV_WIPEONFORK covers fork, _Fork and raw clone alike). Every recording call compares its
 * thread's generation with gt_fork.go, so a wiped page, a pause and the end all lead to the same
 * slow path. */
#ifndef GT_CORE_H
#define GT_CORE_H

#include <stdatomic.h>
#include <stdint.h>
#include "core/config.h"
#include "core/layout.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
/* On a declaration: -fvisibility=hidden alone leaves extern variables to the GOT. */
#define GT_HIDDEN __attribute__((visibility("hidden")))

enum gt_phase {
    GT_PHASE_NONE = 0,    /* no session (yet, or a fork child): the next call opens one */
    GT_PHASE_OPENING = 1, /* a thread is at it, others wait */
    GT_PHASE_OPEN = 2,
    GT_PHASE_OFF = 3,    /* disabled or impossible: nothing will be recorded */
    GT_PHASE_CLOSED = 4, /* our destructor has run */
};

/* The largest page size of the machines we build for: the wiped page must not share its page. */
#ifdef __aarch64__
#define GT_PAGE 65536
#else
#define GT_PAGE 4096
#endif
union gt_fork_page {
    struct {
        _Atomic uint32_t go; /* generation of the session, 0: take the slow path */
        _Atomic uint32_t
            go_tsc; /* the same where the clock is the TSC and ranges have no stacks, else 0 */
        _Atomic uint32_t phase; /* enum gt_phase */
    };
    char page[GT_PAGE];
};
extern union gt_fork_page gt_fork GT_HIDDEN;

/* How often gt_pause was called without gt_resume; survives a fork as the program's own state does.
 */
extern _Atomic int gt_paused GT_HIDDEN;

extern struct gt_config gt_config GT_HIDDEN; /* constant after gt_core_init */

/* Called after a session was opened, on the thread that did it; set by preload/init.c, may be NULL.
 */
extern void (*gt_core_opened)(void);

/* Reads the configuration and prepares the fork page. Idempotent, any thread; called by the
 * constructor and, where another constructor records first, by the first recording call. */
void gt_core_init(void);

/* 1 from the moment a first call of this process has begun to open its session. No system call. */
int gt_core_began(void);

/* Ends recording: closes the session in order, later calls count as lost[LATE]. Async-signal-safe
 * in the sense that it takes no lock and calls no malloc. Returns 1 if this process had a session.
 */
int gt_core_end(void);

#endif
