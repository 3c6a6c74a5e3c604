/* See place.h. */
#include "report/place.h"
#include "report/mem.h"
#include "report/sink.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_NAME "gputally.%e.%p"
/* Names to try before something else must be wrong. */
#define MOST_NUMBERS 100000u

/* A value inside a name can't start a folder. */
static void part(struct gt_sink *s, const char *text)
{
    for (; *text; text++)
        gt_sink_put(s, *text == '/' || (unsigned char)*text < 32 || *text == 127 ? "_" : text, 1);
}

static void moment(struct gt_sink *s, int64_t unix_ns)
{
    char text[32] = "";
    time_t t = (time_t)(unix_ns / 1000000000);
    struct tm tm;
    if (localtime_r(&t, &tm))
        strftime(text, sizeof text, "%Y%m%d-%H%M%S", &tm);
    gt_sink_text(s, text);
}

static int expand(const struct gt_place *p, const char *pattern, unsigned n, struct gt_sink *s)
{
    const char *exe = strrchr(p->exe, '/');
    int numbered = 0;
    exe = exe ? exe + 1 : p->exe;
    for (const char *c = pattern; *c; c++) {
        if (*c != '%') {
            gt_sink_put(s, c, 1);
            continue;
        }
        switch (*++c) {
        case 'p':
            gt_sink_int(s, p->pid);
            break;
        case 'h':
            part(s, p->host);
            break;
        case 'e':
            part(s, *exe ? exe : "unknown");
            break;
        case 't':
            moment(s, p->start_unix_ns);
            break;
        case 'n':
            gt_sink_int(s, n);
            numbered = 1;
            break;
        case '%':
            gt_sink_put(s, "%", 1);
            break;
        default:
            gt_sink_put(s, "%", 1);
            c--;
        }
    }
    return numbered;
}

/* 1 if a name of `used` bytes has something before that ending. */
static int ends(const struct gt_sink *s, const char *extension)
{
    size_t n = strlen(extension);
    return s->used > n && s->data[s->used - n - 1] != '/' &&
           !memcmp(s->data + s->used - n, extension, n);
}

char *gt_place_path(const struct gt_place *p, const char *extension, unsigned n)
{
    struct gt_sink s;
    struct stat st;
    int numbered;
    gt_sink_open(&s, -1);
    if (p->pattern[0] != '/' && p->cwd[0]) {
        gt_sink_text(&s, p->cwd);
        gt_sink_put(&s, "/", 1);
    }
    unsigned own = p->snapshot ? 0 : n;
    numbered = expand(p, p->pattern[0] ? p->pattern : DEFAULT_NAME, own, &s);
    gt_sink_put(&s, "", 1);
    s.used--;
    if (s.data[s.used - 1] == '/' || (!stat(s.data, &st) && S_ISDIR(st.st_mode))) {
        if (s.data[s.used - 1] != '/')
            gt_sink_put(&s, "/", 1);
        numbered |= expand(p, DEFAULT_NAME, own, &s);
    }
    /* the number goes before the ending too */
    if (ends(&s, extension))
        s.used -= strlen(extension);
    if (p->snapshot)
        gt_sink_format(&s, ".snapshot-%u", n);
    else if (n && !numbered)
        gt_sink_format(&s, "-%u", n);
    gt_sink_text(&s, extension);
    return gt_sink_take(&s, NULL);
}

