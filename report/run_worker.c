/* Makes a report in a child of `run`. A session was written by a program that may have trampled on
 * it; if reading it went wrong in `run` itself, the program's exit status would be lost and, while
 * it runs, the program would lose its parent. */
#include "report/run_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What comes through the pipe, followed by the four texts with their NULs. */
struct answer {
    int rc, recorded, ended, shapes;
    double self_ns;
    unsigned pid;
    size_t program, table, files, note; /* bytes, 0: NULL */
    struct gt_err err;
};

static int write_all(int fd, const void *data, size_t n)
{
    for (const char *p = data; n;) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return -1;
        p += w;
        n -= w;
    }
    return 0;
}

static int read_all(int fd, void *data, size_t n)
{
    for (char *p = data; n;) {
        ssize_t r = read(fd, p, n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return -1;
        p += r;
        n -= r;
    }
    return 0;
}

static size_t bytes(const char *s)
{
    return s ? strlen(s) + 1 : 0;
}

static _Noreturn void work(const char *path, const struct gt_finish_options *o, int fd)
{
    struct gt_finish_result r = {0};
    struct answer a = {0};

    a.rc = gt_finish_session(path, o, &r, &a.err);
    a.recorded = r.recorded;
    a.self_ns = r.self_ns;
    a.pid = r.pid;
    a.ended = r.ended;
    a.shapes = r.shapes;
    a.program = bytes(r.program);
    a.table = bytes(r.table);
    a.files = bytes(r.files);
    a.note = bytes(r.note);
    fflush(NULL);
    if (write_all(fd, &a, sizeof a) || write_all(fd, r.program, a.program) ||
        write_all(fd, r.table, a.table) || write_all(fd, r.files, a.files) ||
        write_all(fd, r.note, a.note))
        _exit(2);
    _exit(0);
}

static int read_text(int fd, char **s, size_t n)
{
    if (!n)
        return 0;
    *s = malloc(n);
    return *s && !read_all(fd, *s, n) ? 0 : -1;
}

int gt_run_worker_finish(const char *path, const struct gt_finish_options *o,
                         struct gt_finish_result *out, struct gt_err *e)
{
    struct answer a;
    int fds[2], status = 0, complete;
    pid_t pid;

    memset(out, 0, sizeof *out);
    if (pipe2(fds, O_CLOEXEC))
        return gt_err_set(e, -errno, "%s: %s", path, strerror(errno));
    fflush(NULL);
    pid = fork();
    if (!pid) {
        close(fds[0]);
        work(path, o, fds[1]);
    }
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return gt_err_set(e, -EAGAIN, "%s: fork: %s", path, strerror(errno));
    }
    complete = !read_all(fds[0], &a, sizeof a) && !read_text(fds[0], &out->program, a.program) &&
               !read_text(fds[0], &out->table, a.table) &&
               !read_text(fds[0], &out->files, a.files) && !read_text(fds[0], &out->note, a.note);
    close(fds[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!complete && WIFSIGNALED(status))
        return gt_err_set(e, -EIO, "%s: making the report died of signal %d", path,
                          WTERMSIG(status));
    if (!complete)
        return gt_err_set(e, -EIO, "%s: making the report ended with status %d", path,
                          WEXITSTATUS(status));
    out->recorded = a.recorded;
    out->self_ns = a.self_ns;
    out->pid = a.pid;
    out->ended = a.ended;
    out->shapes = a.shapes;
    if (a.rc)
        gt_err_set(e, a.rc, "%s", a.err.message);
    return a.rc;
}
