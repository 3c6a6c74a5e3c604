/* Sessions in, reports out, while `run` waits and when the program has ended. */
#include "report/run_folder.h"
#include "report/finish.h"
#include "report/overhead.h"
#include "report/run_preload.h"
#include "report/run_worker.h"
#include "report/session.h"
#include "report/wrote.h"
#include "core/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".session"
#define GT_RUN_FOLDER "gputally-run-"

/* Processes have other working folders: the path must be absolute. */
static int make_in(struct gt_run_folder *f, const char *parent)
{
    char absolute[PATH_MAX];

    if (!realpath(parent, absolute))
        return -errno;
    if (snprintf(f->path, sizeof f->path, "%s/" GT_RUN_FOLDER "%u-%u-XXXXXX", absolute,
                 (unsigned)getuid(), (unsigned)getpid()) < (int)sizeof f->path &&
        mkdtemp(f->path))
        return 0;
    f->path[0] = 0;
    return errno ? -errno : -ENAMETOOLONG;
}

/* Without it each process's relative outputs go to its own folder. */
static void leave_base(const char *folder)
{
    char link[PATH_MAX + sizeof GT_RUN_BASE + 1], here[PATH_MAX];

    snprintf(link, sizeof link, "%s/" GT_RUN_BASE, folder);
    if (!getcwd(here, sizeof here) || symlink(here, link))
        return;
}

int gt_run_folder_make(struct gt_run_folder *f, const char *wanted, const char *tmpdir)
{
    const char *const parents[] = {wanted, "/dev/shm", tmpdir, "/tmp"};
    int rc = -ENOENT;

    memset(f, 0, sizeof *f);
    f->best_ns = -1;
    for (unsigned i = 0; i < sizeof parents / sizeof *parents; i++) {
        if (!parents[i] || !*parents[i])
            continue;
        rc = make_in(f, parents[i]);
        if (!rc) {
            leave_base(f->path);
            return 0;
        }
        if (!i)
            fprintf(stderr, "gputally: %s: %s; sessions go elsewhere\n", wanted, strerror(-rc));
    }
    return rc;
}

static void append(char **list, const char *lines)
{
    char *grown;

    if (!lines || !*lines)
        return;
    if (asprintf(&grown, "%s%s%s", *list ? *list : "", lines,
                 lines[strlen(lines) - 1] == '\n' ? "" : "\n") < 0)
        return;
    free(*list);
    *list = grown;
}

static void take(struct gt_run_folder *f, struct gt_finish_result *r)
{
    if (!r->recorded) {
        if (!f->note) {
            f->note = r->note;
            r->note = NULL;
        }
        return;
    }
    f->reports++;
    if (r->self_ns <= f->best_ns) {
        append(&f->other_files, r->files);
        return;
    }
    append(&f->other_files, f->best_files);
    free(f->best_files);
    free(f->table);
    free(f->program);
    f->best_ns = r->self_ns;
    f->table = r->table;
    f->program = r->program;
    f->pid = r->pid;
    f->ended = r->ended;
    f->shapes = r->shapes;
    f->best_files = NULL;
    append(&f->best_files, r->files);
    r->table = r->program = NULL;
}

static int is_bad(const struct gt_run_folder *f, const char *name)
{
    for (size_t i = 0; i < f->bad_count; i++)
        if (!strcmp(f->bad[i], name))
            return 1;
    return 0;
}

static void remember_bad(struct gt_run_folder *f, const char *name)
{
    char **grown = realloc(f->bad, (f->bad_count + 1) * sizeof *grown);

    if (!grown)
        return;
    f->bad = grown;
    f->bad[f->bad_count] = strdup(name);
    if (f->bad[f->bad_count])
        f->bad_count++;
}

static void tell_failure(struct gt_run_folder *f, const char *name, const char *path,
                         const struct gt_err *err, int rc)
{
    const char *why = err->message[0] ? err->message : strerror(-rc);

    fprintf(stderr, "gputally: %s", why);
    if (!strstr(why, path))
        fprintf(stderr, " (session kept: %s)", path);
    fputc('\n', stderr);
    f->failed++;
    remember_bad(f, name);
}

