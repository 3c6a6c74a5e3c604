/* See snapshot.h. The signal's handler is the only one that we ever install, and only if the user
 * names a signal: it starts the tool and returns (about a millisecond), it waits for nothing and
 * takes no lock. A handler that was there before is called afterwards; one that the program sets
 * later replaces ours, and that is told at the end. */
#define GPUTALLY_IMPLEMENTATION
#include "preload/snapshot.h"
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include "gputally.h"
#include "core/core.h"
#include "core/record.h"
#include "core/say.h"
#include "core/session.h"
#include "core/sys.h"
#include "core/text.h"
#include "preload/exit.h"
#include "preload/helper.h"

static struct gt_helper job;
static _Atomic int owner; /* thread that uses `job`, 0: none */
static char seconds[32];
static struct sigaction before;
static int installed;

static int open_here(void)
{
    return atomic_load(&gt_fork.phase) == GT_PHASE_OPEN &&
           gt_session.pid == (uint32_t)gt_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* The tool would be our child if it lost its parent: then the host must not see it, nor its end. */
static int adopts(void)
{
    int yes = 0;
    gt_sys(SYS_prctl, PR_GET_CHILD_SUBREAPER, (long)&yes, 0, 0, 0, 0);
    return yes || gt_sys(SYS_getpid, 0, 0, 0, 0, 0, 0) == 1;
}

/* `job` is ours. Returns 0, or -1 if no report was made; when not waited for, if none is begun. */
static int start(int wait, int merge, const char *every)
{
    int n = 0;
    if (gt_helper_find(&job) < 0)
        return -1;
    job.argv[n++] = job.cli;
    job.argv[n++] = (char *)"finish";
    job.argv[n++] = (char *)"--snapshot";
    if (gt_config.log < 2 || gt_config.quiet)
        job.argv[n++] = (char *)"--quiet";
    if (merge)
        job.argv[n++] = (char *)"--merge";
    if (every) {
        job.argv[n++] = (char *)"--every";
        job.argv[n++] = (char *)every;
    }
    job.argv[n++] = (char *)"--";
    job.argv[n++] = gt_session.path;
    job.argv[n] = NULL;
    job.mute = !gt_say_possible();
    job.wait = wait;
    gt_helper_run(&job);
    gt_helper_unblock(&job);
    return job.status ? -1 : 0;
}

static int no_file(void)
{
    static _Atomic int told;
    if (gt_session.path[0])
        return 0;
    if (!atomic_exchange(&told, 1))
        gt_say(GT_SAY_WARNING, "no snapshots: the session has no file");
    return 1;
}

static int flush(void)
{
    int me = (int)gt_sys(SYS_gettid, 0, 0, 0, 0, 0, 0), none = 0, rc;
    if (!open_here())
        return 0; /* nothing has been recorded */
    if (no_file())
        return -1;
    while (!atomic_compare_exchange_strong(&owner, &none, me)) {
        if (none == me)
            return -1; /* from a handler, inside a flush of this thread */
        none = 0;
        gt_sys(SYS_nanosleep, (long)&(struct timespec){.tv_nsec = 1000000}, 0, 0, 0, 0, 0);
    }
    rc = start(1, 0, NULL);
    atomic_store(&owner, 0);
    return rc;
}

int gputally_flush(void)
{
    return gt_source_on(GT_SOURCE_API) ? flush() : 0;
}

static void handler(int sig, siginfo_t *info, void *context)
{
    int saved = errno, none = 0, me = (int)gt_sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
    /* one that comes while another is being started is that one, as signals are; so is one that
     * comes while the tool of another waits */
    if (open_here() && !no_file() && atomic_compare_exchange_strong(&owner, &none, me)) {
        start(adopts(), 1, NULL);
        atomic_store(&owner, 0);
    }
    errno = saved;
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(sig, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(sig);
}

void gt_snapshot_init(void)
{
    struct sigaction s = {.sa_sigaction = handler,
                          .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    if (!gt_config.snapshot_signal)
        return;
    sigemptyset(&s.sa_mask);
    installed = sigaction(gt_config.snapshot_signal, &s, &before) == 0;
}

void gt_snapshot_opened(void)
{
    struct gt_text t;
    uint64_t part = gt_config.snapshot_ns % 1000000000u;
    atomic_store(&owner, 0); /* a fork child's is the parent's */
    if (!gt_config.snapshot_ns || gt_exit_by_run() || no_file())
        return;
    if (adopts()) { /* who waits for all of its children would wait for itself */
        gt_say(GT_SAY_WARNING, "no snapshots: this process adopts orphans, and would be the parent "
                               "of the one that makes them; `gputally run` can make them");
        return;
    }
    gt_text_init(&t, seconds, sizeof seconds);
    gt_text_add_u64(&t, gt_config.snapshot_ns / 1000000000u);
    gt_text_add(&t, ".");
    for (uint64_t digit = 100000000; digit > part && digit > 1; digit /= 10)
        gt_text_add(&t, "0");
    gt_text_add_u64(&t, part);
    atomic_store(&owner, 1);
    if (start(0, 0, seconds) < 0)
        gt_say(GT_SAY_WARNING, "could not run `gputally finish --every`: no snapshots");
    atomic_store(&owner, 0);
}

void gt_snapshot_end(void)
{
    struct sigaction now;
    if (installed && sigaction(gt_config.snapshot_signal, NULL, &now) == 0 &&
        now.sa_sigaction != handler)
        gt_say(GT_SAY_WARNING, "the program has its own handler for the signal of "
                               "GPUTALLY_SNAPSHOT_SIGNAL: it made no snapshots");
}
