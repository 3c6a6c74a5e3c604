/* core/device.c with report/load_device.c: what devices did goes to the place that launched it,
 * from whatever thread; sums over rows, roots and activities agree. */
#include "tests/unit/core_reader.h"
#include <inttypes.h>
#include <pthread.h>
#include "core/device.h"
#include "report/load.h"

#define SOURCE GT_SOURCE_API

static struct gt_model m;

static void count(const char *name, uint64_t start, uint64_t ns, struct gt_origin o)
{
    struct gt_device_activity a = {.name = name,
                                   .source = SOURCE,
                                   .kind = GT_ACTIVITY_KERNEL,
                                   .type = GT_DEVICE_CUDA,
                                   .launch = {.grid = {4, 1, 1}, .block = {32, 1, 1}},
                                   .start_ns = start,
                                   .end_ns = start + ns,
                                   .delay_ns = 7};
    gt_device_count(&a, &o);
}

static void record(void (*fn)(void))
{
    struct gt_err err = {""};
    pid_t pid = fork();
    if (pid == 0) {
        fn();
        gt_core_end();
        _exit(0);
    }
    rd_wait(pid);
    gt_model_init(&m);
    RD_MUST(gt_load_file(&m, rd_session_of(pid), &err) == 0, "%s", err.message);
}

/* The row at the end of a path of labels; the thread does not matter. */
static const struct gt_row *row(const char *path)
{
    char copy[256], *rest = copy, *key;
    int32_t at = -1;
    snprintf(copy, sizeof copy, "%s", path);
    while ((key = strsep(&rest, "/"))) {
        size_t i = 0;
        while (i < m.row_count && (m.rows[i].parent != at ||
                                   strcmp(gt_model_string(&m, m.rows[i].label, NULL), key) != 0))
            i++;
        RD_MUST(i < m.row_count, "no row %s", path);
        at = (int32_t)i;
    }
    return &m.rows[at];
}

/* Device time of the roots = that of the rows of devices; of each row, that of what is below. */
static void check_sums(void)
{
    int64_t roots = 0, devices = 0;
    for (size_t i = 0; i < m.row_count; i++) {
        const struct gt_row *r = &m.rows[i];
        int64_t below = 0;
        devices += r->device == GT_CPU ? 0 : r->self_device_ns;
        roots += r->parent < 0 ? r->device_ns : 0;
        for (size_t k = i + 1; k < m.row_count; k++)
            below += m.rows[k].parent == (int32_t)i && m.rows[k].device == GT_CPU
                         ? m.rows[k].device_ns
                         : 0;
        RD_MUST(r->device_ns == r->self_device_ns + below, "row %zu: %" PRId64, i, r->device_ns);
    }
    ck_assert_int_eq(roots, devices);
}

static void *collector(void *p)
{
    (void)p;
    for (uint32_t id = 1; id <= 20; id++)
        count(id % 2 ? "odd" : "even", id * 100, id, gt_origin_get(SOURCE, id));
    count("whose?", 1, 5, gt_origin_get(SOURCE, 21));
    return NULL;
}

static void across(void)
{
    pthread_t t;
    gt_push(API, "outer");
    for (uint32_t id = 1; id <= 20; id++) {
        gt_push(API, id <= 10 ? "first" : "second");
        struct gt_origin o = gt_origin_here();
        gt_origin_put(SOURCE, id, &o);
        gt_pop(GROUP(API));
    }
    gt_pop(GROUP(API));
    count("outside", 50, 3, gt_origin_here());
    CHILD_CHECK(pthread_create(&t, NULL, collector, NULL) == 0);
    pthread_join(t, NULL);
}

START_TEST(across_threads)
{
    record(across);
    check_sums();
    ck_assert_int_eq(row("outer/first/odd")->count, 5);
    ck_assert_int_eq(row("outer/first/odd")->device_ns, 1 + 3 + 5 + 7 + 9);
    ck_assert_int_eq(row("outer/first/odd")->min_ns, 1);
    ck_assert_int_eq(row("outer/first/odd")->max_ns, 9);
    ck_assert_int_eq(row("outer/second/even")->device_ns, 12 + 14 + 16 + 18 + 20);
    ck_assert_int_eq(row("outer/second/even")->device, GT_CUDA);
    ck_assert_int_eq(row("outer/first")->self_device_ns, 55);
    ck_assert_int_eq(row("outer")->self_device_ns, 0);
    ck_assert_int_eq(row("outer")->device_ns, 210);
    ck_assert_int_eq(row("outside")->parent, -1);
    ck_assert_int_eq(row("whose?")->device_ns, 5);
    ck_assert_int_eq(m.processes[0].lost[GT_LOST_INDEX_unattributed], 1);
    const struct gt_launched *l = &m.launched[row("outer/first/odd")->launched - 1];
    ck_assert_uint_eq(l->grid[0], 4);
    ck_assert_uint_eq(l->block[0], 32);
    ck_assert_int_eq(l->delays, 5);
    ck_assert_int_eq(l->delay_ns, 35);
}
END_TEST

