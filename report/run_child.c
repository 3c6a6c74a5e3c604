/* The program under `run`. Our caller must not be able to tell us from it, so signals go through
 * and its end is our end. */
#include "report/run_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Waited for instead of handled. Left alone: KILL and STOP can't be, TTIN and TTOU are about our
 * own reads and writes, and the synchronous ones must kill us if we crash. */
static void awaited_set(sigset_t *s)
{
    static const int left[] = {SIGKILL, SIGSTOP, SIGTTIN, SIGTTOU, SIGSEGV,
                               SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGSYS};

    sigfillset(s);
    for (unsigned i = 0; i < sizeof left / sizeof *left; i++)
        sigdelset(s, left[i]);
}

static _Noreturn void child(const struct gt_run_child *c, const char *path, char *const argv[],
                            char *const env[], int report)
{
    int why;

    sigaction(SIGCHLD, &c->old_chld, NULL);
    sigprocmask(SIG_SETMASK, &c->original, NULL);
    execve(path, argv, env);
    why = errno;
    if (why == ENOEXEC) {
        /* a script without #!: execvp gives it to the shell, and so do all shells */
        size_t n = 0;
        while (argv[n])
            n++;
        const char **shell = calloc(n + 3, sizeof *shell);
        if (shell) {
            shell[0] = "sh";
            shell[1] = path;
            for (size_t i = 1; i < n; i++)
                shell[i + 1] = argv[i];
            execve("/bin/sh", (char *const *)shell, env);
            why = errno;
        }
    }
    while (write(report, &why, sizeof why) < 0 && errno == EINTR)
        ;
    _exit(127);
}

/* A caller may have closed 0, 1 or 2: the program must find them closed too, and never in use by
 * us. */
static int high_pipe(int fds[2])
{
    int low[2];

    if (pipe2(low, O_CLOEXEC))
        return -errno;
    for (int i = 0; i < 2; i++) {
        fds[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 3);
        close(low[i]);
    }
    return fds[0] < 0 || fds[1] < 0 ? -EMFILE : 0;
}

/* Once the program is on its way only our messages matter: whatever else the caller gave is the
 * program's, and who waits for the end of a pipe must not wait for us too. 0 to 2 stay taken, or a
 * report's file could become fd 2 and get our messages. */
static void let_go(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return;
    dup2(null, 0);
    dup2(null, 1);
    if (null != 2 && fcntl(2, F_GETFD) < 0)
        dup2(null, 2);
    if (close_range(3, ~0u, 0) && null > 2)
        close(null); /* before Linux 5.9 the rest stays */
}

void gt_run_child_prepare(struct gt_run_child *c)
{
    c->status = 0;
    awaited_set(&c->awaited);
    sigprocmask(SIG_BLOCK, &c->awaited, &c->original);
}

int gt_run_child_start(struct gt_run_child *c, const char *path, char *const argv[],
                       char *const env[])
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    int report[2] = {-1, -1}, why = 0;
    ssize_t n;

    if ((why = high_pipe(report)))
        return why;
    /* a caller that ignores SIGCHLD would have the kernel throw away the status */
    sigaction(SIGCHLD, &plain, &c->old_chld);

    c->pid = fork();
    if (!c->pid)
        child(c, path, argv, env, report[1]);
    why = errno;
    close(report[1]);
    if (c->pid < 0) {
        close(report[0]);
        return -why;
    }
    do
        n = read(report[0], &why, sizeof why);
    while (n < 0 && errno == EINTR);
    close(report[0]);
    if (n != sizeof why) {
        let_go();
        return 0;
    }
    waitpid(c->pid, NULL, 0);
    return -why;
}

/* The shell must see its job stop. SIGSTOP is left out: who stops the program by its pid will also
 * continue it by its pid, and would leave us lying. */
static void stop_too(const struct gt_run_child *c, int sig)
{
    siginfo_t i = {.si_pid = 0};

    if (sig != SIGTSTP && sig != SIGTTIN && sig != SIGTTOU)
        return;
    kill(getpid(), SIGSTOP);
    /* a shell continues the whole group; anybody else continued only us */
    if (waitid(P_PID, c->pid, &i, WCONTINUED | WNOHANG) == 0 && !i.si_pid)
        kill(c->pid, SIGCONT);
}

static int reap(struct gt_run_child *c)
{
    int status;
    pid_t got;

    while ((got = waitpid(c->pid, &status, WNOHANG | WUNTRACED)) == c->pid) {
        if (!WIFSTOPPED(status)) {
            c->status = status;
            return 1;
        }
        stop_too(c, WSTOPSIG(status));
    }
    return got < 0 && errno == ECHILD;
}

static void pass_on(const struct gt_run_child *c, const siginfo_t *i)
{
    /* from the terminal: the kernel gave it to the whole group, the program has it already; from
     * the program itself (kill(0)): likewise; from us: a broken pipe under our own text */
    if (i->si_code > 0 || i->si_pid == c->pid || i->si_pid == getpid())
        return;
    if (i->si_signo == SIGCONT)
        return; /* see stop_too */
    if (i->si_code == SI_QUEUE)
        sigqueue(c->pid, i->si_signo, i->si_value);
    else
        kill(c->pid, i->si_signo);
}

int gt_run_child_wait(struct gt_run_child *c, int wait_ms)
{
    struct timespec now, end;
    siginfo_t info;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += wait_ms / 1000;
    end.tv_nsec += wait_ms % 1000 * 1000000L;
    for (;;) {
        if (reap(c))
            return 1;
        clock_gettime(CLOCK_MONOTONIC, &now);
        long long left = (end.tv_sec - now.tv_sec) * 1000000000LL + end.tv_nsec - now.tv_nsec;
        if (left <= 0)
            return 0;
        struct timespec timeout = {left / 1000000000LL, left % 1000000000LL};
        int sig = sigtimedwait(&c->awaited, &info, &timeout);
        if (sig > 0 && sig != SIGCHLD)
            pass_on(c, &info);
    }
}

int gt_run_child_leave(const struct gt_run_child *c)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    struct rlimit none = {0, 0};
    sigset_t one;
    int sig;

    if (WIFEXITED(c->status))
        return WEXITSTATUS(c->status);
    sig = WTERMSIG(c->status);
    /* the program has left its core, ours would overwrite it; a core_pattern that is a pipe asks
     * for the dumpable flag only */
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
    sigaction(sig, &plain, NULL);
    sigemptyset(&one);
    sigaddset(&one, sig);
    raise(sig);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    return 128 + sig;
}
