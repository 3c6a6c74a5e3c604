/* `gputally recover [--clean | --list] [DIR…]`: reports of programs that were killed, or whose
 * report could not be written. */
#include "report/commands.h"
#include "report/finish.h"
#include "report/mem.h"
#include "report/options.h"
#include "report/run_folder.h"
#include "report/session.h"
#include "report/writer.h"
#include "report/wrote.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "Usage: gputally recover [options] [DIR...]\n"
    "Makes the reports of programs that ended without one. Looks in GPUTALLY_SESSION_DIR, "
    "/dev/shm,\n"
    "TMPDIR and /tmp, and in the gputally-run-* folders there; or in each DIR. Takes every dead "
    "session\n"
    "of yours that is there.\n"
    "  -c, --clean   delete the sessions instead\n"
    "  -l, --list    only show what would be done with each session\n"
    "  -q, --quiet   errors only\n"
    "  -h, --help    this text\n";

struct found {
    char **names;
    size_t count, room;
};

static void add(struct found *f, char *name)
{
    gt_mem_grow(&f->names, &f->room, f->count, sizeof *f->names);
    f->names[f->count++] = name;
}

static void free_found(struct found *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->names[i]);
    free(f->names);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static void scan(struct found *sessions, struct found *folders, const char *dir)
{
    char prefix[64];
    DIR *d = opendir(dir);
    snprintf(prefix, sizeof prefix, "gputally-%u-", (unsigned)geteuid());
    for (struct dirent *f; d && (f = readdir(d));) {
        if (starts(f->d_name, prefix) && gt_session_stem(f->d_name, NULL))
            add(sessions, gt_mem_format("%s/%s", dir, f->d_name));
        else if (folders && starts(f->d_name, "gputally-run-"))
            add(folders, gt_mem_format("%s/%s", dir, f->d_name));
    }
    if (d)
        closedir(d);
}

/* The same folder may have two names (TMPDIR=/tmp). */
static void scan_once(struct found *sessions, struct found *folders, struct stat *seen, size_t *n,
                      const char *dir)
{
    struct stat st;
    if (!dir || !*dir || stat(dir, &st) || *n == 64)
        return;
    for (size_t i = 0; i < *n; i++)
        if (seen[i].st_dev == st.st_dev && seen[i].st_ino == st.st_ino)
            return;
    seen[(*n)++] = st;
    scan(sessions, folders, dir);
}

/* A folder of `run` that is named itself goes away too when nothing is left in it. */
static void add_run_folder(struct found *folders, const char *dir)
{
    size_t len = strlen(dir), base;
    while (len > 1 && dir[len - 1] == '/')
        len--;
    for (base = len; base && dir[base - 1] != '/'; base--)
        ;
    if (starts(dir + base, "gputally-run-"))
        add(folders, gt_mem_copy(dir, len));
}

static int is_stillborn(const char *path)
{
    return gt_session_is_blank(path) && gt_session_life_by_name(path) == GT_LIFE_DEAD;
}

struct tally {
    int done, silent, deleted, living, failed;
};

/* Does the session lie in the folder of a `run` that is at work? */
static int is_followed(const char *path)
{
    const char *end = strrchr(path, '/');
    while (end > path && end[-1] == '/') /* DIR may be given with a slash */
        end--;
    char *dir = gt_mem_copy(path, end ? (size_t)(end - path) : 0);
    int yes = gt_run_folder_lives(dir) > 0;
    free(dir);
    return yes;
}

enum fate { GONE, STRANGE, STILLBORN, LIVING, DEAD, UNCLEAR /* finish knows or refuses */ };

