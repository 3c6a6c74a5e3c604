/* A small reader of sessions for the unit suites of the core: in the process that writes them, or
 * of the file that a child left. Independent of the report house on purpose, and unlike it made for
 * files that are right: whatever is out of place fails the test. Included by test_core_*.c. */
#ifndef GT_TEST_CORE_READER_H
#define GT_TEST_CORE_READER_H

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/core.h"
#include "core/record.h"
#include "core/session.h"

#define RD static inline __attribute__((unused))

#define API GT_TAG(GT_SOURCE_API, 0, 0)
#define NVTX GT_TAG(GT_SOURCE_NVTX, 0, 0)
#define GROUP(tag) GT_TAG_GROUP(tag)

#ifdef __SANITIZE_THREAD__
#define RD_TSAN 1
#else
#define RD_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__) || RD_TSAN
#define RD_SANITIZED 1
#else
#define RD_SANITIZED 0
#endif

/* As ck_assert_msg, but quiet when it holds: Check writes a record for each assertion, which is too
 * much for what is asserted a million times. */
#define RD_MUST(x, ...)                                                                            \
    do {                                                                                           \
        if (!(x))                                                                                  \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

/* ---- a session, seen from outside ---- */

struct rd {
    const char *base;
    uint64_t size;
};

/* This process's own. */
RD struct rd rd_self(void)
{
    RD_MUST(gt_session.base != NULL, "no session");
    return (struct rd){gt_session.base, gt_session.size_bytes};
}

/* A file's; stays mapped. */
RD struct rd rd_open(const char *path)
{
    struct stat s;
    int fd = open(path, O_RDONLY);
    ck_assert_msg(fd >= 0 && fstat(fd, &s) == 0, "%s can't be opened", path);
    void *p = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    ck_assert_ptr_ne(p, MAP_FAILED);
    return (struct rd){p, (uint64_t)s.st_size};
}

RD const struct gt_header *rd_header(struct rd v)
{
    return (const struct gt_header *)v.base;
}

RD const void *rd_at(struct rd v, gt_ref ref, size_t bytes)
{
    uint64_t at = (uint64_t)ref * GT_ALIGN;
    RD_MUST(at >= GT_HEADER_BYTES && at + bytes <= v.size, "a ref leads out of the file");
    return v.base + at;
}

/* "" for 0. */
RD const char *rd_text(struct rd v, gt_ref ref)
{
    if (!ref)
        return "";
    const struct gt_str *s = rd_at(v, ref, sizeof *s);
    rd_at(v, ref, sizeof *s + s->len + 1);
    RD_MUST(s->text[s->len] == 0, "a text without its end");
    return s->text;
}

/* NULL if there is no slot `id`. */
RD const struct gt_slot *rd_slot(struct rd v, uint32_t id)
{
    const struct gt_slot *s;
    for (gt_ref r = rd_header(v)->slots; r; r = s->next) {
        s = rd_at(v, r, sizeof *s);
        if (s->id == id)
            return s;
    }
    return NULL;
}

RD const struct gt_node *rd_node(struct rd v, const struct gt_slot *s, uint32_t index)
{
    RD_MUST(index < s->node_count, "node %u of %u", index, s->node_count);
    for (gt_ref r = s->chunks; r;) {
        const struct gt_node_chunk *c = rd_at(v, r, sizeof *c);
        if (index >= c->first && index - c->first < c->capacity)
            return rd_at(v, r + (gt_ref)((sizeof *c + (index - c->first) * sizeof *c->nodes) / 8),
                         sizeof *c->nodes);
        r = c->next;
    }
    ck_abort_msg("node %u has no chunk", index);
    return NULL;
}

/* Index of the child with that kind and key below `parent`, 0 if there is none; `domain` NULL: any.
 */
RD uint32_t rd_child(struct rd v, const struct gt_slot *s, uint32_t parent, int kind,
                     const char *domain, const char *key)
{
    for (uint32_t i = parent + 1; i < s->node_count; i++) {
        const struct gt_node *n = rd_node(v, s, i);
        if (n->parent == parent && n->kind == kind && strcmp(rd_text(v, n->key), key) == 0 &&
            (!domain || strcmp(rd_text(v, n->domain), domain) == 0))
            return i;
    }
    return 0;
}

/* The node at "a/b/c": ranges all but the last, which is of `kind`. NULL if there is none. */
RD const struct gt_node *rd_find(struct rd v, const struct gt_slot *s, int kind, const char *path)
{
    char copy[256], *rest = copy, *key;
    uint32_t at = 0;
    snprintf(copy, sizeof copy, "%s", path);
    while ((key = strsep(&rest, "/"))) {
        at = rd_child(v, s, at, rest ? GT_KIND_RANGE : kind, NULL, key);
        if (!at)
            return NULL;
    }
    return rd_node(v, s, at);
}

/* Sum of the counts of one kind, of every kind if 0, in every slot. Checks on the way what must
 * hold of any slot that nobody writes to. */
RD uint64_t rd_calls(struct rd v, int kind)
{
    uint64_t sum = 0;
    uint32_t slots = 0;
    const struct gt_slot *s;
    for (gt_ref r = rd_header(v)->slots; r; r = s->next) {
        s = rd_at(v, r, sizeof *s);
        slots++;
        RD_MUST((s->seq & 1) == 0 && s->node_count >= 2, "slot %u is torn", s->id);
        for (uint32_t i = 0; i < s->node_count; i++) {
            const struct gt_node *n = rd_node(v, s, i);
            RD_MUST(n->parent <= (i ? i - 1 : 0), "node %u has the parent %u", i, n->parent);
            RD_MUST(n->self_ticks <= n->total_ticks, "node %u: self > total", i);
            RD_MUST(n->count ? n->min_ticks <= n->max_ticks : n->min_ticks == UINT64_MAX,
                    "node %u: min %lu, max %lu", i, n->min_ticks, n->max_ticks);
            if (!kind || n->kind == kind)
                sum += n->count;
        }
    }
    RD_MUST(slots == rd_header(v)->slot_count, "%u slots", slots);
    return sum;
}

/* The calling thread's slot must be the only one. */
RD const struct gt_slot *rd_only(void)
{
    RD_MUST(rd_header(rd_self())->slot_count == 1, "not one slot");
    return rd_slot(rd_self(), 0);
}

/* ---- one folder a test, all of them removed at the end, whatever failed ---- */

static char rd_root[64], rd_dir[96];

RD void rd_setup(void)
{
    snprintf(rd_dir, sizeof rd_dir, "%s/%d", rd_root, (int)getpid());
    ck_assert_int_eq(mkdir(rd_dir, 0700), 0);
    setenv("GPUTALLY_SESSION_DIR", rd_dir, 1);
    gt_test_ticks = 1000;
}

/* Path of the only session of process `pid` in the test's folder; fails if there is none. */
RD const char *rd_session_of(pid_t pid)
{
    static char path[512];
    char part[32];
    int found = 0;
    struct dirent *e;
    DIR *d = opendir(rd_dir);
    ck_assert_ptr_nonnull(d);
    snprintf(part, sizeof part, "-%d-", (int)pid);
    while ((e = readdir(d)))
        if (strncmp(e->d_name, "gputally-", 9) == 0 && strstr(e->d_name, part)) {
            snprintf(path, sizeof path, "%s/%s", rd_dir, e->d_name);
            found++;
        }
    closedir(d);
    ck_assert_msg(found == 1, "%d sessions of process %d", found, (int)pid);
    return path;
}

RD int rd_files(void)
{
    int n = 0;
    struct dirent *e;
    DIR *d = opendir(rd_dir);
    ck_assert_ptr_nonnull(d);
    while ((e = readdir(d)))
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* A child must have ended with status 0. */
RD void rd_wait(pid_t pid)
{
    int status = -1;
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(waitpid(pid, &status, __WALL), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child ended with %#x", status);
}

/* A check in a child process, where Check's own would end in the parent's books. */
#define CHILD_CHECK(x)                                                                             \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: in the child: %s\n", __FILE__, __LINE__, #x);                  \
            _exit(9);                                                                              \
        }                                                                                          \
    } while (0)

/* The machine lacks what the test needs: scripts/run-tests counts these lines. */
#define RD_SKIP(why)                                                                               \
    do {                                                                                           \
        printf("SKIP: %s: %s\n", __func__, why);                                                   \
        fflush(stdout);                                                                            \
        return;                                                                                    \
    } while (0)

RD int rd_remove(const char *path, const struct stat *s, int type, struct FTW *f)
{
    (void)s;
    (void)type;
    (void)f;
    return remove(path);
}

/* Runs the suite, each test in a process of its own; returns main's status. */
RD int rd_run(Suite *suite)
{
    /* a filesystem that sessions may live on: /tmp may be an overlay */
    snprintf(rd_root, sizeof rd_root, "%s/gputally-test-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(rd_root)) {
        perror(rd_root);
        return EXIT_FAILURE;
    }
    for (const char *const *v =
             (const char *const[]){"MEMORY", "RING", "SOURCES", "DISABLE", "CHILDREN", "EXE",
                                   "RECORD_SHAPES", "RUN_DIR", "OUTPUT", "LOG", "INCLUDE",
                                   "EXCLUDE", "WINDOW", "WITH_STACK", NULL};
         *v; v++) {
        char name[64];
        snprintf(name, sizeof name, "GPUTALLY_%s", *v);
        unsetenv(name);
    }
    SRunner *r = srunner_create(suite);
    srunner_set_fork_status(r, CK_FORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    nftw(rd_root, rd_remove, 16, FTW_DEPTH | FTW_PHYS);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

RD TCase *rd_case(Suite *suite, const char *name)
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, rd_setup, NULL);
    suite_add_tcase(suite, t);
    return t;
}

#endif
