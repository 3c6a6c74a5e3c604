/* Client of the fork tests: `life_fork MODE [ARGUMENTS]`, one function a mode, and the counts that
 * each process must show are told at it. Exits 0 when all its children ended as they should. */
#include "gputally.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *self;

static void record(const char *name, int times)
{
    for (int i = 0; i < times; i++) {
        gputally_range_push(name);
        gputally_range_pop();
    }
}

/* 0 if the child ended with `status`. */
static int ended(pid_t pid, int status)
{
    int got = -1;

    return pid > 0 && waitpid(pid, &got, 0) == pid && WIFEXITED(got) && WEXITSTATUS(got) == status
               ? 0
               : 1;
}

static pid_t fork_by(const char *how)
{
    if (strcmp(how, "fork") == 0)
        return fork();
    if (strcmp(how, "_Fork") == 0) {
        pid_t (*f)(void) = (pid_t(*)(void))dlsym(RTLD_DEFAULT, "_Fork"); /* glibc 2.34 */
        if (!f)
            exit(77);
        return f();
    }
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* parent: before 3, parent 7; child: child 5. */
static int both(char **args)
{
    record("before", 3);
    pid_t pid = fork_by(args[0]);
    if (pid == 0) {
        record("child", 5);
        exit(4);
    }
    record("parent", 7);
    return ended(pid, 4);
}

/* parent: outer 1, inner 1; child: leaf 2, own 3, and the two that were open do not count. */
static int inherit(char **args)
{
    gputally_range_push("outer");
    gputally_range_push("inner");
    pid_t pid = fork_by(args[0]);
    if (pid == 0) {
        record("leaf", 2);
        int level = gputally_range_pop();
        level = level * 10 + gputally_range_pop();
        record("own", 3);
        exit(level);
    }
    gputally_range_pop();
    gputally_range_pop();
    return ended(pid, getenv("LD_PRELOAD") ? 10 : 0);
}

/* parent: outer 1; child: nothing, though a range is open in it. */
static int silent(char **args)
{
    gputally_range_push("outer");
    pid_t pid = fork_by(args[0]);
    if (pid == 0)
        _exit(5);
    gputally_range_pop();
    return ended(pid, 5);
}

/* Three threads record while a fourth forks; prints `busy N`: what they did in all.
 * parent: busy N, forks 40; every other child: child 1; the rest _exits at once. */
static atomic_int stop;
static void *busy(void *sum)
{
    long n = 0;

    while (!atomic_load(&stop)) {
        record("busy", 1);
        n++;
    }
    atomic_fetch_add((_Atomic long *)sum, n);
    return NULL;
}
static void *forker(void *bad)
{
    for (int i = 0; i < 40; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (i % 2)
                record("child", 1);
            _exit(i);
        }
        record("forks", 1);
        *(int *)bad |= ended(pid, i);
    }
    return NULL;
}
static int threads(char **args)
{
    pthread_t id[4];
    _Atomic long sum = 0;
    int bad = 0;

    (void)args;
    for (int i = 0; i < 3; i++)
        pthread_create(&id[i], NULL, busy, &sum);
    pthread_create(&id[3], NULL, forker, &bad);
    pthread_join(id[3], NULL);
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++)
        pthread_join(id[i], NULL);
    printf("busy %ld\n", (long)sum);
    return bad;
}

/* A signal handler forks, wherever it finds the thread: inside a hook too, which then goes on in
 * both. Prints `main N`. parent: main N; each of 200 children: child 3. */
static volatile sig_atomic_t is_child;
static volatile pid_t forked;
static void fork_here(int sig)
{
    pid_t pid = sig ? fork() : 0;

    if (pid == 0)
        is_child = 1;
    else
        forked = pid;
}
static int handler(char **args)
{
    struct itimerval t = {.it_value = {.tv_usec = 50}};
    int n = 0, bad = 0, done = 0;

    (void)args;
    signal(SIGALRM, fork_here);
    setitimer(ITIMER_REAL, &t, NULL);
    for (;; n++) {
        record("main", 1);
        if (is_child) {
            record("child", 3);
            exit(3);
        }
        if (!forked)
            continue;
        bad |= ended(forked, 3);
        forked = 0;
        if (++done == 200)
            break;
        t.it_value.tv_usec = 50 + done % 7;
        setitimer(ITIMER_REAL, &t, NULL);
    }
    printf("main %d\n", n + 1);
    return bad;
}