/* The program that `run` started has a session here. */
static int first_records(const struct gt_run_folder *f)
{
    DIR *d = opendir(f->path);
    struct dirent *entry;
    unsigned pid;
    int found = 0;

    while (d && !found && (entry = readdir(d)))
        found = sscanf(entry->d_name, "gputally-%*u-%*[^-]-%*u-%u-", &pid) == 1 &&
                pid == (unsigned)f->first_pid;
    if (d)
        closedir(d);
    return found;
}

static void finish_one(struct gt_run_folder *f, const char *name, const char *path)
{
    struct gt_finish_options o = {.hold_table = 1, .quiet = f->quiet};
    struct gt_finish_result r = {0};
    struct gt_session_info info;
    struct gt_err err = {""};
    int rc = gt_session_info(path, &info, &err);

    if (rc == -ENOENT)
        return;
    if (rc ? gt_session_life_by_name(path) != GT_LIFE_DEAD
           : !info.ended && (info.alive || info.foreign)) {
        f->living++;
        return;
    }
    if (!rc && !info.ended && f->program_pid && info.pid == (unsigned)f->program_pid) {
        f->living++; /* just dead: see program_pid */
        return;
    }
    if (rc && gt_session_is_blank(path)) {
        unlink(path);
        return;
    }
    err.message[0] = 0;
    gt_overhead_call_ns(); /* once, and not in each worker */
    if (!rc && f->first_pid && info.pid != (unsigned)f->first_pid)
        o.number = (unsigned)first_records(f);
    rc = gt_run_worker_finish(path, &o, &r, &err);
    if (!rc || r.table) /* the table needs no file */
        take(f, &r);
    if (rc == -EBUSY)
        f->living++;
    else if (rc)
        tell_failure(f, name, path, &err, rc);
    gt_finish_result_free(&r);
}

void gt_run_folder_died(struct gt_run_folder *f, pid_t pid)
{
    f->program_pid = 0;
    DIR *d = *f->path ? opendir(f->path) : NULL;
    struct dirent *entry;

    while (d && (entry = readdir(d))) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s", f->path, entry->d_name) < (int)sizeof path)
            gt_session_died(path, (unsigned)pid);
    }
    if (d)
        closedir(d);
}

void gt_run_folder_sweep(struct gt_run_folder *f)
{
    DIR *d = *f->path ? opendir(f->path) : NULL;
    struct dirent *entry;

    if (!*f->path)
        return;
    if (!d) {
        /* while the program runs there is a next time */
        if (f->closed) {
            fprintf(stderr,
                    "gputally: %s: %s; what was recorded is kept there, try: gputally recover %s\n",
                    f->path, strerror(errno), f->path);
            f->failed++;
        }
        return;
    }
    f->living = 0;
    while ((entry = readdir(d))) {
        char path[PATH_MAX + NAME_MAX + 2];
        size_t len = strlen(entry->d_name);

        if (len < sizeof SUFFIX || strcmp(entry->d_name + len - (sizeof SUFFIX - 1), SUFFIX) ||
            is_bad(f, entry->d_name))
            continue;
        snprintf(path, sizeof path, "%s/%s", f->path, entry->d_name);
        finish_one(f, entry->d_name, path);
    }
    closedir(d);
}

static void mark_closed(const char *folder)
{
    char closed[PATH_MAX + sizeof GT_RUN_CLOSED + 1];
    int fd;

    snprintf(closed, sizeof closed, "%s/" GT_RUN_CLOSED, folder);
    fd = open(closed, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0)
        close(fd);
}

/* If something is in it, it stays closed; whoever ended meanwhile may not have seen that it is. */
static int remove_folder(const char *folder)
{
    char file[PATH_MAX + 32];
    int why;

    snprintf(file, sizeof file, "%s/" GT_RUN_LINK, folder);
    unlink(file);
    snprintf(file, sizeof file, "%s/" GT_RUN_BASE, folder);
    unlink(file);
    snprintf(file, sizeof file, "%s/" GT_RUN_CLOSED, folder);
    unlink(file);
    if (!rmdir(folder))
        return 0;
    why = errno;
    mark_closed(folder);
    errno = why;
    return -1;
}

static int has_session(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *entry;
    int found = 0;

    while (d && !found && (entry = readdir(d))) {
        size_t len = strlen(entry->d_name);
        found = len >= sizeof SUFFIX && !strcmp(entry->d_name + len - (sizeof SUFFIX - 1), SUFFIX);
    }
    if (d)
        closedir(d);
    return found;
}