/* What is to be done with a session; *h is filled for LIVING, DEAD and UNCLEAR, *e for STRANGE. */
static enum fate judge(const char *path, struct gt_header *h, struct gt_err *e)
{
    enum gt_life life;
    struct stat st;
    if (lstat(path, &st))
        return GONE; /* finished by someone else just now */
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
        gt_err_set(e, -ENODATA, "%s: not a file of yours: left alone", path);
        return STRANGE;
    }
    if (gt_session_header(path, h, e))
        return is_stillborn(path) ? STILLBORN : STRANGE;
    /* a living `run` makes the reports of its folder itself, and says so where its user looks */
    if (is_followed(path))
        return LIVING;
    life = gt_session_life(h);
    /* one that ended in order and still lives is making its report itself */
    if (life == GT_LIFE_ALIVE && h->state != GT_STATE_EXEC && !gt_session_followed(path, h))
        return LIVING;
    return life == GT_LIFE_UNKNOWN ? UNCLEAR : DEAD;
}

static void recover(const char *path, int clean, const struct gt_finish_options *o, struct tally *t)
{
    struct gt_finish_result r = {0};
    struct gt_header h = {0};
    struct gt_err e = {""};
    enum fate fate = judge(path, &h, &e);
    int rc;
    if (fate == STRANGE)
        fprintf(stderr, "gputally: %s\n", e.message);
    t->silent += fate == STILLBORN && !unlink(path);
    t->living += fate == LIVING;
    if (fate != DEAD && fate != UNCLEAR)
        return;
    if (clean && fate == DEAD) {
        if ((rc = gt_session_claim(path, &e)) == 0 && unlink(path))
            rc = gt_err_set(&e, -errno, "%s: %s", path, strerror(errno));
        t->deleted += !rc;
    } else {
        rc = gt_finish_session(path, o, &r, &e);
        t->done += !rc && r.recorded;
        t->silent += !rc && !r.recorded;
    }
    /* the program may have wished for silence, who called us wants to know */
    if (!rc && !o->quiet && r.recorded) {
        if (r.table && r.ended != GT_ENDED_EXIT)
            gt_wrote_heading(r.pid, r.program, r.ended);
        fputs(r.table ? r.table : "", stderr);
        gt_wrote_last(r.files, NULL, r.shapes);
    }
    gt_finish_result_free(&r);
    if (rc == -EBUSY)
        t->living++;
    else if (rc)
        t->failed++;
    if (rc)
        fprintf(stderr, "gputally: %s\n", e.message);
}

static void age(char out[16], uint64_t start_ns)
{
    struct timespec now;
    int64_t s;
    clock_gettime(CLOCK_REALTIME, &now);
    s = now.tv_sec - (int64_t)(start_ns / 1000000000);
    s = s < 0 ? 0 : s;
    if (s < 120)
        snprintf(out, 16, "%ds", (int)s);
    else if (s < 7200)
        snprintf(out, 16, "%dm", (int)(s / 60));
    else if (s < 172800)
        snprintf(out, 16, "%dh", (int)(s / 3600));
    else
        snprintf(out, 16, "%dd", (int)(s / 86400));
}

/* The base name of the program, as a terminal may see it. */
static void program(const char *path, char *out, size_t room)
{
    struct gt_err e = {""};
    struct gt_input in;
    const struct gt_header *h;
    const struct gt_str *text = NULL;
    size_t n = 0;
    if (gt_input_read(&in, path, &e)) {
        snprintf(out, room, "?");
        return;
    }
    if ((h = gt_input_header(&in, &e)) && (text = gt_input_at(&in, h->exe, sizeof *text)) &&
        gt_input_at(&in, h->exe, sizeof *text + (size_t)text->len)) {
        const char *slash = memrchr(text->text, '/', text->len);
        const char *from = slash ? slash + 1 : text->text;
        for (; from < text->text + text->len && n + 1 < room; from++)
            out[n++] = (unsigned char)*from < 32 || *from == 127 ? '?' : *from;
    }
    out[n] = 0;
    if (!n)
        snprintf(out, room, "?");
    gt_input_free(&in);
}

static const char *would(enum fate fate, const char *path, const struct gt_header *h, int clean)
{
    int ended = h->state == GT_STATE_ENDED || h->state == GT_STATE_EXEC;
    if (fate == LIVING || (fate == UNCLEAR && !ended && !gt_session_followed(path, h)))
        return "leave";
    return fate == STILLBORN || (clean && fate == DEAD) ? "delete" : "recover";
}

