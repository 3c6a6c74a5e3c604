/* The hook tables: sorted as dlsym's search by halves needs them, every NVTX callback there once.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name)
#define HOOK(name, ...) #name,
static const char *const nvtx[] = {
#include "preload/hooks/nvtx.def"
};
#undef HOOK
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
    for (size_t i = 1; i < COUNT; i++)
        ck_assert_msg(strcmp(nvtx[i - 1], nvtx[i]) < 0, "%s stands before %s", nvtx[i - 1],
                      nvtx[i]);
}
END_TEST

START_TEST(prefixed)
{
    for (size_t i = 0; i < COUNT; i++)
        ck_assert_int_eq(strncmp(nvtx[i], "nvtx", 4), 0);
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

    tcase_add_test(c, sorted);
    tcase_add_test(c, prefixed);
    tcase_add_test(c, complete);
    suite_add_tcase(s, c);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
