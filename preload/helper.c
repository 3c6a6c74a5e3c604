/* Starting `gputally`, which makes the reports, from inside the host. See helper.h.
 *
 * It is started by clone(CLONE_VM | CLONE_VFORK) with exit signal 0, and that middle child starts
 * another and that one execs: the host gets no SIGCHLD, and its wait(-1) sees no stranger (exec
 * would set the exit signal back to SIGCHLD, hence the middle one). The host's threads go on
 * meanwhile; only the calling one waits. */
#include "preload/helper.h"
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "core/core.h"
#include "core/session.h"
#include "core/sys.h"
#include "core/text.h"
#include "preload/dl.h"

extern char **environ;

static char *helper_env[24];

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
int gt_helper_find(struct gt_helper *job)
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
        gt_text_init(&t, job->cli, sizeof job->cli);
        gt_text_add_n(&t, self, (size_t)(slash - self));
        gt_text_add(&t, places[i]);
        if (!t.cut && gt_sys(SYS_faccessat, AT_FDCWD, (long)job->cli, X_OK, 0, 0, 0) == 0)
            return 0;
    }
    return -ENOENT;
}

/* What the helper may see of the host's environment: never LD_PRELOAD (it would inject us into it)
 * nor LD_LIBRARY_PATH (it is meant for the host). Copied at the start: at the end `environ` may
 * point anywhere. */
void gt_helper_init(void)
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
                n + 1 < sizeof helper_env / sizeof *helper_env && strlen(*e) + 1 < t.size - t.len) {
                helper_env[n++] = kept + t.len;
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
static int become_helper(void *p)
{
    const struct gt_helper *job = p;
    struct rlimit64 r;
    int null = gt_sys_open("/dev/null", O_RDWR, 0);
    put_at(job->from_memory ? job->pipe[0] : null, 0);
    put_at(null, 1);
    if (job->mute)
        put_at(null, 2); /* the program uses fd 2 for something else */
    /* the host's `ulimit -v` is not meant for a reader of its session */
    if (gt_sys(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&r, 0, 0) == 0) {
        r.rlim_cur = r.rlim_max;
        gt_sys(SYS_prlimit64, 0, RLIMIT_AS, (long)&r, 0, 0, 0);
    }
    gt_sys(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0, 0); /* nor a ban on its clock */
    sigprocmask(SIG_SETMASK, &job->mask, NULL);
    gt_sys(SYS_execve, (long)job->cli, (long)job->argv, (long)helper_env, 0, 0, 0);
    gt_sys(SYS_exit_group, 127, 0, 0, 0, 0, 0);
    return 127;
}

static void write_session(const struct gt_helper *job)
{
    const char *p = gt_session.base;
    uint64_t left = atomic_load(&gt_session.ready_bytes);
    while (left) {
        long r = gt_sys_write(job->pipe[1], p, left);
        if (r == -EINTR)
            continue;
        if (r <= 0)
            return;
        p += r;
        left -= (uint64_t)r;
    }
}

static int middle(void *p)
{
    struct gt_helper *job = p;
    int status = 0;
    /* Opened here, in our own table of files: were the writing end in the host's too, the helper
     * would wait for ever for the end of its input. */
    if (job->from_memory && gt_sys(SYS_pipe2, (long)job->pipe, O_CLOEXEC, 0, 0, 0, 0) < 0)
        gt_sys(SYS_exit_group, 127, 0, 0, 0, 0, 0);
    /* not vfork(): AddressSanitizer interposes it and dies on a stack that is no thread's */
    pid_t helper = clone(become_helper, job->helper_stack + sizeof job->helper_stack,
                         CLONE_VM | CLONE_VFORK | SIGCHLD, job);
    if (helper > 0) {
        if (job->from_memory) {
            gt_sys_close(job->pipe[0]);
            write_session(job);
            gt_sys_close(job->pipe[1]);
        }
        while (job->wait && gt_sys(SYS_wait4, helper, (long)&status, 0, 0, 0, 0) == -EINTR)
            ;
    }
    /* one that was killed has told what it could, or left its session for `recover` */
    job->status = helper <= 0         ? 127
                  : WIFEXITED(status) ? WEXITSTATUS(status)
                                      : 128 + WTERMSIG(status);
    gt_sys(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    return 0;
}

void gt_helper_run(struct gt_helper *job)
{
    sigset_t all;
    int saved = errno;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &job->mask);
    job->status = 127;
    pid_t pid = clone(middle, job->stack + sizeof job->stack, CLONE_VM | CLONE_VFORK, job);
    while (pid > 0 && gt_sys(SYS_wait4, pid, 0, __WCLONE, 0, 0, 0) == -EINTR)
        ;
    errno = saved;
}

void gt_helper_unblock(const struct gt_helper *job)
{
    sigprocmask(SIG_SETMASK, &job->mask, NULL);
}
