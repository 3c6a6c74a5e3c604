/* TVM's form: reading whatever comes without a crash, and the tables' order. The comparison with
 * TVM itself is in tests/e2e/test_tvm.py. */
#include <errno.h>
#include "nasty.h"
#include "report/load.h"
#include "report/tvm_order.h"
#include "report/writer.h"

static struct gt_err e;

static const char sample[] =
    "{\"calls\":[{\"Name\":{\"string\":\"a \\\"b\\\" \\\\ \\n\"},\"Duration (us)\":"
    "{\"microseconds\":123.5},\"Percent\":{\"percent\":61.75},\"Device\":{\"string\":\"cpu0\"},"
    "\"Count\":{\"count\":2},\"IPC\":{\"ratio\":1.2345}},{\"Name\":{\"string\":\"x\"},\"Count\":3,"
    "\"Duration (us)\":{\"microseconds\":5e1},\"T\":\"bare\"}],\"device_metrics\":{\"cpu0\":"
    "{\"Name\":{\"string\":\"Total\"},\"Count\":{\"count\":1}}},\"configuration\":{\"threads\":"
    "{\"count\":2},\"Executor\":{\"string\":\"graph\"}}}";

/* As TVM writes it: nothing escaped. */
static const char unescaped[] =
    "{\"calls\":[{\"Name\":{\"string\":\"say \"hi\" C:\\new\n\"},\"Duration (us)\":"
    "{\"microseconds\":1.00000000000000000}},{\"Name\":{\"string\":\"x\"}\"},\"Duration (us)\":"
    "{\"microseconds\":2.00000000000000000}}],\"device_metrics\":{},\"configuration\":{\"what\":"
    "{\"string\":\"\"\"}}}";

static int load(struct gt_model *m, const char *text, size_t bytes)
{
    /* of its own size: a sanitizer sees the first byte behind it */
    char *copy = malloc(bytes ? bytes : 1);
    struct gt_input in = {.path = "in", .data = (unsigned char *)copy, .bytes = bytes, .fd = -1};
    memcpy(copy, text, bytes);
    e.message[0] = 0;
    gt_model_init(m);
    int rc = gt_load_json(m, &in, &e);
    free(copy);
    return rc;
}

static char *write_as(const struct gt_model *m, const char *format)
{
    struct gt_write_options o = {.row_limit = -1};
    struct gt_sink s;
    gt_sink_open(&s, -1);
    gt_writer_find(format, strlen(format))->write(m, &o, &s);
    return gt_sink_take(&s, NULL);
}

START_TEST(reads)
{
    struct gt_model m;
    ck_assert_msg(load(&m, sample, sizeof sample - 1) == 0, "%s", e.message);
    ck_assert_uint_eq(m.row_count, 2);
    ck_assert_str_eq(gt_model_string(&m, m.rows[0].key, NULL), "a \"b\" \\ \n");
    ck_assert_int_eq(m.rows[0].count, 2);
    ck_assert_int_eq(m.rows[0].self_ns, 123500);
    ck_assert_uint_eq(m.rows[0].metrics.count, 6);
    ck_assert_int_eq(m.rows[1].count, 3);
    ck_assert_int_eq(m.rows[1].self_ns, 50000);
    ck_assert_uint_eq(m.device_count, 1);
    ck_assert_uint_eq(m.processes[0].settings.count, 2);
    gt_model_fini(&m);
    ck_assert_msg(load(&m, unescaped, sizeof unescaped - 1) == 0, "%s", e.message);
    ck_assert_uint_eq(m.row_count, 2);
    ck_assert_str_eq(gt_model_string(&m, m.rows[0].key, NULL), "say \"hi\" C:\\new\n");
    ck_assert_str_eq(gt_model_string(&m, m.rows[1].key, NULL), "x\"}");
    gt_model_fini(&m);
}
END_TEST

/* What can be loaded can be written, and what was written loads and is written the same. */
static void round_trip(const char *text, size_t bytes)
{
    static const char *const formats[] = {"table",   "csv",       "tree", "folded",
                                          "tvm-csv", "tvm-table", "tvm",  "json"};
    struct gt_model m, again;
    if (load(&m, text, bytes)) {
        ck_assert_msg(!strncmp(e.message, "in: ", 4), "%s", e.message);
        gt_model_fini(&m);
        return;
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char *out = write_as(&m, formats[i]);
        if (i >= 6) {
            ck_assert_msg(load(&again, out, strlen(out)) == 0, "%s\n%s", e.message, out);
            char *twice = write_as(&again, formats[i]);
            ck_assert_str_eq(twice, out);
            free(twice);
            gt_model_fini(&again);
        }
        free(out);
    }
    gt_model_fini(&m);
}

START_TEST(cut_anywhere)
{
    struct gt_model m;
    for (size_t n = 0; n < sizeof sample - 1; n++) {
        ck_assert_msg(load(&m, sample, n) == -ENODATA, "read %zu bytes as a whole report", n);
        gt_model_fini(&m);
    }
    for (size_t n = 0; n < sizeof unescaped - 1; n++) {
        ck_assert_msg(load(&m, unescaped, n) == -ENODATA, "read %zu bytes as a whole report", n);
        gt_model_fini(&m);
    }
}
END_TEST

static uint32_t state;
static uint32_t next(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * below >> 32);
}

