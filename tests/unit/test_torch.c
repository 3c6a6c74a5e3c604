/* The pure parts of preload/torch*.c: shapes as text, FLOPs, the table of known blocks, symbols of
 * loaded libraries. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* the unit suites link core, not preload: these modules are small enough to take them whole */
#include "preload/elf_symbol.c"
#include "preload/torch_flops.c"
#include "preload/torch_known.c"
#include "preload/torch_shapes.c"

struct gt_torch_calls gt_torch_calls; /* of no PyTorch: conv2d stays unknown */

static struct gt_torch_inputs in;
static int64_t dims[GT_TORCH_INPUTS][8];

/* "2x3 3x4 - ." : two matrices, no tensor, a tensor without dimensions */
static void inputs(const char *text)
{
    char copy[512], *save, *word;

    in = (struct gt_torch_inputs){.plain = 1};
    ck_assert_uint_lt(strlen(text), sizeof copy);
    strcpy(copy, text);
    for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        struct gt_torch_view *v = &in.views[in.count];

        v->dims = *word == '-' ? NULL : dims[in.count];
        v->count = 0;
        for (char *p = word; *p >= '0' && *p <= '9'; p += *p == 'x')
            dims[in.count][v->count++] = strtoll(p, &p, 10);
        in.count++;
    }
}

static const struct text {
    const char *inputs, *shapes;
} texts[] = {
    {"", "[]"},
    {"-", "[[]]"},
    {"2x3 3x4", "[[2, 3], [3, 4]]"},
    {"2x3 - . 10x0x100", "[[2, 3], [], [], [10, 0, 100]]"},
    {"9223372036854775807", "[[9223372036854775807]]"},
};

START_TEST(shapes)
{
    char out[GT_TORCH_SHAPES_BYTES];

    inputs(texts[_i].inputs);
    ck_assert_str_eq(gt_torch_shapes(out, &in), texts[_i].shapes);
}
END_TEST

START_TEST(shapes_negative)
{
    char out[GT_TORCH_SHAPES_BYTES];

    inputs("1x2");
    dims[0][0] = -1;
    dims[0][1] = INT64_MIN;
    ck_assert_str_eq(gt_torch_shapes(out, &in), "[[-1, -9223372036854775808]]");
}
END_TEST

/* Not half of them: and nothing behind the buffer is touched. */
START_TEST(shapes_that_do_not_fit)
{
    char out[GT_TORCH_SHAPES_BYTES + 16];
    int64_t many[GT_TORCH_SHAPES_BYTES];
    size_t fit = 0;

    for (size_t i = 0; i < GT_TORCH_SHAPES_BYTES; i++)
        many[i] = INT64_MIN;
    for (size_t n = 0; n < GT_TORCH_SHAPES_BYTES; n++) {
        inputs("1");
        in.views[0] = (struct gt_torch_view){many, n};
        memset(out, '#', sizeof out);
        if (gt_torch_shapes(out, &in)) {
            ck_assert_uint_eq(strlen(out), n ? 4 + 20 * n + 2 * (n - 1) : 4);
            fit++;
        }
        for (size_t i = GT_TORCH_SHAPES_BYTES; i < sizeof out; i++)
            ck_assert_int_eq(out[i], '#');
    }
    ck_assert_uint_gt(fit, 80);
    ck_assert_uint_lt(fit, 100);
}
END_TEST

static const struct flops {
    const char *name, *inputs;
    uint64_t flops;
} all_flops[] = {
    {"aten::mm", "2x3 3x4", 48},
    {"aten::mm", "0x3 3x4", 0},
    {"aten::mm", "2x3 4x4", 0},
    {"aten::mm", "2x3", 0},
    {"aten::mm", "", 0},
    {"aten::mm", "- -", 0},
    {"aten::mm", "2x3x3 3x4", 0},
    {"aten::addmm", "4 2x3 3x4 - -", 48},
    {"aten::addmm", "2x3 3x4", 0},
    {"aten::bmm", "5x2x3 5x3x4", 240},
    {"aten::bmm", "2x3 3x4", 0},
    {"aten::baddbmm", "5x2x4 5x2x3 5x3x4 - -", 240},
    {"aten::add", "2x3 2x3 -", 6},
    {"aten::add", ". 2x3 -", 1},
    {"aten::mul", "7 -", 7},
    {"aten::mul", "", 0},
    {"aten::mul", "- - - 2x4 2x4", 0}, /* TorchScript hands over its whole stack */
    {"aten::add_", "2x3 2x3 -", 0},
    {"aten::addmm_", "4 2x3 3x4 - -", 0},
    {"aten::conv2d", "1x3x8x8 4x3x3x3 - - - - -", 0},
    {"mm", "2x3 3x4", 0},
    {"mine::mm", "2x3 3x4", 0},
    {"aten::", "2x3 3x4", 0},
    {"", "2x3 3x4", 0},
};

