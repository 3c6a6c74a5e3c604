/* Client of the exit tests: `life_exit MODE`, one function a mode. Most record `work` five times,
 * leave `open` open, and end the way the mode's name says; others tell at their place what must be
 * counted. An exit status of 99 is a failed check of its own. */
#include "gputally.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void record(const char *name, int times)
{
    for (int i = 0; i < times; i++) {
        gputally_range_push(name);
        gputally_range_pop();
    }
}

static void start(void)
{
    record("work", 5);
    gputally_range_push("open");
}

/* ---- the ways out ---- */

static int returns(void)
{
    return 7;
}
static int exits(void)
{
    exit(7);
}
static int exits_at_once(void)
{
    _exit(7);
}
static int exits_at_once_iso(void)
{
    _Exit(7);
}
static int exits_quickly(void)
{
    quick_exit(7);
}
static int aborts(void)
{
    abort();
}
static int faults(void)
{
    raise(SIGSEGV);
    return 99;
}
static _Noreturn int terminated(void)
{
    kill(getpid(), SIGTERM);
    for (;;)
        pause();
}
static int exit_group(void)
{
    syscall(SYS_exit_group, 7);
    return 99;
}
static int closed_stderr(void)
{
    close(2);
    return 7;
}
static int moved(void)
{
    return chdir("/") ? 99 : 7;
}

/* ---- signals ---- */

static int blocked(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    return 7;
}
static int ignored(void)
{
    signal(SIGCHLD, SIG_IGN);
    return 7;
}

static volatile sig_atomic_t ticks;

/* A timer's handler ends the program, wherever it is: in a hook, in malloc. */
static void on_alarm(int sig)
{
    (void)sig;
    exit(7);
}
static _Noreturn int from_handler(void)
{
    struct itimerval t = {.it_value = {.tv_usec = 1 + (getpid() * 37) % 2000}};
    void *kept[64] = {NULL};

    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &t, NULL);
    for (unsigned i = 0;; i++) {
        gputally_range_push(i & 1 ? "odd" : "even");
        free(kept[i % 64]);
        kept[i % 64] = malloc(16 + i % 3000);
        gputally_range_pop();
        gputally_mark("tick");
    }
}
/* Likewise from the first instant: the session may be half made. */
static _Noreturn int from_handler_early(void)
{
    struct itimerval t = {.it_value = {.tv_usec = 1 + (getpid() * 37) % 150}};

    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &t, NULL);
    for (;;)
        record("work", 1);
}
/* A handler records too, inside a range of the thread it interrupts. */
static void on_tick(int sig)
{
    (void)sig;
    record("handler", 1);
    ticks++;
}
static int recording_handler(void)
{
    struct itimerval t = {.it_value = {.tv_usec = 100}, .it_interval = {.tv_usec = 100}};

    /* the first call looks the functions up by dlsym, which a handler must not interrupt and enter
     */
    record("main", 1);
    signal(SIGALRM, on_tick);
    setitimer(ITIMER_REAL, &t, NULL);
    long n = 1;
    for (; ticks < 200; n++)
        record("main", 1);
    t = (struct itimerval){0};
    setitimer(ITIMER_REAL, &t, NULL);
    printf("main %ld handler %d\n", n, (int)ticks);
    return 7;
}

/* ---- threads ---- */

