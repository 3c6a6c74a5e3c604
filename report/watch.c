/* See watch.h. Single thread. */
#include "report/watch.h"
#include "report/finish.h"
#include "report/overhead.h"
#include "report/run_worker.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
/* Without a pidfd (before Linux 5.3) the end of the process is seen so late. */
#define LOOK_MS 200

/* We were started from inside the host. What it had open must not stay open because of us: who
 * waits for the end of a pipe would wait for ever. Nor is a Ctrl-C in its terminal meant for us, or
 * the signals that it held just then not to be. */
static void leave_the_host(void)
{
    sigset_t none;
    struct dirent *f;
    DIR *d = NULL;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (syscall(SYS_close_range, 3, ~0u, 0) && (d = opendir("/proc/self/fd")))
        while ((f = readdir(d)))
            if (atoi(f->d_name) > 2 && atoi(f->d_name) != dirfd(d))
                close(atoi(f->d_name));
    if (d)
        closedir(d);
    if (chdir("/"))
        return; /* then a folder stays in use */
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* 1 while there is something to watch. */
static int goes_on(const char *session)
{
    struct gt_session_info i;
    struct gt_err e = {""};
    return !gt_session_info(session, &i, &e) && i.alive && !i.ended;
}

/* Sleeps until then. Returns 1 if the process goes on. */
static int sleep_until(const char *session, int pidfd, uint64_t until)
{
    for (uint64_t now; (now = now_ns()) < until;) {
        uint64_t ms = (until - now + 999999) / 1000000;
        struct pollfd p = {pidfd, POLLIN, 0};
        if (pidfd < 0 && ms > LOOK_MS)
            ms = LOOK_MS;
        if (poll(&p, 1, ms > INT_MAX ? INT_MAX : (int)ms) > 0 || !goes_on(session))
            return 0;
    }
    return goes_on(session);
}

/* In a child: the host may have trampled on its session. */
static void snapshot(const char *session, int quiet)
{
    const struct gt_finish_options o = {.snapshot = 1, .quiet = quiet};
    struct gt_finish_result r;
    struct gt_err e = {""};
    int rc = gt_run_worker_finish(session, &o, &r, &e);
    if (rc && rc != -ESRCH && rc != -ENOENT && !quiet)
        fprintf(stderr, "gputally: snapshot: %s\n", e.message);
    gt_finish_result_free(&r);
}

int gt_watch(const char *session, uint64_t every_ns, int quiet)
{
    struct gt_session_info i;
    struct gt_err e = {""};
    char absolute[PATH_MAX];
    uint64_t next = now_ns() + every_ns;
    int rc = gt_session_info(session, &i, &e), pidfd;
    if (rc || !realpath(session, absolute)) {
        fprintf(stderr, "gputally: %s\n", rc ? e.message : strerror(errno));
        return rc ? rc : -errno;
    }
    gt_overhead_call_ns(); /* once, and not in each worker */
    leave_the_host();
    pidfd = (int)syscall(SYS_pidfd_open, (pid_t)i.pid, 0);
    for (; sleep_until(absolute, pidfd, next); next += every_ns) {
        snapshot(absolute, quiet);
        if (next + every_ns < now_ns()) /* it takes longer than that: no backlog */
            next = now_ns();
    }
    return 0;
}

/* ---- under run ---- */

static pid_t worker;

static void all_of(const char *folder)
{
    const struct gt_finish_options o = {.snapshot = 1, .hold_table = 1, .quiet = 1};
    DIR *d = opendir(folder);
    struct dirent *entry;
    while (d && (entry = readdir(d))) {
        char path[PATH_MAX];
        size_t n = strlen(entry->d_name);
        struct gt_finish_result r;
        struct gt_err e = {""};
        if (n < 9 || strcmp(entry->d_name + n - 8, ".session") ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path ||
            !goes_on(path))
            continue;
        if (gt_run_worker_finish(path, &o, &r, &e) == 0)
            gt_finish_result_free(&r);
    }
    if (d)
        closedir(d);
}

void gt_watch_folder(const char *folder)
{
    if (worker > 0 && waitpid(worker, NULL, WNOHANG) == 0)
        return;
    gt_overhead_call_ns();
    fflush(NULL);
    worker = fork();
    if (worker)
        return;
    all_of(folder);
    _exit(0);
}

void gt_watch_folder_end(void)
{
    while (worker > 0 && waitpid(worker, NULL, 0) < 0 && errno == EINTR)
        ;
    worker = 0;
}