static void sizes(void)
{
    gt_push(API, "launches");
    struct gt_origin o = gt_origin_here();
    for (uint32_t i = 0; i < 1000; i++) {
        struct gt_device_activity a = {.name = "k",
                                       .source = SOURCE,
                                       .kind = GT_ACTIVITY_KERNEL,
                                       .type = GT_DEVICE_CUDA,
                                       .launch = {.grid = {i % 500 + 1, 1, 1}, .block = {1, 1, 1}},
                                       .end_ns = 2,
                                       .delay_ns = -1};
        gt_device_count(&a, &o);
    }
    gt_pop(GROUP(API));
}

START_TEST(sizes_fold)
{
    record(sizes);
    check_sums();
    int64_t rows = 0, calls = 0, folded = 0;
    for (size_t i = 0; i < m.row_count; i++)
        if (m.rows[i].device == GT_CUDA) {
            rows++;
            calls += m.rows[i].count;
            folded += m.rows[i].flags & GT_ROW_FOLDED ? m.rows[i].count : 0;
        }
    ck_assert_int_eq(rows, 65);
    ck_assert_int_eq(calls, 1000);
    ck_assert_int_eq(folded, 1000 - 2 * 64);
    ck_assert_int_eq(row("launches")->device_ns, 2000);
}
END_TEST

#define LAUNCHES 70000u

static void overflow(void)
{
    gt_push(API, "many");
    struct gt_origin o = gt_origin_here();
    for (uint32_t id = 1; id <= LAUNCHES; id++)
        gt_origin_put(SOURCE, id, &o);
    for (uint32_t id = 1; id <= LAUNCHES; id++)
        count("k", id, 1, gt_origin_get(SOURCE, id));
    gt_pop(GROUP(API));
}

START_TEST(more_than_the_table_holds)
{
    record(overflow);
    check_sums();
    ck_assert_int_eq(row("many/k")->count, 65536);
    ck_assert_int_eq(row("k")->count, LAUNCHES - 65536);
    ck_assert_int_eq(m.processes[0].lost[GT_LOST_INDEX_unattributed], LAUNCHES - 65536);
}
END_TEST

static void pausing(void)
{
    gt_mark(API, &(struct gt_attr){.name = "there is a session"});
    gt_pause();
    struct gt_origin o = gt_origin_here();
    gt_resume();
    count("unseen", 1, 1, o);
    count("seen", 1, 1, gt_origin_here());
}

START_TEST(paused)
{
    record(pausing);
    ck_assert_int_eq(row("seen")->count, 1);
    for (size_t i = 0; i < m.row_count; i++)
        ck_assert_str_ne(gt_model_string(&m, m.rows[i].label, NULL), "unseen");
}
END_TEST

static void *counts(void *p)
{
    struct gt_origin o = *(struct gt_origin *)p;
    for (uint32_t i = 0; i < 5000; i++)
        count(i % 3 ? "a" : "b", i, 2, o);
    return NULL;
}

static void many_collectors(void)
{
    pthread_t t[4];
    gt_push(API, "all");
    struct gt_origin o = gt_origin_here();
    for (int i = 0; i < 4; i++)
        CHILD_CHECK(pthread_create(&t[i], NULL, counts, &o) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    gt_pop(GROUP(API));
}

START_TEST(four_at_once)
{
    record(many_collectors);
    check_sums();
    ck_assert_int_eq(row("all/a")->count + row("all/b")->count, 20000);
    ck_assert_int_eq(row("all")->device_ns, 40000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("device");
    TCase *t = rd_case(s, "all");
    tcase_add_test(t, across_threads);
    tcase_add_test(t, sizes_fold);
    tcase_add_test(t, more_than_the_table_holds);
    tcase_add_test(t, paused);
    tcase_add_test(t, four_at_once);
    return rd_run(s);
}