START_TEST(flops)
{
    const struct flops *f = &all_flops[_i];

    inputs(f->inputs);
    ck_assert_uint_eq(gt_torch_flops(NULL, f->name, &in), f->flops);
    ck_assert_uint_eq(gt_torch_flops(NULL, NULL, &in), 0);
}
END_TEST

/* ---- the table of blocks ---- */

static int known(uintptr_t block, int64_t bytes, int64_t told, size_t in_use)
{
    size_t allocated = 12345;

    if (gt_torch_known((void *)block, &bytes, &allocated) < 0)
        return 0;
    ck_assert_int_eq(bytes, told);
    ck_assert_uint_eq(allocated, in_use);
    return 1;
}

START_TEST(known_blocks)
{
    ck_assert(!known(0x1000, -10, 0, 0)); /* from before */
    ck_assert(known(0x1000, 10, 10, 10));
    ck_assert(known(0x2000, 20, 20, 30));
    ck_assert(known(0x1000, -10, -10, 20));
    ck_assert(!known(0x1000, -10, 0, 0)); /* already gone */
    ck_assert(known(0x1000, 11, 11, 31));
    /* freed and allocated again while nobody listened: the size is that of the first time */
    ck_assert(known(0x2000, -99, -20, 11));
    /* allocated again while nobody saw it go: the new size */
    ck_assert(known(0x1000, 5, 5, 16));
    ck_assert(known(0x1000, -5, -5, 11));
}
END_TEST

/* Blocks come and go for long without the table filling up. */
START_TEST(known_blocks_come_and_go)
{
    for (uintptr_t i = 1; i <= 100000; i++) {
        ck_assert(known(i << 6, 8, 8, 8));
        ck_assert(known(i << 6, -8, -8, 0));
    }
    for (uintptr_t i = 1; i <= 10000; i++)
        ck_assert(known(i << 4, 8, 8, 8 * i));
    for (uintptr_t i = 10000; i > 0; i--)
        ck_assert(known(i << 4, -8, -8, 8 * (i - 1)));
}
END_TEST

/* More than fit: told as allocated, and their release is not. */
START_TEST(known_blocks_too_many)
{
    size_t kept = 0;

    for (uintptr_t i = 1; i <= 3 * SLOTS; i++)
        ck_assert(known(i << 4, 1, 1, i));
    for (uintptr_t i = 1; i <= 3 * SLOTS; i++)
        kept += known(i << 4, -1, -1, 3 * SLOTS - kept - 1) != 0;
    ck_assert_uint_gt(kept, SLOTS / 2);
    ck_assert_uint_le(kept, SLOTS);
}
END_TEST

/* ---- symbols ---- */

START_TEST(symbols)
{
    struct gt_elf elf;
    uint64_t adds = 0, subs = 99;
    int (*pid)(void);

    ck_assert_int_eq(gt_elf_find("libc.so", &elf, &adds, &subs), 0);
    pid = (int (*)(void))gt_elf_symbol(&elf, "getpid");
    ck_assert_ptr_nonnull(pid);
    ck_assert_int_eq(pid(), getpid());
    ck_assert_ptr_null(gt_elf_symbol(&elf, "gt_no_such_function"));
    ck_assert_ptr_null(gt_elf_symbol(&elf, ""));
    ck_assert_uint_gt(adds, 0);
    ck_assert_int_eq(gt_elf_unchanged(adds, subs), 1);
    ck_assert_int_eq(gt_elf_unchanged(adds + 1, subs), 0);
    /* what the library only needs is not its own */
    ck_assert_int_eq(gt_elf_find("libm.so", &elf, NULL, NULL), 0);
    ck_assert_ptr_nonnull(gt_elf_symbol(&elf, "nextafter"));
    ck_assert_ptr_null(gt_elf_symbol(&elf, "__stack_chk_fail"));
    ck_assert_int_eq(gt_elf_find("libno-such.so", &elf, NULL, NULL), -ENOENT);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("torch");
    TCase *c = tcase_create("torch");
    SRunner *r;
    int failed;

    tcase_add_loop_test(c, shapes, 0, sizeof texts / sizeof *texts);
    tcase_add_test(c, shapes_negative);
    tcase_add_test(c, shapes_that_do_not_fit);
    tcase_add_loop_test(c, flops, 0, sizeof all_flops / sizeof *all_flops);
    tcase_add_test(c, known_blocks);
    tcase_add_test(c, known_blocks_come_and_go);
    tcase_add_test(c, known_blocks_too_many);
    tcase_add_test(c, symbols);
    suite_add_tcase(s, c);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
