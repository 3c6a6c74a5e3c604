/* The end: hands the session over. The report is made by `gputally finish`, another process, so
 * that nothing of jansson, stdio or malloc runs in the host. (helper.c says how it is started.) */
#include "preload/exit.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "core/core.h"
#include "core/say.h"
#include "core/session.h"
#include "core/sys.h"
#include "core/text.h"
#include "preload/helper.h"
#include "preload/snapshot.h"

static struct gt_helper job; /* only the exiting thread uses it */
static char older[sizeof gt_session.path];

/* Under `run` the folder's owner makes the reports, unless it has already looked for the last time.
 */
int gt_exit_by_run(void)
{
    char path[4200];
    struct gt_text t;
    if (!*gt_config.run_dir || !gt_session.path[0] ||
        strncmp(gt_session.prefix, gt_config.run_dir, strlen(gt_config.run_dir)) != 0)
        return 0;
    gt_text_init(&t, path, sizeof path);
    gt_text_add(&t, gt_config.run_dir);
    if (gt_sys(SYS_faccessat, AT_FDCWD, (long)path, F_OK, 0, 0, 0) < 0)
        return 0;
    gt_text_add(&t, "/" GT_RUN_CLOSED);
    return gt_sys(SYS_faccessat, AT_FDCWD, (long)path, F_OK, 0, 0, 0) < 0;
}

/* The program would have been gone when a signal came while we made its report, a timer's say: such
 * a one stays blocked, or it would end the program with another status. */
static void leave_pending_blocked(void)
{
    uint64_t pending = 0, mask = 0;
    memcpy(&mask, &job.mask, sizeof mask);
    gt_sys(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0, 0, 0);
    mask |= pending;
    gt_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof mask, 0, 0);
}

static void run(void)
{
    job.wait = 1;
    gt_helper_run(&job);
    leave_pending_blocked();
}

/* Names the sessions to finish: the own one, and the last of those from before an exec where the
 * own one has no name to lead there (`finish` takes the earlier ones of a process by itself).
 * Returns how many. */
static int collect(int own)
{
    int n = 0, first;
    job.argv[n++] = job.cli;
    job.argv[n++] = (char *)"finish";
    job.argv[n++] = (char *)"--";
    first = n;
    job.from_memory = own && !gt_session.path[0];
    job.mute = own ? !gt_session.header->stderr_same : !gt_say_possible();
    if (gt_session.sequence && (!own || job.from_memory)) {
        gt_session_path(gt_session.sequence - 1, older, sizeof older);
        if (gt_sys(SYS_faccessat, AT_FDCWD, (long)older, F_OK, 0, 0, 0) == 0)
            job.argv[n++] = older;
    }
    /* not looked for: a process that gave its rights away may not see its own, and is told then */
    if (own)
        job.argv[n++] = job.from_memory ? (char *)"-" : gt_session.path;
    job.argv[n] = NULL;
    return n - first;
}

/* Two threads leave at once: the second waits until the first has its report, for the kernel ends
 * both when it returns. Who comes from a handler on the first one's thread does not wait for
 * itself. */
static _Atomic int leaver;
static void await_leaver(void)
{
    int it = atomic_load(&leaver);
    if (it <= 0 || it == (int)gt_sys(SYS_gettid, 0, 0, 0, 0, 0, 0))
        return;
    while (atomic_load(&leaver) == it)
        gt_sys(SYS_nanosleep, (long)&(struct timespec){.tv_nsec = 1000000}, 0, 0, 0, 0, 0);
}

void gt_exit_opened(void)
{
    atomic_store(&leaver, 0);     /* a fork child's is the parent's */
    (void)at_quick_exit(gt_exit); /* no room: a report by run or recover only */
}

static void leave(void)
{
    int own = gt_core_end();
    if (!own && (!gt_session.sequence || gt_session.pid))
        return; /* nothing recorded here, nothing left from before an exec; or done already */
    if (own)
        gt_snapshot_end();
    if (own && gt_exit_by_run())
        return;
    if (!own && *gt_config.run_dir)
        return;
    if (!collect(own))
        return;
    job.status = 127;
    if (gt_helper_find(&job) == 0)
        run();
    if (job.status != 127)
        return;
    if (job.from_memory)
        gt_say(GT_SAY_WARNING, "could not run `gputally finish`; what was recorded is lost");
    else
        gt_say(GT_SAY_WARNING,
               "could not run `gputally finish`; the session is kept: ", job.argv[3]);
}

void gt_exit(void)
{
    int nobody = 0;
    if (!gt_core_began() && (gt_session.pid || !gt_session.sequence))
        return; /* no system call in a process that recorded nothing: a sandbox may kill for it */
    if (gt_session.pid && gt_session.pid != (uint32_t)gt_sys(SYS_getpid, 0, 0, 0, 0, 0, 0))
        return; /* a vfork child in our memory */
    if (!atomic_compare_exchange_strong(&leaver, &nobody,
                                        (int)gt_sys(SYS_gettid, 0, 0, 0, 0, 0, 0))) {
        await_leaver();
        return;
    }
    leave();
    atomic_store(&leaver, -1);
}

/* The program leaves without running destructors. In a vfork child this is the parent's memory:
 * gt_core_end looks at the pid. */
__attribute__((visibility("default"), noreturn)) void _exit(int status)
{
    gt_exit();
    for (;;)
        gt_sys(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

__attribute__((visibility("default"), noreturn, alias("_exit"))) void _Exit(int status);
