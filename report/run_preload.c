/* LD_PRELOAD for the program under `run`: where the library is, what must come before it. */
#include "report/run_preload.h"
#include "report/elf_target.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEPARATORS " :\t\n"

int gt_run_own_path(char out[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);

    if (n < 0)
        return -errno;
    out[n] = 0;
    return 0;
}

int gt_run_find_library(char out[PATH_MAX], struct gt_err *err)
{
    static const char *const places[] = {"", "../lib/gputally/", "../lib/"};
    char own[PATH_MAX], candidate[PATH_MAX + 64];
    const char *dir;

    if (gt_run_own_path(own))
        return gt_err_set(err, -ENOENT,
                          "/proc/self/exe: can't read it, so libgputally.so can't be found");
    dir = dirname(own);
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(candidate, sizeof candidate, "%s/%slibgputally.so", dir, places[i]);
        if (realpath(candidate, out) && !access(out, R_OK))
            return 0;
    }
    return gt_err_set(err, -ENOENT,
                      "libgputally.so: not in %s, nor in ../lib/gputally or ../lib from there",
                      dir);
}

int gt_run_plain_path(const char *library, const char *folder, char out[PATH_MAX],
                      struct gt_err *err)
{
    if (!strpbrk(library, SEPARATORS)) {
        snprintf(out, PATH_MAX, "%s", library);
        return 0;
    }
    if (!folder || strpbrk(folder, SEPARATORS))
        return gt_err_set(
            err, -EINVAL,
            "%s: LD_PRELOAD can't name a path with a blank or colon; install elsewhere, "
            "or set GPUTALLY_SESSION_DIR to a folder without one",
            library);
    /* the folder, not the file: the library looks for `gputally` beside itself */
    const char *base = strrchr(library, '/') + 1;
    char link[PATH_MAX], target[PATH_MAX];
    if (snprintf(link, sizeof link, "%s/" GT_RUN_LINK, folder) >= (int)sizeof link ||
        snprintf(out, PATH_MAX, "%s/%s", link, base) >= PATH_MAX)
        return gt_err_set(err, -ENAMETOOLONG, "%s: path too long", folder);
    snprintf(target, sizeof target, "%.*s", (int)(base - library), library);
    if (symlink(target, link))
        return gt_err_set(err, -errno, "%s: %s", link, strerror(errno));
    return 0;
}

/* One line of the trace: "\tlibasan.so.8 => /usr/lib/libasan.so.8 (0x7f…)". */
static int resolved_line(const char *line, const char *name, char out[PATH_MAX])
{
    size_t len = strlen(name);
    const char *end;

    line += strspn(line, " \t");
    if (strncmp(line, name, len) || strncmp(line + len, " => /", 5))
        return 0;
    line += len + 4;
    end = strstr(line, " (0x");
    if (!end || end - line >= PATH_MAX)
        return 0;
    memcpy(out, line, end - line);
    out[end - line] = 0;
    return 1;
}

static void exec_trace(const char *path, const struct gt_run_env *e, int out)
{
    struct gt_run_env traced;
    int null = open("/dev/null", O_RDWR);

    dup2(null, 0);
    dup2(out, 1);
    dup2(null, 2);
    if (!gt_run_env_init(&traced, e->v) && !gt_run_env_set(&traced, "LD_TRACE_LOADED_OBJECTS", "1"))
        execve(path, (char *[]){(char *)path, NULL}, traced.v);
    _exit(127);
}

int gt_run_resolve(const char *path, const char *name, const struct gt_run_env *e,
                   char out[PATH_MAX])
{
    char line[PATH_MAX + 256];
    int fds[2], found = 0;
    pid_t child;
    FILE *f;

    if (pipe2(fds, O_CLOEXEC))
        return -errno;
    child = fork();
    if (!child)
        exec_trace(path, e, fds[1]);
    close(fds[1]);
    f = child < 0 ? NULL : fdopen(fds[0], "r");
    if (!f)
        close(fds[0]);
    while (f && fgets(line, sizeof line, f))
        found = found || resolved_line(line, name, out);
    if (f)
        fclose(f);
    if (child > 0)
        waitpid(child, NULL, 0);
    return found ? 0 : -ENOENT;
}

void gt_run_library_sanitizer(const char *library, const struct gt_run_env *e, char out[PATH_MAX])
{
    struct gt_elf_target t;
    char own[PATH_MAX];

    out[0] = 0;
    gt_elf_target_read(library, &t);
    /* a library can't be asked, but this executable was built in the same way */
    if (*t.sanitizer && (gt_run_own_path(own) || gt_run_resolve(own, t.sanitizer, e, out)))
        out[0] = 0;
}

static int add(char **list, const char *entry, size_t len)
{
    char *grown;

    if (asprintf(&grown, "%s%s%.*s", *list ? *list : "", *list ? ":" : "", (int)len, entry) < 0)
        return -ENOMEM;
    free(*list);
    *list = grown;
    return 0;
}

static int same(const char *entry, size_t len, const char *other)
{
    return strlen(other) == len && !memcmp(entry, other, len);
}

/* pass 1: the user's sanitizers; pass 2: the rest. What we add ourselves is left out of both. */
static int add_users(char **list, const char *users, int sanitizers, const char *library,
                     const char *sanitizer)
{
    for (users += strspn(users, SEPARATORS); *users; users += strspn(users, SEPARATORS)) {
        size_t len = strcspn(users, SEPARATORS);
        char entry[NAME_MAX + 1];
        const char *base = memrchr(users, '/', len);

        base = base ? base + 1 : users;
        snprintf(entry, sizeof entry, "%.*s", (int)(users + len - base), base);
        if (!same(users, len, library) && !same(users, len, sanitizer) &&
            gt_elf_is_sanitizer(entry) == sanitizers && add(list, users, len))
            return -ENOMEM;
        users += len;
    }
    return 0;
}

int gt_run_set_preload(struct gt_run_env *e, const char *library, const char *sanitizer)
{
    const char *users = gt_run_env_get(e, "LD_PRELOAD");
    char *list = NULL;
    int rc = 0;

    if (*sanitizer)
        rc = add(&list, sanitizer, strlen(sanitizer));
    if (!rc && users)
        rc = add_users(&list, users, 1, library, sanitizer);
    if (!rc)
        rc = add(&list, library, strlen(library));
    if (!rc && users)
        rc = add_users(&list, users, 0, library, sanitizer);
    if (!rc)
        rc = gt_run_env_set(e, "LD_PRELOAD", list);
    free(list);
    return rc;
}