int gt_place_check(const char *pattern, struct gt_err *e)
{
    char *folder =
        gt_mem_format("%s%.*s", pattern[0] == '/' ? "" : "./", (int)strcspn(pattern, "%"), pattern);
    int rc = 0;
    struct stat st;
    if (stat(folder, &st) || !S_ISDIR(st.st_mode))
        do {
            char *slash = strrchr(folder, '/');
            slash[slash == folder] = 0;
        } while (stat(folder, &st) && (errno == ENOENT || errno == ENOTDIR) && folder[1]);
    if (stat(folder, &st))
        rc = gt_err_set(e, -errno, "%s: %s", folder, strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        rc = gt_err_set(e, -ENOTDIR, "%s is no folder", folder);
    else if (access(folder, W_OK | X_OK))
        rc = gt_err_set(e, -errno, "no file can be made in the folder %s: %s", folder,
                        strerror(errno));
    free(folder);
    return rc;
}

static int make_folders(const char *path, struct gt_err *e)
{
    char *copy = gt_mem_copy(path, strlen(path));
    int rc = 0;
    for (char *c = copy + 1; !rc && (c = strchr(c, '/')); c++) {
        *c = 0;
        if (mkdir(copy, 0777) && errno != EEXIST && errno != EISDIR) {
            /* a read-only file system says so even where the folder is there */
            struct stat st;
            int why = errno;
            if (stat(copy, &st) || !S_ISDIR(st.st_mode))
                rc = gt_err_set(e, -why, "%s: can't make the folder: %s", copy, strerror(why));
        }
        *c = '/';
    }
    free(copy);
    return rc;
}

/* A new file beside `path`, in *temp. */
static int write_temp(const char *path, const char *tag, const char *data, size_t bytes,
                      char **temp, struct gt_err *e)
{
    const char *slash = strrchr(path, '/');
    int fd, rc;
    struct gt_sink s;
    *temp = gt_mem_format("%.*s.gputally.%s.tmp", slash ? (int)(slash - path) + 1 : 0, path, tag);
    fd = open(*temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 && errno == ENOENT && slash)
        return gt_err_set(e, -ENOENT, "%s: there is no folder %.*s", path, (int)(slash - path),
                          path);
    if (fd < 0 && errno == EEXIST && !unlink(*temp))
        fd = open(*temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return gt_err_set(e, -errno, "%s: %s", path, strerror(errno));
    gt_sink_open(&s, fd);
    s.data = (char *)data; /* written as it is, not copied */
    s.used = bytes;
    gt_sink_flush(&s);
    rc = s.error;
    if (close(fd) && !rc)
        rc = -errno;
    if (rc) {
        unlink(*temp);
        gt_err_set(e, rc, "%s: %s", path, strerror(-rc));
    }
    return rc;
}

/* 1 if the file at `path` is the same report. */
static int is_same(const char *path, const struct gt_output *o)
{
    size_t want = o->head ? o->head : o->bytes, at = 0;
    struct stat st;
    char block[16384];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int same = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
               (o->head ? (size_t)st.st_size >= want : (size_t)st.st_size == want);
    while (same && at < want) {
        size_t n = want - at < sizeof block ? want - at : sizeof block;
        ssize_t got = read(fd, block, n);
        same = got > 0 && !memcmp(block, o->data + at, (size_t)got);
        at += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    return same;
}

/* temp -> path where nothing is there yet; -EEXIST else. */
static int move_new(const char *temp, const char *path)
{
    if (!link(temp, path)) {
        unlink(temp);
        return 0;
    }
    if (errno == EEXIST)
        return -EEXIST;
    /* no hard links here (FAT, some network and overlay file systems): hold the name, then replace
     * it */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return -errno;
    close(fd);
    if (!rename(temp, path))
        return 0;
    int rc = -errno;
    unlink(path);
    return rc;
}

int gt_place_put(const struct gt_place *p, const struct gt_output *o, const char *tag, unsigned *n,
                 char **path, struct gt_err *e)
{
    char *temp = NULL;
    int rc = -EEXIST;
    *path = NULL;
    for (unsigned first = *n; rc == -EEXIST && *n - first < MOST_NUMBERS; ++*n) {
        free(*path);
        *path = gt_place_path(p, o->extension, *n);
        if ((rc = make_folders(*path, e)) ||
            (!temp && (rc = write_temp(*path, tag, o->data, o->bytes, &temp, e))))
            break;
        if ((rc = move_new(temp, *path)) == -EEXIST && is_same(*path, o))
            rc = rename(temp, *path) ? -errno : 0;
        if (!rc)
            break;
        if (rc != -EEXIST)
            gt_err_set(e, rc, "%s: %s", *path, strerror(-rc));
    }
    if (rc == -EEXIST)
        gt_err_set(e, rc, "%s: all names are taken", *path);
    if (rc && temp)
        unlink(temp);
    if (rc) {
        free(*path);
        *path = NULL;
    }
    free(temp);
    return rc;
}

int gt_place_put_file(const char *path, const char *data, size_t bytes, int force, struct gt_err *e)
{
    char *temp = NULL, tag[32];
    int rc;
    snprintf(tag, sizeof tag, "%d", (int)getpid());
    if (!force && !access(path, F_OK))
        rc = -EEXIST;
    else if ((rc = write_temp(path, tag, data, bytes, &temp, e)))
        temp[0] = 0;
    else
        rc = force ? (rename(temp, path) ? -errno : 0) : move_new(temp, path);
    if (rc == -EEXIST)
        gt_err_set(e, rc, "%s: the file exists; --force replaces it", path);
    else if (rc) /* keeps what write_temp said */
        gt_err_set(e, rc, "%s: %s", path, strerror(-rc));
    if (rc && temp && temp[0])
        unlink(temp);
    free(temp);
    return rc;
}
