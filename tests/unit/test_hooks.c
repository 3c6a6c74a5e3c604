/* The hook tables: sorted as the searches by halves need them, every NVTX callback there once. */
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

/* ITT's are searched by halves in __itt_api_init, with the prefix that all have. */
#define CALL(name, ...) #name,
static const char *const itt[] = {
#include "preload/hooks/itt.def"
};
#undef CALL

static const struct table {
    const char *const *names;
    size_t count;
} sorted_tables[] = {{nvtx, COUNT}, {itt, sizeof(itt) / sizeof(*itt)}};

START_TEST(sorted)
{
    const struct table *t = &sorted_tables[_i];

    for (size_t i = 1; i < t->count; i++)
        ck_assert_msg(strcmp(t->names[i - 1], t->names[i]) < 0, "%s stands before %s",
                      t->names[i - 1], t->names[i]);
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

    tcase_add_loop_test(c, sorted, 0, sizeof(sorted_tables) / sizeof(*sorted_tables));
    tcase_add_test(c, prefixed);
    tcase_add_test(c, complete);
    suite_add_tcase(s, c);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
