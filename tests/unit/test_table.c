/* The table against what PyTorch printed, and the texts in it. */
#include "session_builder.h"
#include <jansson.h>
#include "report/load.h"
#include "report/writer.h"

static struct gt_model m;
/* tests are run from the root of the source tree */
static const char data[] = "tests/data/";

static char *golden(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", data, name);
    return sb_read(path, NULL);
}

static int64_t ns(const json_t *o, const char *field)
{
    return (int64_t)(json_number_value(json_object_get(o, field)) * 1000 + 0.5);
}

/* PyTorch's own averages, put in the place of ours. */
static void averages(struct gt_groups *g, const char *section, int shapes)
{
    json_error_t why;
    json_t *root = json_load_file("tests/data/torch_key_averages.json", 0, &why), *v;
    ck_assert_msg(root != NULL, "%s", why.text);
    const json_t *array = json_object_get(root, section);
    size_t i;
    memset(g, 0, sizeof *g);
    g->model = &m;
    g->count = json_array_size(array);
    g->avgs = calloc(g->count, sizeof *g->avgs);
    json_array_foreach((json_t *)array, i, v)
    {
        struct gt_avg *a = &g->avgs[i];
        char *text = json_dumps(json_object_get(v, "input_shapes"), JSON_ENCODE_ANY);
        a->key = gt_model_textz(&m, json_string_value(json_object_get(v, "key")));
        a->shapes = shapes ? gt_model_textz(&m, text) : 0;
        a->count = json_integer_value(json_object_get(v, "count"));
        a->total_ns = ns(v, "cpu_time_total");
        /* PyTorch adds floats: 4828.459999999997 / 40 falls just short of a tie that exact ns are
         */
        if (2 * a->total_ns % (2 * a->count) == a->count &&
            json_number_value(json_object_get(v, "cpu_time_total")) * 1000 < (double)a->total_ns)
            a->total_ns--;
        a->self_ns = ns(v, "self_cpu_time_total");
        a->memory = json_integer_value(json_object_get(v, "cpu_memory_usage"));
        a->self_memory = json_integer_value(json_object_get(v, "self_cpu_memory_usage"));
        a->flops = json_integer_value(json_object_get(v, "flops"));
        a->rank = a->thread = -1;
        free(text);
    }
    json_decref(root);
}

START_TEST(torch_tables)
{
    static const char *const sections[] = {"key_averages", "by_shape"};
    static const char *const files[] = {"torch_table.txt", "torch_table_shapes.txt"};
    struct gt_write_options o = {.sort_by = "self_cpu_time_total", .row_limit = 12};
    struct gt_groups g;
    struct gt_sink s;
    gt_model_init(&m);
    averages(&g, sections[_i], _i);
    gt_sink_open(&s, -1);
    gt_out_table_groups(&g, &o, &s);
    char *text = gt_sink_take(&s, NULL), *want = golden(files[_i]);
    same(text, want);
    free(text);
    free(want);
    gt_groups_fini(&g);
    gt_model_fini(&m);
}
END_TEST

static struct gt_row *add(const char *key, int32_t parent, uint8_t device, int64_t total,
                          int64_t self, int64_t device_total, int64_t device_self)
{
    struct gt_row *r = gt_model_row(&m);
    r->key = gt_model_textz(&m, key);
    r->parent = parent;
    r->kind = GT_KIND_RANGE;
    r->device = device;
    r->count = 1;
    r->total_ns = total * 1000;
    r->self_ns = self * 1000;
    r->device_ns = device_total * 1000;
    r->self_device_ns = device_self * 1000;
    return r;
}

static void one_process(void)
{
    gt_model_init(&m);
    gt_model_process(&m)->rank = -1;
    gt_model_thread(&m);
}

START_TEST(torch_table_with_a_device)
{
    struct gt_write_options o = {.row_limit = 100, .memory = 1};
    struct gt_sink s;
    one_process();
    add("A", -1, GT_CPU, 100, 50, 507, 7);
    add("B", 0, GT_CPU, 50, 50, 500, 500);
    add("kern", -1, GT_CUDA, 0, 0, 500, 500);
    add("memset", -1, GT_CUDA, 0, 0, 7, 7);
    add("A", -1, GT_CUDA, 0, 0, 510, 510)->flags = GT_ROW_ANNOTATION;
    struct gt_row *r = add("async", -1, GT_CPU, 90, 0, 0, 0);
    r->flags = GT_ROW_ASYNC;
    r->kind = GT_KIND_ASYNC;
    gt_model_finish(&m, 0, 0);
    gt_sink_open(&s, -1);
    gt_out_table(&m, &o, &s);
    char *text = gt_sink_take(&s, NULL), *want = golden("torch_table_device.txt");
    same(text, want);
    free(text);
    free(want);
    gt_model_fini(&m);
}
END_TEST

/* A slot goes from thread to thread: its label says so. Long names leave room for that. */
START_TEST(threads)
{
    char text[GT_THREAD_BYTES], name[401] = "";
    one_process();
    m.threads[0].name = gt_model_textz(&m, "worker");
    m.threads[0].tid = 12;
    m.threads[0].threads = 1;
    gt_text_thread(&m, 0, text);
    ck_assert_str_eq(text, "worker/12");
    m.threads[0].threads = 4;
    gt_text_thread(&m, 0, text);
    ck_assert_str_eq(text, "worker/12 (4 threads)");
    for (int i = 0; i < 200; i++)
        memcpy(name + 2 * i, "\xc3\xa4", 2);
    memmove(name + 1, name, 399);
    name[0] = 'x';
    name[399] = 0;
    m.threads[0].name = gt_model_textz(&m, name);
    gt_text_thread(&m, 0, text);
    ck_assert_int_eq(strlen(text), 179 + strlen("/12 (4 threads)"));
    ck_assert(!strcmp(text + 177, "\xc3\xa4/12 (4 threads)"));
    gt_model_fini(&m);
}
END_TEST

