/* The tables of CUDA's functions: dlsym and cuGetProcAddress search them by halves, by name,
 * version and kind of default stream. What the real headers say is compared in
 * tests/e2e/test_cuda_abi.py. */
#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    LAUNCH,
    ALLOC,
    FREE,
    COPY,
    SET,
    SYNC,
    STREAM,
    EVENT,
    GRAPH,
    MEMORY,
    MODULE,
    CONTEXT,
    CONTEXT_END,
    FOLLOWED,
    IPC,
    PEER,
    LOOKUP,
    CONTROL
};

struct line {
    const char *name, *key, *bytes;
    unsigned since;
    enum kind kind;
};

#define HOOK(name, key, since, kind, bytes, ...) {#name, #key, #bytes, since, kind},
static const struct line driver[] = {
#include "preload/hooks/cuda.def"
};
#undef HOOK
#define HOOK(name, key, kind, bytes, ...) {#name, #key, #bytes, 0, kind},
#define WIDE HOOK
static const struct line runtime[] = {
#include "preload/hooks/cudart.def"
};

static const struct table {
    const struct line *lines;
    size_t count;
} tables[] = {{driver, sizeof driver / sizeof *driver},
              {runtime, sizeof runtime / sizeof *runtime}};

static const struct line *find(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->lines[i].name, name) == 0)
            return &t->lines[i];
    return NULL;
}

/* Length of the name without the per-thread suffix. */
static size_t plain(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && (!strcmp(name + n - 5, "_ptsz") || !strcmp(name + n - 5, "_ptds")) ? n - 5 : n;
}

/* Number of the variant, 1 for the first one; *base is the length of the name without it. */
static unsigned variant(const char *name, size_t *base)
{
    size_t n = plain(name);
    if (n > 3 && name[n - 3] == '_' && name[n - 2] == 'v') {
        *base = n - 3;
        return (unsigned)(name[n - 1] - '0');
    }
    *base = n;
    return 1;
}

START_TEST(sorted)
{
    const struct table *t = &tables[_i];
    for (size_t i = 1; i < t->count; i++)
        ck_assert_msg(strcmp(t->lines[i - 1].name, t->lines[i].name) < 0, "%s", t->lines[i].name);
}
END_TEST

START_TEST(keys)
{
    const struct table *t = &tables[_i];
    for (size_t i = 0; i < t->count; i++) {
        const char *name = t->lines[i].name, *key = t->lines[i].key;
        size_t base;
        variant(name, &base);
        if (strncmp(name, "__", 2) == 0)
            name += 2, base -= 2;
        ck_assert_msg(strlen(key) == base && strncmp(name, key, base) == 0, "%s: %s", name, key);
        ck_assert_uint_lt(strlen(key), 56); /* gt_cuda_info */
        ck_assert_uint_lt(strlen(name), 120);
    }
}
END_TEST

/* A variant for per-thread streams does what the plain one does. */
START_TEST(pairs)
{
    const struct table *t = &tables[_i];
    size_t found = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct line *l = &t->lines[i], *other;
        char name[128];
        if (!l->name[plain(l->name)])
            continue;
        found++;
        snprintf(name, sizeof name, "%.*s", (int)plain(l->name), l->name);
        other = find(t, name);
        ck_assert_msg(other && other->kind == l->kind && !strcmp(other->bytes, l->bytes), "%s",
                      l->name);
    }
    ck_assert_uint_gt(found, 40);
}
END_TEST

/* Variants are numbered without a gap from the plain name on (whose older ones may be left out),
 * and each is newer than the one before, in both kinds of default stream. */
START_TEST(versions)
{
    for (size_t i = 0; i < tables[0].count; i++) {
        const struct line *l = &driver[i], *before;
        size_t base;
        unsigned v = variant(l->name, &base);
        char name[128];
        ck_assert_msg(l->since >= 2000 && l->since < 14000 && l->since % 10 == 0, "%s", l->name);
        if (v < 2)
            continue;
        char number[16] = "";
        if (v > 2)
            snprintf(number, sizeof number, "_v%u", v - 1);
        snprintf(name, sizeof name, "%.*s%s%s", (int)base, l->name, number,
                 l->name + plain(l->name));
        before = find(&tables[0], name);
        if (!before && l->name[plain(l->name)])
            continue; /* per-thread streams came with CUDA 7, after most second variants */
        ck_assert_msg(before && before->since < l->since, "%s: %s", l->name, name);
    }
}
END_TEST

/* What moves or allocates says how much. */
START_TEST(bytes)
{
    const struct table *t = &tables[_i];
    for (size_t i = 0; i < t->count; i++) {
        const struct line *l = &t->lines[i];
        int moves = l->kind == ALLOC || l->kind == COPY || l->kind == SET;
        int says = strcmp(l->bytes, "0") != 0;
        int does = l->kind == FOLLOWED || l->kind == LOOKUP || l->kind == CONTROL ||
                   l->kind == CONTEXT_END;
        ck_assert_msg(says == (moves || does), "%s", l->name);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cuda_table");
    TCase *t = tcase_create("all");
    tcase_add_loop_test(t, sorted, 0, 2);
    tcase_add_loop_test(t, keys, 0, 2);
    tcase_add_loop_test(t, pairs, 0, 2);
    tcase_add_test(t, versions);
    tcase_add_loop_test(t, bytes, 0, 2);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
