/* What the tests of windows, filters and snapshots watch. Each mode prints "done" at its end.
 *   nest THREADS     on each, 10 times step{layer{op, op}, op}
 *   names N          all{id K{work}} for K < N
 *   steps N          N times between{}, step{layer{op, op}, op}, mark
 *   fork N           likewise; in each step a child that goes on with child{op}, the end of the
 * step, after{} kill N           in step N (0 is the first), with layer{op, op} open, kills itself
 *   timed MS         all{tick} for so long, a tick of 5 ms after the other
 *   busy MS          on two threads step{layer{op, op}, op}, mark, counter and a start/end range
 * around all, for so long and as fast as they can; then says how many steps
 *   fresh MS         a range and a counter with a name that is new, again and again, for so long
 *   busyfork MS      likewise, and a child that does too, after the first step of each
 *   sleep MS         all{} for so long, without any other call; sleepkill: then kills itself
 *   idle MS          no call for so long
 *   adopts           all{a child}, waits for every child there is; says how many there were
 *   flush N          N times step{...} and a flush, with all{} around; says what the flushes
 * returned mine MS          as timed, with a handler of its own for SIGUSR1 that counts; says how
 * many resume N         N steps, a resume, N steps, a pause, N steps */
#include "gputally.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void op(void)
{
    gputally_range_push("op");
    gputally_range_pop();
}

static void step(void)
{
    gputally_range_push("step");
    gputally_range_push("layer");
    op();
    op();
    gputally_range_pop();
    op();
    gputally_range_pop();
}

static void *steps(void *unused)
{
    for (int i = 0; i < 10; i++)
        step();
    return unused;
}

static void nest(int threads)
{
    pthread_t t[64];
    for (int i = 0; i < threads; i++)
        pthread_create(&t[i], NULL, steps, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
}

static void names(int n)
{
    char name[32];
    gputally_range_push("all");
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "id %d", i);
        gputally_range_push(name);
        gputally_range_push("work");
        gputally_range_pop();
        gputally_range_pop();
    }
    gputally_range_pop();
}

static void between(void)
{
    gputally_range_push("between");
    gputally_range_pop();
    gputally_mark("mark");
}

static void forked(void)
{
    gputally_range_push("step");
    pid_t pid = fork();
    if (!pid) {
        gputally_range_push("child");
        op();
        gputally_range_pop();
        gputally_range_pop();
        gputally_range_push("after");
        gputally_range_pop();
        exit(0);
    }
    waitpid(pid, NULL, 0);
    op();
    gputally_range_pop();
}

static void killed(void)
{
    gputally_range_push("step");
    gputally_range_push("layer");
    op();
    op();
    raise(SIGKILL);
}

static long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void timed(int ms)
{
    long long end = now_ms() + ms;
    gputally_range_push("all");
    while (now_ms() < end) {
        gputally_range_push("tick");
        usleep(5000);
        gputally_range_pop();
    }
    gputally_range_pop();
}

/* One that adopts orphans, as the first process of a container does, waits for all its children. */
static void adopts(void)
{
    int n = 0;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    gputally_range_push("all");
    if (!fork())
        _exit(0);
    while (wait(NULL) > 0)
        n++;
    gputally_range_pop();
    printf("children %d\n", n);
}

static int busy_ms;
static void *busy(void *steps)
{
    long long end = now_ms() + busy_ms;
    do {
        uint64_t id = gputally_range_start("around");
        for (int i = 0; i < 100; i++, ++*(long *)steps) {
            step();
            gputally_mark("mark");
            gputally_counter("counter", 1);
        }
        gputally_range_end(id);
    } while (now_ms() < end);
    return NULL;
}

static void busy_threads(int ms, int forking)
{
    pthread_t t;
    long mine = 0, other = 0;
    pid_t child = -1;
    busy_ms = ms;
    if (forking) {
        step();
        child = fork();
    }
    pthread_create(&t, NULL, busy, &other);
    busy(&mine);
    pthread_join(t, NULL);
    if (child > 0)
        waitpid(child, NULL, 0);
    printf("%s %ld\n", child ? "steps" : "child's steps", mine + other + (child > 0));
    fflush(stdout);
    if (!child)
        exit(0);
}

/* Without digits, which would fold; each name has its length in front. */
static void fresh(int ms)
{
    char name[64];
    long long end = now_ms() + ms;
    for (long n = 0; n % 100 || now_ms() < end; n++) {
        char *p = name;
        p += sprintf(p, "%s of ", n % 2 ? "range" : "value");
        for (long left = n; left || p < name + 20; left /= 26)
            *p++ = (char)('a' + left % 26);
        strcpy(p, ".");
        if (n % 2) {
            gputally_range_push(name);
            gputally_range_pop();
        } else
            gputally_counter(name, 1);
        usleep(20);
    }
}

static volatile sig_atomic_t caught;
static void on_signal(int sig)
{
    caught += sig == SIGUSR1;
}

static void flushed(int n)
{
    gputally_range_push("all");
    for (int i = 0; i < n; i++) {
        step();
        printf("flush %d\n", gputally_flush());
    }
    gputally_range_pop();
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int n = argc > 2 ? atoi(argv[2]) : 1;

    if (!strcmp(mode, "nest"))
        nest(n);
    else if (!strcmp(mode, "names"))
        names(n);
    else if (!strcmp(mode, "steps"))
        for (int i = 0; i < n; i++, step())
            between();
    else if (!strcmp(mode, "fork"))
        for (int i = 0; i < n; i++, forked())
            between();
    else if (!strcmp(mode, "kill"))
        for (int i = 0;; i++, step()) {
            if (i == n)
                killed();
            between();
        }
    else if (!strcmp(mode, "timed"))
        timed(n);
    else if (!strcmp(mode, "fresh"))
        fresh(n);
    else if (!strncmp(mode, "busy", 4))
        busy_threads(n, mode[4]);
    else if (!strcmp(mode, "flush"))
        flushed(n);
    else if (!strcmp(mode, "adopts"))
        adopts();
    else if (!strcmp(mode, "idle"))
        for (long long end = now_ms() + n; now_ms() < end;)
            usleep(10000);
    else if (!strcmp(mode, "mine")) {
        signal(SIGUSR1, on_signal);
        puts("ready");
        fflush(stdout);
        timed(n);
        printf("caught %d\n", (int)caught);
    } else if (!strncmp(mode, "sleep", 5)) {
        gputally_range_push("all");
        usleep((useconds_t)n * 1000);
        if (mode[5])
            raise(SIGKILL);
        gputally_range_pop();
    } else if (!strcmp(mode, "resume")) {
        for (int i = 0; i < 3 * n; i++, step())
            if (i == n)
                gputally_resume();
            else if (i == 2 * n)
                gputally_pause();
    } else
        return 2;
    puts("done");
    return 0;
}