/* parent: gen0 1; child: gen1 2; grandchild: gen2 3; and so on. */
static int generations(char **args)
{
    int depth = atoi(args[0]);

    for (int i = 0;; i++) {
        char name[16];
        snprintf(name, sizeof name, "gen%d", i);
        record(name, i + 1);
        if (i == depth)
            return 9;
        pid_t pid = fork();
        if (pid)
            return ended(pid, i + 1 == depth ? 9 : 0);
    }
}

/* parent: p N; each of N children: c 1. */
static int loop(char **args)
{
    int n = atoi(args[0]), bad = 0;

    for (int i = 0; i < n; i++) {
        record("p", 1);
        pid_t pid = fork();
        if (pid == 0) {
            record("c", 1);
            exit(0);
        }
        bad |= ended(pid, 0);
    }
    return bad;
}

/* parent: parent 9; N children at once: child i+1. */
static int together(char **args)
{
    int n = atoi(args[0]), bad = 0;
    pid_t pids[64];

    for (int i = 0; i < n; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            record("child", i + 1);
            exit(i);
        }
    }
    record("parent", 9);
    for (int i = 0; i < n; i++)
        bad |= ended(pids[i], i);
    return bad;
}

/* this one: leaf N. */
static int leaf(char **args)
{
    record("leaf", atoi(args[0]));
    return 3;
}

/* parent: before 2, after 3, open range `around` 1; child: leaf 4. */
static int vforked(char **args)
{
    char *argv[] = {self, (char *)"leaf", (char *)"4", NULL};

    (void)args;
    record("before", 2);
    gputally_range_push("around");
    pid_t pid = vfork();
    if (pid == 0) {
        execve(self, argv, environ);
        _exit(127);
    }
    gputally_range_pop();
    record("after", 3);
    pid_t gone = vfork();
    if (gone == 0)
        _exit(6);
    return ended(pid, 3) | ended(gone, 6);
}
static int spawned(char **args)
{
    char *argv[] = {self, (char *)"leaf", (char *)"4", NULL};
    pid_t pid = -1, none = -1;

    (void)args;
    record("before", 2);
    gputally_range_push("around");
    if (posix_spawn(&pid, self, NULL, NULL, argv, environ))
        return 1;
    gputally_range_pop();
    record("after", 3);
    if (posix_spawn(&none, "/no/such/program", NULL, NULL, argv, environ) == 0)
        return 1;
    return ended(pid, 3);
}

/* parent: before 1, after 1. */
static int shell(char **args)
{
    char line[64];
    FILE *p;

    (void)args;
    record("before", 1);
    if (system("ls / >/dev/null") || WEXITSTATUS(system("exit 7")) != 7)
        return 1;
    p = popen("echo popen", "r");
    if (!p || !fgets(line, sizeof line, p) || strcmp(line, "popen\n") || pclose(p))
        return 1;
    record("after", 1);
    return 0;
}

/* parent: parent 1; daemon: early 2, and when the FIFO says so late 3. Its file descriptor OUT is
 * open until it is gone. */
static int daemonize(char **args)
{
    int ready[2], bad = pipe(ready);
    pid_t pid = fork();
    char c;

    if (pid == 0) {
        setsid();
        if (fork() == 0) {
            int null = open("/dev/null", O_RDWR), go;
            for (int fd = 0; fd < 3; fd++)
                dup2(null, fd);
            if (chdir("/"))
                exit(1);
            record("early", 2);
            bad = write(ready[1], "", 1) != 1;
            go = open(args[0], O_RDONLY);
            while (read(go, &c, 1) > 0)
                ;
            record("late", 3);
            exit(bad);
        }
        _exit(0);
    }
    record("parent", 1);
    return bad | ended(pid, 0) | (read(ready[0], &c, 1) != 1);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*f)(char **);
    } modes[] = {{"both", both},         {"inherit", inherit}, {"silent", silent},
                 {"threads", threads},   {"loop", loop},       {"generations", generations},
                 {"together", together}, {"leaf", leaf},       {"handler", handler},
                 {"vfork", vforked},     {"spawn", spawned},   {"shell", shell},
                 {"daemon", daemonize}};

    self = argv[0];
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            return modes[i].f(argv + 2);
    return 2;
}