#define LINE "%-8s %8s  %-16s %5s %10s  %s\n"
/* One line of --list. */
static void show(const char *path, int clean)
{
    struct gt_header h = {0};
    struct gt_err e = {""};
    enum fate fate = judge(path, &h, &e);
    char old[16] = "-", name[32] = "?", size[40] = "0 B", pid[16] = "-";
    struct stat st;
    if (fate == GONE || lstat(path, &st))
        return;
    if (fate == STRANGE) {
        fprintf(stderr, "gputally: %s\n", e.message);
        return;
    }
    if (fate != STILLBORN) {
        age(old, h.start_realtime_ns);
        program(path, name, sizeof name);
        snprintf(pid, sizeof pid, "%u", h.pid);
    }
    gt_text_memory(size, (int64_t)st.st_blocks * 512);
    printf(LINE, would(fate, path, &h, clean), pid, name, old, size, path);
}

static int list(const struct found *sessions, int clean)
{
    if (sessions->count)
        printf(LINE, "Would", "PID", "Program", "Age", "Size", "Session");
    for (size_t i = 0; i < sessions->count; i++)
        show(sessions->names[i], clean);
    return fflush(stdout) ? 2 : 0;
}

int gt_cmd_recover(int argc, char **argv)
{
    static const struct option options[] = {{"clean", no_argument, NULL, 'c'},
                                            {"list", no_argument, NULL, 'l'},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct gt_finish_options o = {.hold_table = 1};
    struct found sessions = {0}, folders = {0};
    struct tally t = {0};
    struct stat seen[64], st;
    size_t n = 0;
    int clean = 0, only_list = 0, missing = 0, status, c;
    signal(SIGXFSZ, SIG_IGN); /* EFBIG, not death */
    optind = 1;
    while ((c = gt_options_next(argc, argv, ":clqh", options)) != -1) {
        switch (c) {
        case 'c':
            clean = 1;
            break;
        case 'l':
            only_list = 1;
            break;
        case 'q':
            o.quiet = 1;
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            return 2;
        }
    }
    for (int i = optind; i < argc; i++) {
        if (stat(argv[i], &st)) {
            fprintf(stderr, "gputally: %s: %s\n", argv[i], strerror(errno));
            missing = 2;
        }
        scan_once(&sessions, &folders, seen, &n, argv[i]);
        add_run_folder(&folders, argv[i]);
    }
    if (optind == argc) {
        scan_once(&sessions, &folders, seen, &n, getenv("GPUTALLY_SESSION_DIR"));
        scan_once(&sessions, &folders, seen, &n, "/dev/shm");
        scan_once(&sessions, &folders, seen, &n, getenv("TMPDIR"));
        scan_once(&sessions, &folders, seen, &n, "/tmp");
    }
    for (size_t i = 0; i < folders.count; i++)
        scan_once(&sessions, NULL, seen, &n, folders.names[i]);
    /* by name: the sessions before an exec come first */
    if (sessions.count)
        qsort(sessions.names, sessions.count, sizeof *sessions.names, by_name);
    if (only_list) {
        status = list(&sessions, clean);
        free_found(&sessions);
        free_found(&folders);
        return status | missing;
    }
    /* a living `run` takes care of its folder itself */
    for (size_t i = 0; i < folders.count; i++)
        if (gt_run_folder_owned(folders.names[i])) {
            free(folders.names[i]);
            folders.names[i] = gt_mem_copy("", 0);
        }
    for (size_t i = 0; i < sessions.count; i++)
        recover(sessions.names[i], clean, &o, &t);
    for (size_t i = 0; i < folders.count; i++) {
        char *inside = gt_mem_format("%s/", folders.names[i]);
        gt_run_folder_left(inside);
        free(inside);
    }
    if (!o.quiet)
        fprintf(stderr,
                "gputally: %d recovered, %d empty, %d deleted, %d still in use, %d failed\n",
                t.done, t.silent, t.deleted, t.living, t.failed);
    free_found(&sessions);
    free_found(&folders);
    return t.failed ? 2 : missing;
}
