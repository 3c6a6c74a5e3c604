/* The end: hands the session over. The report is made by `gputally finish`, another process, so
 * that nothing of jansson, stdio or malloc runs in the host.
 *
 * The helper is started by clone(CLONE_VM | CLONE_VFORK) with exit signal 0, and that middle child
 * starts another and that one execs: the host gets no SIGCHLD, and its wait(-1) sees no stranger
 * (exec would set the exit signal back to SIGCHLD, hence the middle one). The host's threads go on
 * meanwhile; only the exiting one waits. */
#include "preload/exit.h"
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "core/core.h"
#include "core/say.h"
#include "core/session.h"
#include "core/sys.h"
#include "core/text.h"
#include "preload/dl.h"

extern char **environ;

/* The middle child writes here through the shared memory. Only the exiting thread uses it. */
static struct job {
    char cli[4200];
    char older[sizeof gt_session.path];
    char *argv[6];
    int from_memory; /* the session has no file */
    int mute;        /* fd 2 is another file than at the start */
    char *envp[24];
    int pipe[2]; /* session in private memory: its bytes go to the helper's stdin */
    sigset_t mask;
    int status;
} job;
static char stack[64 * 1024] __attribute__((aligned(64)));
static char helper_stack[16 * 1024] __attribute__((aligned(64)));

/* Under `run` the folder's owner makes the reports, unless it has already looked for the last time.
 */
static int somebody_will_finish(void)
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

/* After a chroot our path names somebody else's file, and it would run with our rights. */
struct place {
    uint64_t device, inode;
};
static struct place root_at_start;
static struct place root_now(void)
{
    struct stat s;
    if (gt_sys(SYS_newfstatat, AT_FDCWD, (long)"/", (long)&s, 0, 0, 0) < 0)
        return (struct place){0};
    return (struct place){s.st_dev, s.st_ino};
}

/* The CLI lies beside the library in a build, in ../../bin in an installation. */
static int find_cli(void)
{
    static const char *const places[] = {"/gputally", "/../../bin/gputally", "/../bin/gputally"};
    const char *self = gt_dl_self(), *slash = self ? strrchr(self, '/') : NULL;
    struct place root = root_now();
    /* (0: an exit before our constructor, from another one's) */
    if (root_at_start.inode &&
        (root.device != root_at_start.device || root.inode != root_at_start.inode))
        return -EXDEV;
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        struct gt_text t;
        gt_text_init(&t, job.cli, sizeof job.cli);
        gt_text_add_n(&t, self, (size_t)(slash - self));
        gt_text_add(&t, places[i]);
        if (!t.cut && gt_sys(SYS_faccessat, AT_FDCWD, (long)job.cli, X_OK, 0, 0, 0) == 0)
            return 0;
    }
    return -ENOENT;
}

/* What the helper may see of the host's environment: never LD_PRELOAD (it would inject us into it)
 * nor LD_LIBRARY_PATH (it is meant for the host). Copied at the start: at the end `environ` may
 * point anywhere. */
void gt_exit_init(void)
{
    static const char *const names[] = {"PATH=", "HOME=",    "LANG=",     "LC_ALL=", "LC_CTYPE=",
                                        "TERM=", "COLUMNS=", "NO_COLOR=", "TMPDIR=", "TZ="};
    static char kept[8192];
    struct gt_text t;
    size_t n = 0;
    gt_text_init(&t, kept, sizeof kept);
    for (char **e = environ; e && *e; e++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strncmp(*e, names[i], strlen(names[i])) == 0 &&
                n + 1 < sizeof job.envp / sizeof *job.envp && strlen(*e) + 1 < t.size - t.len) {
                job.envp[n++] = kept + t.len;
                gt_text_add_n(&t, *e, strlen(*e) + 1); /* the NUL too */
            }
    root_at_start = root_now();
}

/* Where the host has closed 0, 1 or 2, our own descriptors may be those already. */
static void put_at(int fd, int place)
{
    if (fd == place)
        gt_sys(SYS_fcntl, fd, F_SETFD, 0, 0, 0, 0); /* it is to stay over exec */
    else
        gt_sys(SYS_dup3, fd, place, 0, 0, 0, 0);
}

/* In the grandchild, which still shares our memory: only system calls until exec. */
static int become_helper(void *unused)
{
    (void)unused;
    struct rlimit64 r;
    int null = gt_sys_open("/dev/null", O_RDWR, 0);
    put_at(job.from_memory ? job.pipe[0] : null, 0);
    put_at(null, 1);
    if (job.mute)
        put_at(null, 2); /* the program uses fd 2 for something else */
    /* the host's `ulimit -v` is not meant for a reader of its session */
    if (gt_sys(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&r, 0, 0) == 0) {
        r.rlim_cur = r.rlim_max;
        gt_sys(SYS_prlimit64, 0, RLIMIT_AS, (long)&r, 0, 0, 0);
    }
    gt_sys(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0, 0); /* nor a ban on its clock */
    sigprocmask(SIG_SETMASK, &job.mask, NULL);
    gt_sys(SYS_execve, (long)job.cli, (long)job.argv, (long)job.envp, 0, 0, 0);
    gt_sys(SYS_exit_group, 127, 0, 0, 0, 0, 0);
    return 127;
}

static void write_session(void)
{
    const char *p = gt_session.base;
    uint64_t left = atomic_load(&gt_session.ready_bytes);
    while (left) {
        long r = gt_sys_write(job.pipe[1], p, left);
        if (r == -EINTR)
            continue;
        if (r <= 0)
            return;
        p += r;
        left -= (uint64_t)r;
    }
}

static int middle(void *unused)
{
    (void)unused;
    int status = 0;
    /* Opened here, in our own table of files: were the writing end in the host's too, the helper
     * would wait for ever for the end of its input. */
    if (job.from_memory && gt_sys(SYS_pipe2, (long)job.pipe, O_CLOEXEC, 0, 0, 0, 0) < 0)
        gt_sys(SYS_exit_group, 127, 0, 0, 0, 0, 0);
    /* not vfork(): AddressSanitizer interposes it and dies on a stack that is no thread's */
    pid_t helper = clone(become_helper, helper_stack + sizeof helper_stack,
                         CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    if (helper > 0) {
        if (job.from_memory) {
            gt_sys_close(job.pipe[0]);
            write_session();
            gt_sys_close(job.pipe[1]);
        }
        while (gt_sys(SYS_wait4, helper, (long)&status, 0, 0, 0, 0) == -EINTR)
            ;
    }
    /* one that was killed has told what it could, or left its session for `recover` */
    job.status = helper <= 0         ? 127
                 : WIFEXITED(status) ? WEXITSTATUS(status)
                                     : 128 + WTERMSIG(status);
    gt_sys(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    return 0;
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

static void run_helper(void)
{
    sigset_t all;
    int saved = errno;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &job.mask);
    job.status = 127;
    pid_t pid = clone(middle, stack + sizeof stack, CLONE_VM | CLONE_VFORK, NULL);
    while (pid > 0 && gt_sys(SYS_wait4, pid, 0, __WCLONE, 0, 0, 0) == -EINTR)
        ;
    leave_pending_blocked();
    errno = saved;
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
        gt_session_path(gt_session.sequence - 1, job.older, sizeof job.older);
        if (gt_sys(SYS_faccessat, AT_FDCWD, (long)job.older, F_OK, 0, 0, 0) == 0)
            job.argv[n++] = job.older;
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
    if (own && somebody_will_finish())
        return;
    if (!own && *gt_config.run_dir)
        return;
    if (!collect(own))
        return;
    job.status = 127;
    if (find_cli() == 0)
        run_helper();
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