static void *for_ever(void *unused)
{
    for (;;)
        record("busy", 1);
    return unused;
}
static void *ends_all(void *unused)
{
    record("last", 3);
    exit(7);
    return unused;
}
static int from_thread(void)
{
    pthread_t id;

    for (int i = 0; i < 3; i++)
        pthread_create(&id, NULL, for_ever, NULL);
    pthread_create(&id, NULL, ends_all, NULL);
    for_ever(NULL);
    return 99;
}
/* main leaves, a thread goes on: last 3, and the process ends with 0 by itself. */
static void *goes_on(void *main_thread)
{
    pthread_join(*(pthread_t *)main_thread, NULL);
    record("last", 3);
    return NULL;
}
static int main_leaves(void)
{
    static pthread_t me, id;

    me = pthread_self();
    pthread_create(&id, NULL, goes_on, &me);
    pthread_exit(NULL);
}
/* 2,000 threads, 300 at once: short 4,000, never closed 2,000 of which each thread leaves one. */
static pthread_barrier_t together;
static void *short_one(void *first)
{
    record("short", 2);
    gputally_range_push("never closed");
    if (first)
        pthread_barrier_wait(&together);
    return NULL;
}
static int many_threads(void)
{
    enum { ALL = 2000, AT_ONCE = 300 };
    static pthread_t ids[ALL];

    pthread_barrier_init(&together, NULL, AT_ONCE);
    for (int i = 0; i < ALL; i++) {
        if (pthread_create(&ids[i], NULL, short_one, i < AT_ONCE ? &together : NULL))
            return 99;
        if (i >= AT_ONCE)
            pthread_join(ids[i], NULL);
        else if (i == AT_ONCE - 1)
            for (int k = 0; k < AT_ONCE; k++)
                pthread_join(ids[k], NULL);
    }
    return 7;
}

/* ---- after the end ---- */

static void late_work(void)
{
    record("atexit", 2);
}
static void late_thread(void *unused)
{
    (void)unused;
    record("key destructor", 4);
}
static void *with_key(void *key)
{
    record("thread", 1);
    pthread_setspecific(*(pthread_key_t *)key, key);
    return NULL;
}
static int still_recording(void)
{
    static pthread_key_t key;
    pthread_t id;

    atexit(late_work);
    pthread_key_create(&key, late_thread);
    pthread_create(&id, NULL, with_key, &key);
    pthread_join(id, NULL);
    return 7;
}

static int vfork_child(void)
{
    for (volatile int i = 0; i < 20; i++) {
        int status;
        pid_t pid = vfork();
        if (pid == 0)
            _exit(3);
        record("work", 1);
        if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 3)
            return 99;
    }
    return 7;
}

/* Forbidden, and done all the same: the child runs our destructors in the parent's memory, and the
 * parent has none left. */
static int vfork_exit(void)
{
    int status;
    pid_t pid = vfork();

    if (pid == 0)
        exit(3);
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 3)
        return 99;
    record("after", 2);
    return 7;
}

/* ---- where no helper can be started ---- */

static int no_processes(void)
{
    struct rlimit none = {0, 0};

    /* limits do not bind root */
    if (getuid() == 0 && (setgid(65534) || setuid(65534)))
        return 99;
    if (setrlimit(RLIMIT_NPROC, &none) || fork() != -1)
        return 99;
    return 7;
}
static int dropped(void)
{
    return getuid() ? 77 : setgid(65534) || setuid(65534) ? 99 : 7;
}
static int filtered(int clone_too)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(clone_too ? SYS_clone : -1), 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 77;
    return 7;
}
static int no_exec(void)
{
    return filtered(0);
}
static int no_clone(void)
{
    return filtered(1);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*f)(void);
        int starts;
    } modes[] = {
        {"return", returns, 1},
        {"exit", exits, 1},
        {"_exit", exits_at_once, 1},
        {"_Exit", exits_at_once_iso, 1},
        {"quick_exit", exits_quickly, 1},
        {"abort", aborts, 1},
        {"segv", faults, 1},
        {"term", terminated, 1},
        {"exit_group", exit_group, 1},
        {"closed_stderr", closed_stderr, 1},
        {"moved", moved, 1},
        {"blocked", blocked, 1},
        {"ignored", ignored, 1},
        {"handler", from_handler, 0},
        {"early_handler", from_handler_early, 0},
        {"recording_handler", recording_handler, 0},
        {"thread", from_thread, 1},
        {"main_leaves", main_leaves, 1},
        {"many_threads", many_threads, 0},
        {"still_recording", still_recording, 1},
        {"vfork", vfork_child, 0},
        {"vfork_exit", vfork_exit, 1},
        {"no_processes", no_processes, 1},
        {"dropped", dropped, 1},
        {"no_exec", no_exec, 1},
        {"no_clone", no_clone, 1},
    };

    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[1], modes[i].name) == 0) {
            if (modes[i].starts)
                start();
            return modes[i].f();
        }
    return 2;
}