START_TEST(mutated)
{
    static const char *const pieces[] = {
        "\"",   "}",       "{",     "]",           "[",        ",",
        ":",    "\\",      "\\u12", "\\ud83d",     "\x01",     "\xc2\x9b",
        "\xff", "1e308",   "-",     "null",        "\"}",      "\"},\"",
        "\n",   "\"a\":1", "[[[[[", "{\"count\":", "\xe2\x82", "9223372036854775807"};
    char text[2048];
    state = (uint32_t)_i + 1;
    for (int round = 0; round < 400; round++) {
        const char *from = round % 2 ? unescaped : sample;
        size_t n = strlen(from);
        memcpy(text, from, n);
        for (uint32_t k = next(4) + 1; k; k--) {
            const char *piece = pieces[next(sizeof pieces / sizeof *pieces)];
            size_t at = next((uint32_t)n), len = strlen(piece), gone = next(3) ? next(12) : 0;
            gone = gone > n - at ? n - at : gone;
            memmove(text + at + len, text + at + gone, n - at - gone);
            memcpy(text + at, piece, len);
            n = n - gone + len;
        }
        round_trip(text, n);
    }
}
END_TEST

START_TEST(our_rows)
{
    struct sb b;
    struct gt_model m;
    sb_folder();
    sb_init(&b, 8 << 20);
    nasty_session(&b);
    sb_save(&b, "s.session");
    gt_model_init(&m);
    ck_assert_int_eq(gt_load_file(&m, "s.session", &e), 0);
    char *text = write_as(&m, "tvm");
    ck_assert_ptr_nonnull(strstr(text, "\"\\\\x01\""));
    ck_assert_ptr_nonnull(strstr(text, "\"Failed\":{\"count\":1}"));
    ck_assert_ptr_null(strstr(text, "\\u"));
    ck_assert_ptr_null(strstr(text, ":nan"));
    ck_assert_ptr_null(strstr(text, ":inf"));
    round_trip(text, strlen(text));
    free(text);
    gt_model_fini(&m);
    sb_free(&b);
    sb_folder_remove();
}
END_TEST

START_TEST(empty_model)
{
    struct gt_model m;
    gt_model_init(&m);
    char *text = write_as(&m, "tvm"), *csv = write_as(&m, "tvm-csv"),
         *folded = write_as(&m, "folded"), *table = write_as(&m, "tvm-table");
    ck_assert_str_eq(text, "{\"calls\":[],\n\"device_metrics\":{},\n\"configuration\":{}}\n");
    ck_assert_str_eq(csv, "\n");
    ck_assert_str_eq(folded, "");
    ck_assert_str_eq(table, "Name        Duration (us)  Percent  Device  Count  Argument Shapes  \n"
                            "----------                                                          \n"
                            "Sum                                                                 \n"
                            "\nConfiguration\n-------------\n");
    free(text);
    free(csv);
    free(folded);
    free(table);
    gt_model_fini(&m);
}
END_TEST

/* Sorted, and a permutation, also where the parts are as uneven as can be. */
START_TEST(sorts)
{
    enum { MOST = 3000 };
    static double by[MOST];
    static uint32_t items[MOST], seen[MOST];
    state = (uint32_t)_i;
    for (int round = 0; round < 60; round++) {
        size_t n = next(MOST);
        for (size_t i = 0; i < n; i++) {
            by[i] = _i == 0     ? next(5)
                    : _i == 1   ? (double)i
                    : _i == 2   ? (i % 2 ? (double)i : -(double)i)
                    : i < n / 2 ? (double)i
                                : (double)(n - i);
            items[i] = (uint32_t)i;
        }
        memset(seen, 0, sizeof seen);
        gt_tvm_sort(items, n, by);
        for (size_t i = 0; i < n; i++) {
            ck_assert_uint_eq(seen[items[i]]++, 0);
            ck_assert(!i || by[items[i - 1]] >= by[items[i]]);
        }
    }
}
END_TEST

/* First order of a libstdc++ map of n0 … n13: seen there. */
START_TEST(maps)
{
    static const uint32_t thirteen[] = {10, 9, 7, 11, 6, 5, 8, 4, 3, 12, 2, 1, 0};
    static const uint32_t fourteen[] = {0, 1, 12, 3, 4, 8, 5, 2, 6, 11, 7, 9, 13, 10};
    char names[14][8];
    uint32_t order[14];
    struct gt_tvm_map map;
    gt_tvm_map_init(&map);
    for (uint32_t i = 0; i < 14; i++) {
        snprintf(names[i], sizeof names[i], "n%u", i);
        ck_assert_uint_eq(gt_tvm_map_put(&map, names[i], strlen(names[i])), i);
        ck_assert_uint_eq(gt_tvm_map_put(&map, "n0", 2), 0);
        if (i == 12) {
            gt_tvm_map_order(&map, order);
            ck_assert_mem_eq(order, thirteen, sizeof thirteen);
        }
    }
    gt_tvm_map_order(&map, order);
    ck_assert_mem_eq(order, fourteen, sizeof fourteen);
    gt_tvm_map_fini(&map);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tvm");
    TCase *t = tcase_create("tvm");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, reads);
    tcase_add_test(t, cut_anywhere);
    tcase_add_loop_test(t, mutated, 0, 8);
    tcase_add_test(t, our_rows);
    tcase_add_test(t, empty_model);
    tcase_add_loop_test(t, sorts, 0, 4);
    tcase_add_test(t, maps);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