void gt_run_folder_close(struct gt_run_folder *f)
{
    if (!*f->path)
        return;
    /* Pairs with the end of a process: it writes ENDED, then looks for `closed`; we write `closed`,
     * then look for ENDED. One of us sees the other, so no session is left without anybody. A
     * process that begins to record while we take the folder away keeps it there, and may have
     * missed `closed`: so once more. */
    f->closed = 1;
    mark_closed(f->path);
    for (;;) {
        gt_run_folder_sweep(f);
        /* what lived then may have ended since and left the folder to us: look again */
        if (has_session(f->path))
            return;
        f->living = 0;
        if (!remove_folder(f->path) || (errno != ENOTEMPTY && errno != EEXIST) ||
            !has_session(f->path))
            return;
    }
}

void gt_run_folder_left(const char *session)
{
    char closed[PATH_MAX + sizeof GT_RUN_CLOSED + 1];
    struct gt_run_folder f = {.best_ns = -1};
    const char *slash = strrchr(session, '/'), *name;

    if (!slash || snprintf(f.path, sizeof f.path, "%.*s", (int)(slash - session), session) >=
                      (int)sizeof f.path)
        return;
    name = strrchr(f.path, '/');
    snprintf(closed, sizeof closed, "%s/" GT_RUN_CLOSED, f.path);
    if (strncmp(name ? name + 1 : f.path, GT_RUN_FOLDER, sizeof GT_RUN_FOLDER - 1) ||
        access(closed, F_OK) || has_session(f.path) || !remove_folder(f.path))
        return;
    /* A session came between. Its process may have looked for `closed` while it was away, so it is
     * ours if it has ended. */
    if (errno != ENOTEMPTY && errno != EEXIST)
        return;
    gt_run_folder_close(&f);
    gt_run_folder_print(&f);
    gt_run_folder_free(&f);
}

int gt_run_folder_lives(const char *folder)
{
    const char *name = strrchr(folder, '/');
    unsigned pid;

    if (sscanf(name ? name + 1 : folder, GT_RUN_FOLDER "%*u-%u-", &pid) != 1)
        return -1;
    return !kill((pid_t)pid, 0) || errno != ESRCH;
}

int gt_run_folder_owned(const char *folder)
{
    if (gt_run_folder_lives(folder))
        return 1;
    mark_closed(folder);
    return 0;
}

/* Where a plain `recover` looks too. */
static int is_usual(const char *folder)
{
    return !strncmp(folder, "/dev/shm/" GT_RUN_FOLDER, sizeof "/dev/shm/" GT_RUN_FOLDER - 1) ||
           !strncmp(folder, "/tmp/" GT_RUN_FOLDER, sizeof "/tmp/" GT_RUN_FOLDER - 1);
}

static void tell_living(const struct gt_run_folder *f)
{
    int one = f->living == 1;

    fprintf(stderr, "gputally: %zu process%s still running; ", f->living, one ? "" : "es");
    fputs(one ? "its report comes when it ends; if it is killed: gputally recover"
              : "their reports come when they end; if they are killed: gputally recover",
          stderr);
    fprintf(stderr, "%s%s\n", is_usual(f->path) ? "" : " ", is_usual(f->path) ? "" : f->path);
}

void gt_run_folder_print(const struct gt_run_folder *f)
{
    if (f->quiet)
        return;
    if (f->table && (f->reports > 1 || f->ended != GT_ENDED_EXIT))
        gt_wrote_heading(f->pid, f->program, f->ended);
    if (f->table)
        fputs(f->table, stderr);
    if (!f->reports && f->note)
        fprintf(stderr, "gputally: %s\n", f->note);
    gt_wrote_others(f->other_files);
    if (f->living)
        tell_living(f);
    gt_wrote_last(f->best_files, f->other_files, f->shapes);
}

void gt_run_folder_free(struct gt_run_folder *f)
{
    for (size_t i = 0; i < f->bad_count; i++)
        free(f->bad[i]);
    free(f->bad);
    free(f->table);
    free(f->program);
    free(f->best_files);
    free(f->note);
    free(f->other_files);
}
