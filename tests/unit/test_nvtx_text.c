/* preload/nvtx_text.c: PyTorch's emit_nvtx names in all their forms, names that only look like
 * them, hostile ones, and wide text. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* the unit suites link core, not preload: this module is pure and small enough to take it whole */
#include "preload/nvtx_text.c"

static const struct good {
    const char *text, *key, *shapes;
    int64_t seq, op_id;
} good[] = {
    /* 2.x, with shapes */
    {"aten::mm, seq = 0, op_id = 3, sizes = [[2, 3], [3, 4]], input_op_ids = [(0,-1), (0,-1)]",
     "aten::mm", "[[2, 3], [3, 4]]", 0, 3},
    {"aten::add_, op_id = 7, sizes = [[], [2], []], input_op_ids = [(0,-1)]", "aten::add_",
     "[[], [2], []]", -1, 7},
    /* 2.x, record_shapes off */
    {"aten::linear, seq = 12, op_id = 41", "aten::linear", NULL, 12, 41},
    {"aten::empty, op_id = 2", "aten::empty", NULL, -1, 2},
    {"aten::t, seq = 1, op_id = 4, input_op_ids = [(3,0)]", "aten::t", NULL, 1, 4},
    /* 1.13 and before */
    {"aten::mul, seq = 5, sizes = [[4], [4]]", "aten::mul", "[[4], [4]]", 5, -1},
    {"aten::ones, sizes = [[], []]", "aten::ones", "[[], []]", -1, -1},
    {"MulBackward0, seq = 9", "MulBackward0", NULL, 9, -1},
    {"autograd::engine::evaluate_function: AddmmBackward0, seq = 2, op_id = 90",
     "autograd::engine::evaluate_function: AddmmBackward0", NULL, 2, 90},
    /* names with commas, and with an earlier thing that looks like a field */
    {"f<int, float>, seq = 1, op_id = 2", "f<int, float>", NULL, 1, 2},
    {"a, seq = high, seq = 3", "a, seq = high", NULL, 3, -1},
    {"a, seq = 1, seq = 3", "a, seq = 1", NULL, 3, -1},
    {"x, seq = 9223372036854775807", "x", NULL, INT64_MAX, -1},
};

START_TEST(parses)
{
    const struct good *g = &good[_i];
    struct gt_nvtx_op op;

    ck_assert_int_eq(gt_nvtx_parse(g->text, &op), 0);
    ck_assert_uint_eq(op.key_len, strlen(g->key));
    ck_assert_mem_eq(g->text, g->key, op.key_len);
    ck_assert_int_eq(op.seq, g->seq);
    ck_assert_int_eq(op.op_id, g->op_id);
    if (!g->shapes) {
        ck_assert_ptr_null(op.shapes);
    } else {
        ck_assert_uint_eq(op.shapes_len, strlen(g->shapes));
        ck_assert_mem_eq(op.shapes, g->shapes, op.shapes_len);
    }
}
END_TEST

static const char *const bad[] = {
    "",
    "aten::mm",
    ",",
    ", seq = 1",
    "a,seq = 1",
    "a, seq=1",
    "a, seq = ",
    "a, seq = -1",
    "a, seq = 1 ",
    "a, seq = 1x",
    "a, seq = 1, ",
    "a, seq = high",
    "a, seq = 9223372036854775808",
    "a, seq = 99999999999999999999999999999999",
    "a, op_id = 1, seq = 2, rest",
    "a, seq = 1, step",
    "loss, op_id",
    "a, sizes = ",
    "a, sizes = [",
    "a, sizes = [[2, 3]",
    "a, sizes = ]",
    "a, sizes = [x]",
    "a, sizes = [2, 3]]",
    "a, seq = 1, input_op_ids = [(0,-1)]",
    "a, input_op_ids = [(0,-1)]",
    "a, op_id = 1, input_op_ids = [(0,-1)",
};

START_TEST(rejects)
{
    struct gt_nvtx_op op;

    ck_assert_int_eq(gt_nvtx_parse(bad[_i], &op), -EINVAL);
}
END_TEST

/* Every prefix of a good text, in a block of exactly its size (a sanitizer sees one byte too far).
 */
START_TEST(prefixes)
{
    const char *text = good[0].text;

    for (size_t n = 0; n <= strlen(text); n++) {
        char *cut = malloc(n + 1);
        struct gt_nvtx_op op;

        ck_assert_ptr_nonnull(cut);
        memcpy(cut, text, n);
        cut[n] = 0;
        if (gt_nvtx_parse(cut, &op) == 0) {
            ck_assert_uint_eq(op.key_len, 8);
            if (op.shapes)
                ck_assert_int_eq(op.shapes[op.shapes_len - 1], ']');
        }
        free(cut);
    }
}
END_TEST

START_TEST(long_text)
{
    /* a million fields that all fail late must not take a quadratic time */
    size_t unit = strlen(", seq = 1"), n = 200000;
    char *text = malloc(n * unit + 3);
    struct gt_nvtx_op op;

    ck_assert_ptr_nonnull(text);
    text[0] = 'a';
    for (size_t i = 0; i < n; i++)
        memcpy(text + 1 + i * unit, ", seq = 1", unit);
    strcpy(text + 1 + n * unit, "x");
    ck_assert_int_eq(gt_nvtx_parse(text, &op), -EINVAL);
    free(text);
}
END_TEST

START_TEST(utf8)
{
    static const wchar_t mixed[] = {'a', 0xe9, 0x20ac, 0x1f600, 0};
    static const wchar_t invalid[] = {0xd800, 0xdfff, 0x110000, -1, 'z', 0};
    char out[64];

    ck_assert_ptr_null(gt_nvtx_utf8(out, sizeof(out), NULL));
    ck_assert_str_eq(gt_nvtx_utf8(out, sizeof(out), L""), "");
    ck_assert_str_eq(gt_nvtx_utf8(out, sizeof(out), mixed),
                     "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    ck_assert_str_eq(gt_nvtx_utf8(out, sizeof(out), invalid),
                     "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
}
END_TEST

/* Cut at a character for every size, and nothing written behind it. */
START_TEST(utf8_cut)
{
    static const wchar_t mixed[] = {'a', 0xe9, 0x20ac, 0x1f600, 0};
    static const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};

    for (size_t room = 3; room <= 10; room++) {
        char out[16];

        memset(out, '#', sizeof(out));
        gt_nvtx_utf8(out, room + 1, mixed);
        ck_assert_uint_eq(strlen(out), ends[room]);
        ck_assert_int_eq(out[room + 1], '#');
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("nvtx_text");
    TCase *c = tcase_create("nvtx_text");
    SRunner *r;
    int failed;

    tcase_add_loop_test(c, parses, 0, sizeof(good) / sizeof(*good));
    tcase_add_loop_test(c, rejects, 0, sizeof(bad) / sizeof(*bad));
    tcase_add_test(c, prefixes);
    tcase_add_test(c, long_text);
    tcase_add_test(c, utf8);
    tcase_add_test(c, utf8_cut);
    suite_add_tcase(s, c);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
