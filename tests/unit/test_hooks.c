/* The hook tables: sorted as the searches by halves need them, each name with the prefix that
 * its table is found by, every NVTX callback there once. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name)
#define HOOK(name, ...) #name,
#define OWN(name, ...) #name,
static const char *const kokkos[] = {
#include "preload/hooks/kokkos.def"
};
static const char *const nvtx[] = {
#include "preload/hooks/nvtx.def"
};
static const char *const roctx[] = {
#include "preload/hooks/roctx.def"
};
#define CALL(name, ...) #name,
static const char *const itt[] = {
#include "preload/hooks/itt.def"
};
#undef CALL
#undef HOOK
#undef OWN
#define TABLE(names, prefix) names, sizeof(names) / sizeof(*(names)), prefix
static const struct {
    const char *const *names;
    size_t count;
    const char *prefix;
} tables[] = {
    {TABLE(itt, "")}, {TABLE(kokkos, "kokkosp_")}, {TABLE(nvtx, "nvtx")}, {TABLE(roctx, "roctx")}};
#define TABLES (int)(sizeof(tables) / sizeof(*tables))

enum { CORE, CORE2 };
#define HOOK(name, module, id, ...) {module, id},
static const struct {
    int module, id;
} ids[] = {
#include "preload/hooks/nvtx.def"
};
#undef HOOK
#define COUNT (sizeof(nvtx) / sizeof(*nvtx))

START_TEST(sorted)
{
    for (size_t i = 1; i < tables[_i].count; i++)
        ck_assert_str_lt(tables[_i].names[i - 1], tables[_i].names[i]);
}
END_TEST

START_TEST(prefixed)
{
    const char *prefix = tables[_i].prefix;

    ck_assert_uint_gt(tables[_i].count, 0);
    for (size_t i = 0; i < tables[_i].count; i++)
        ck_assert_int_eq(strncmp(tables[_i].names[i], prefix, strlen(prefix)), 0);
}
END_TEST

/* both modules have the callbacks 1 to 15 */
START_TEST(complete)
{
    int seen[2][16] = {{0}};

    for (size_t i = 0; i < COUNT; i++) {
        ck_assert_int_ge(ids[i].id, 1);
        ck_assert_int_le(ids[i].id, 15);
        ck_assert_int_eq(seen[ids[i].module][ids[i].id]++, 0);
    }
    ck_assert_uint_eq(COUNT, 30);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hooks");
    TCase *c = tcase_create("hooks");
    SRunner *r;
    int failed;

    tcase_add_loop_test(c, sorted, 0, TABLES);
    tcase_add_loop_test(c, prefixed, 0, TABLES);
    tcase_add_test(c, complete);
    suite_add_tcase(s, c);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