/* What was lost is told with the way out. */
START_TEST(lost)
{
    struct gt_write_options o = {.row_limit = -1};
    struct gt_sink s;
    one_process();
    m.processes[0].lost[GT_LOST_INDEX_memory] = 7;
    gt_sink_open(&s, -1);
    gt_out_table(&m, &o, &s);
    char *text = gt_sink_take(&s, NULL);
    ck_assert_str_eq(text, "7 calls lost: no memory left (GPUTALLY_MEMORY)\n");
    free(text);
    gt_model_fini(&m);
}
END_TEST

START_TEST(texts)
{
    static const struct {
        double us;
        const char *text;
    } times[] = {{0, "0.000us"},    {0.0004, "0.000us"},      {999.9996, "1000.000us"},
                 {1000, "1.000ms"}, {999999.9, "1000.000ms"}, {1e6, "1.000s"}};
    static const struct {
        int64_t bytes;
        const char *text;
    } sizes[] = {{0, "0 B"},
                 {-80, "-80 B"},
                 {1023, "1023 B"},
                 {1024, "1.00 KB"},
                 {-345 * 1024, "-345.00 KB"},
                 {1 << 20, "1.00 MB"},
                 {1 << 30, "1.00 GB"},
                 {1536, "1.50 KB"}};
    char text[64];
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        gt_text_time(text, times[i].us * 1000);
        ck_assert_str_eq(text, times[i].text);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        gt_text_memory(text, sizes[i].bytes);
        ck_assert_str_eq(text, sizes[i].text);
    }
    gt_text_share(text, 1, 3);
    ck_assert_str_eq(text, "33.33%");
    gt_text_share(text, 0, 0);
    ck_assert_str_eq(text, "NaN");
}
END_TEST

/* Names can't break lines or send escapes to a terminal; long ones are cut as PyTorch cuts them. */
START_TEST(names)
{
    static const struct {
        const char *name, *shown;
    } cases[] = {{"a\nb\x1b[31m", "a\\nb\\x1b[31m"},
                 {"\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9"},
                 {"\xc2\x9b"
                  "1m",
                  "\\x9b1m"},
                 {"123456789 123456789 123456789 123456789 123456789 1",
                  "123456789 123456789 123456789 123456789 123456789 1"},
                 {"123456789 123456789 123456789 123456789 123456789 12",
                  "123456789 123456789 123456789 123456789 123456789 12..."},
                 {"123456789 123456789 123456789 123456789 123456789 123456",
                  "123456789 123456789 123456789 123456789 123456789 12..."}};
    struct gt_write_options o = {.row_limit = -1};
    struct gt_sink s;
    one_process();
    add(cases[_i].name, -1, GT_CPU, 1, 1, 0, 0);
    gt_model_finish(&m, 0, 0);
    gt_sink_open(&s, -1);
    gt_out_table(&m, &o, &s);
    char *text = gt_sink_take(&s, NULL), *line = text;
    for (int i = 0; i < 3; i++)
        line = strchr(line, '\n') + 1;
    line += strspn(line, " ");
    size_t n = strlen(cases[_i].shown);
    ck_assert_msg(!strncmp(line, cases[_i].shown, n) && line[n] == ' ', "%s", line);
    free(text);
    gt_model_fini(&m);
}
END_TEST

/* Shapes are a program's text too: cut to 80 as PyTorch cuts them, and harmless. */
START_TEST(hostile_shapes)
{
    struct gt_write_options o = {.row_limit = -1, .group_by = GT_BY_SHAPE};
    char text[201] = "\x1b[31m[";
    struct gt_sink s;
    one_process();
    memset(text + strlen(text), '7', 200 - strlen(text));
    add("a", -1, GT_CPU, 1, 1, 0, 0)->shapes = gt_model_textz(&m, text);
    gt_model_finish(&m, 0, 0);
    gt_sink_open(&s, -1);
    gt_out_table(&m, &o, &s);
    char *table = gt_sink_take(&s, NULL);
    ck_assert_ptr_null(strchr(table, 27));
    char *at = strstr(table, "\\x1b[31m[7");
    ck_assert_ptr_nonnull(at);
    ck_assert_uint_eq(strcspn(at, "\n"), 82);
    ck_assert_uint_eq(strcspn(at, " "), 80);
    free(table);
    gt_model_fini(&m);
}
END_TEST

START_TEST(nothing)
{
    struct gt_write_options o = {.row_limit = -1};
    struct gt_sink s;
    gt_model_init(&m);
    for (size_t i = 0; i < gt_writer_count; i++) {
        gt_sink_open(&s, -1);
        gt_writers[i].write(&m, &o, &s);
        ck_assert_int_eq(s.error, 0);
        gt_sink_close(&s);
    }
    gt_model_fini(&m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("table");
    TCase *t = tcase_create("table");
    tcase_add_loop_test(t, torch_tables, 0, 2);
    tcase_add_test(t, torch_table_with_a_device);
    tcase_add_test(t, threads);
    tcase_add_test(t, lost);
    tcase_add_test(t, texts);
    tcase_add_loop_test(t, names, 0, 6);
    tcase_add_test(t, hostile_shapes);
    tcase_add_test(t, nothing);
    suite_add_tcase(s, t);
    return sb_run(s);
}
