/* As much of Check as the suites of tests/unit use, for `make check-aarch64`: Check itself is not
 * there for a machine that one only builds for. Each test runs in a child of its own, as Check does
 * it, so that a crash is one failed test; the last line is the one that scripts/run-tests reads. */
#ifndef CHECK_H
#define CHECK_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void TFun(int);
struct check_test {
    TFun *f;
    const char *name;
};
#define START_TEST(name)                                                                           \
    static void name##_fn(int _i);                                                                 \
    static const struct check_test name = {name##_fn, #name};                                      \
    static void name##_fn(int _i __attribute__((unused)))
#define END_TEST

typedef struct {
    struct {
        const struct check_test *test;
        int from, to;
    } tests[200];
    int count;
    unsigned timeout;
    void (*before)(void), (*after)(void);
} TCase;
typedef struct {
    const char *name;
    TCase *cases[16];
    int count;
} Suite;
typedef struct {
    Suite *suite;
    int fork, failed, checks;
} SRunner;

#define ck_fail_(...)                                                                              \
    (printf("%s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), putchar('\n'), fflush(stdout),    \
     _exit(1))
#define ck_abort_msg(...) ck_fail_(__VA_ARGS__)
#define ck_assert_msg(x, ...) ((x) ? (void)0 : ck_fail_(__VA_ARGS__))
#define ck_assert(x) ck_assert_msg(x, "Assertion '%s' failed", #x)
#define ck_cmp_(type, format, a, op, b)                                                            \
    do {                                                                                           \
        type a_ = (type)(a);                                                                       \
        type b_ = (type)(b);                                                                       \
        ck_assert_msg(a_ op b_, "Assertion '%s' failed: " format ", " format, #a " " #op " " #b,   \
                      a_, b_);                                                                     \
    } while (0)
#define ck_assert_int_eq(a, b) ck_cmp_(long long, "%lld", a, ==, b)
#define ck_assert_int_ne(a, b) ck_cmp_(long long, "%lld", a, !=, b)
#define ck_assert_int_lt(a, b) ck_cmp_(long long, "%lld", a, <, b)
#define ck_assert_int_le(a, b) ck_cmp_(long long, "%lld", a, <=, b)
#define ck_assert_int_gt(a, b) ck_cmp_(long long, "%lld", a, >, b)
#define ck_assert_int_ge(a, b) ck_cmp_(long long, "%lld", a, >=, b)
#define ck_assert_uint_eq(a, b) ck_cmp_(unsigned long long, "%llu", a, ==, b)
#define ck_assert_uint_ne(a, b) ck_cmp_(unsigned long long, "%llu", a, !=, b)
#define ck_assert_uint_lt(a, b) ck_cmp_(unsigned long long, "%llu", a, <, b)
#define ck_assert_uint_le(a, b) ck_cmp_(unsigned long long, "%llu", a, <=, b)
#define ck_assert_uint_gt(a, b) ck_cmp_(unsigned long long, "%llu", a, >, b)
#define ck_assert_uint_ge(a, b) ck_cmp_(unsigned long long, "%llu", a, >=, b)
#define ck_assert_double_eq(a, b) ck_cmp_(double, "%g", a, ==, b)
#define ck_assert_ptr_eq(a, b) ck_cmp_(void *, "%p", a, ==, b)
#define ck_assert_ptr_ne(a, b) ck_cmp_(void *, "%p", a, !=, b)
#define ck_assert_ptr_null(a) ck_assert((a) == NULL)
#define ck_assert_ptr_nonnull(a) ck_assert((a) != NULL)
#define ck_assert_mem_eq(a, b, n) ck_assert(memcmp(a, b, n) == 0)
#define ck_assert_str_eq(a, b) ck_str_(a, ==, b)
#define ck_assert_str_lt(a, b) ck_str_(a, <, b)
#define ck_str_(a, op, b)                                                                          \
    do {                                                                                           \
        const char *a_ = (a), *b_ = (b);                                                           \
        ck_assert_msg(a_ &&b_ &&strcmp(a_, b_) op 0, "Assertion '%s' failed: '%s', '%s'",          \
                      #a " " #op " " #b, a_, b_);                                                  \
    } while (0)

enum { CK_FORK, CK_NOFORK, CK_SILENT, CK_NORMAL, CK_ENV };

static inline Suite *suite_create(const char *name)
{
    Suite *s = calloc(1, sizeof *s);
    s->name = name;
    return s;
}
static inline TCase *tcase_create(const char *name)
{
    TCase *c = calloc(1, sizeof *c);
    (void)name;
    c->timeout = 60;
    return c;
}
static inline void tcase_add_range_(TCase *c, const struct check_test *t, int from, int to)
{
    c->tests[c->count].test = t;
    c->tests[c->count].from = from;
    c->tests[c->count++].to = to;
}
#define tcase_add_test(c, t) tcase_add_range_(c, &(t), 0, 1)
#define tcase_add_loop_test(c, t, from, to) tcase_add_range_(c, &(t), from, to)
#define tcase_set_timeout(c, s) ((c)->timeout = (s))
#define tcase_add_checked_fixture(c, b, a) ((c)->before = (b), (c)->after = (a))
#define suite_add_tcase(s, c) ((s)->cases[(s)->count++] = (c))

static inline SRunner *srunner_create(Suite *s)
{
    SRunner *r = calloc(1, sizeof *r);
    r->suite = s;
    return r;
}
#define srunner_set_fork_status(r, f) ((r)->fork = (f))
#define srunner_ntests_failed(r) ((r)->failed)
#define srunner_free(r) free(r)

static inline void check_run_(SRunner *r, const TCase *c, const struct check_test *t, int i)
{
    int status = 0;
    fflush(stdout);
    r->checks++;
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        alarm(c->timeout * 10); /* emulated */
        if (c->before)
            c->before();
        t->f(i);
        if (c->after)
            c->after();
        exit(0);
    }
    while (waitpid(pid, &status, 0) < 0)
        ;
    if (status) {
        r->failed++;
        printf("FAILED %s:%d (%s %d)\n", t->name, i, WIFSIGNALED(status) ? "signal" : "status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}

static inline void srunner_run_all(SRunner *r, int how)
{
    (void)how;
    for (int k = 0; k < r->suite->count; k++)
        for (int n = 0; n < r->suite->cases[k]->count; n++)
            for (int i = r->suite->cases[k]->tests[n].from; i < r->suite->cases[k]->tests[n].to;
                 i++)
                check_run_(r, r->suite->cases[k], r->suite->cases[k]->tests[n].test, i);
    printf("%s: Checks: %d, Failures: %d, Errors: 0\n", r->suite->name, r->checks, r->failed);
}

#endif
