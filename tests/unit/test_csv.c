/* CSV: a reader that follows RFC 4180 gets every key back. And the tree writer. */
#include "nasty.h"
#include "report/load.h"
#include "report/writer.h"

static struct sb b;
static struct gt_model m;
static struct gt_err e;

static void setup(void)
{
    sb_folder();
    sb_init(&b, 8 << 20);
    gt_model_init(&m);
}

static void teardown(void)
{
    gt_model_fini(&m);
    sb_free(&b);
    sb_folder_remove();
}

static char *write_as(const char *format, struct gt_write_options o)
{
    struct gt_sink s;
    gt_sink_open(&s, -1);
    gt_writer_find(format, strlen(format))->write(&m, &o, &s);
    return gt_sink_take(&s, NULL);
}

/* Reads one field into out; returns what ended it: ',' '\n' or 0. */
static int field(const char **p, char *out)
{
    if (**p == '"') {
        for (++*p; **p; ++*p) {
            if (**p == '"' && *++*p != '"')
                break;
            *out++ = **p;
        }
    } else {
        while (**p && **p != ',' && **p != '\r')
            *out++ = *(*p)++;
    }
    *out = 0;
    int end = *(*p)++;
    if (end == '\r') {
        ck_assert_int_eq(*(*p)++, '\n');
        end = '\n';
    }
    return end;
}

START_TEST(fields)
{
    struct gt_groups g;
    uint32_t *order;
    nasty_session(&b);
    sb_save(&b, "s.session");
    ck_assert_int_eq(gt_load_file(&m, "s.session", &e), 0);
    char *text = write_as("csv", (struct gt_write_options){.row_limit = -1});
    char *value = malloc(1 << 20);
    const char *p = text;
    gt_group_rows(&g, &m, 0);
    ck_assert_int_eq(gt_group_sort(&g, NULL, &order), 0);
    for (size_t row = 0; row <= g.count; row++) {
        int columns = 0, end;
        do {
            end = field(&p, value);
            if (row && !columns)
                ck_assert_str_eq(value, gt_model_string(&m, g.avgs[order[row - 1]].key, NULL));
            if (row && columns == 1)
                ck_assert_int_eq(atoll(value), g.avgs[order[row - 1]].count);
            columns++;
        } while (end == ',');
        ck_assert_int_eq(end, '\n');
        ck_assert_int_eq(columns, 36);
    }
    ck_assert_int_eq(*p, 0);
    free(order);
    free(value);
    free(text);
    gt_groups_fini(&g);
}
END_TEST

START_TEST(tree)
{
    struct gt_slot *s = sb_slot(&b, "main", 16);
    uint32_t a = sb_node(&b, s, 0, "a"), c = sb_node(&b, s, a, "small"),
             d = sb_node(&b, s, a, "large");
    sb_call(&b, s, a, 100000, 50000);
    sb_call(&b, s, c, 10000, 10000);
    sb_call(&b, s, d, 40000, 40000);
    sb_start(&b, s, "async", 1000);
    s = sb_slot(&b, "worker", 16);
    sb_call(&b, s, sb_node(&b, s, 0, "w"), 2000000, 2000000);
    sb_save(&b, "s.session");
    ck_assert_int_eq(gt_load_file(&m, "s.session", &e), 0);
    char *text = write_as("tree", (struct gt_write_options){0});
    same(text, "       Total          Self    # of Calls  Name\n"
               "process 4711 /opt/some folder/app, thread slot 0 main\n"
               "     1.000ms       0.000us             1  async (async)\n"
               "   100.000us      50.000us             1  a\n"
               "    40.000us      40.000us             1    large\n"
               "    10.000us      10.000us             1    small\n"
               "process 4711 /opt/some folder/app, thread slot 1 worker\n"
               "     2.000ms       2.000ms             1  w\n");
    free(text);
}
END_TEST

START_TEST(deep_tree)
{
    struct gt_slot *s = sb_slot(&b, "main", 10001);
    uint32_t n = 0;
    for (int i = 0; i < 10000; i++) {
        n = sb_node(&b, s, n, "deep");
        sb_call(&b, s, n, 10000 - (uint64_t)i, 1);
    }
    sb_save(&b, "s.session");
    ck_assert_int_eq(gt_load_file(&m, "s.session", &e), 0);
    char *text = write_as("tree", (struct gt_write_options){0});
    ck_assert_ptr_nonnull(strstr(text, "[9999] deep\n"));
    ck_assert_uint_lt(strlen(text), 2000000);
    free(text);
    text = write_as("table", (struct gt_write_options){.row_limit = -1});
    /* the one key below itself: totals add up as in PyTorch */
    ck_assert_ptr_nonnull(strstr(text, "Self CPU time total: 10.000us"));
    ck_assert_ptr_nonnull(strstr(text, "50.005ms"));
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("csv");
    TCase *t = tcase_create("csv");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, fields);
    tcase_add_test(t, tree);
    tcase_add_test(t, deep_tree);
    suite_add_tcase(s, t);
    return sb_run(s);
}
