/* Key averages: what is added up, what stays apart, who is above whom. */
#include "session_builder.h"
#include "report/group.h"
#include "report/load.h"
#include "report/once.h"

static struct gt_model m;
static struct gt_groups g;

static void setup(void)
{
    gt_model_init(&m);
    memset(&g, 0, sizeof g);
    for (uint32_t p = 0; p < 2; p++) {
        gt_model_process(&m)->rank = p;
        for (int t = 0; t < 2; t++)
            gt_model_thread(&m)->process = p;
    }
}

static void teardown(void)
{
    gt_groups_fini(&g);
    gt_model_fini(&m);
}

static int32_t add(const char *key, int32_t parent, uint32_t thread, int64_t count, int64_t total)
{
    struct gt_row *r = gt_model_row(&m);
    r->key = gt_model_textz(&m, key);
    r->parent = parent;
    r->thread = thread;
    r->kind = GT_KIND_RANGE;
    r->count = count;
    r->total_ns = r->self_ns = total;
    r->min_ns = r->max_ns = count ? total / count : 0;
    r->sumsq_ns2 = count ? (double)total * (double)total / (double)count : 0;
    return (int32_t)m.row_count - 1;
}

static void group(unsigned by)
{
    gt_groups_fini(&g);
    gt_model_finish(&m, 0, 0);
    gt_group_rows(&g, &m, by);
}

static const struct gt_avg *avg(const char *key)
{
    for (size_t i = 0; i < g.count; i++)
        if (!strcmp(gt_model_string(&m, g.avgs[i].key, NULL), key))
            return &g.avgs[i];
    ck_abort_msg("no %s", key);
    return NULL;
}

static uint32_t id(const char *key)
{
    return (uint32_t)(avg(key) - g.avgs);
}

START_TEST(links)
{
    int32_t a = add("a", -1, 0, 1, 100), path = add("path", a, 0, 0, 0);
    add("b", path, 0, 2, 10); /* below a: the path never counted */
    int32_t c = add("c", -1, 0, 1, 10);
    add("b", c, 0, 1, 10);
    add("d", c, 0, 1, 10);
    add("d", -1, 1, 1, 10);
    add("a", a, 0, 1, 50); /* below itself */
    group(0);
    ck_assert_uint_eq(g.count, 4);
    ck_assert_int_eq(avg("b")->count, 3);
    ck_assert_uint_eq(avg("a")->children_count, 2);
    ck_assert_uint_eq(g.links[avg("a")->children_first], id("a"));
    ck_assert_uint_eq(g.links[avg("a")->children_first + 1], id("b"));
    ck_assert_uint_eq(avg("b")->parents_count, 2);
    ck_assert_uint_eq(g.links[avg("b")->parents_first], id("a"));
    ck_assert_uint_eq(g.links[avg("b")->parents_first + 1], id("c"));
    ck_assert_int_eq(avg("b")->root, 0);
    ck_assert_int_eq(avg("d")->root, 1);
    ck_assert_uint_eq(avg("d")->parents_count, 1);
    ck_assert_int_eq(avg("a")->total_ns, 150); /* as PyTorch adds them */
    ck_assert_int_eq(avg("d")->threads, 2);
    ck_assert_int_eq(avg("b")->threads, 1);
}
END_TEST

START_TEST(apart)
{
    add("a", -1, 0, 1, 100);
    m.rows[add("a", -1, 0, 1, 10)].flags = GT_ROW_ANNOTATION;
    m.rows[add("a", -1, 0, 1, 10)].flags = GT_ROW_LEGACY;
    m.rows[add("a", -1, 0, 1, 10)].device = GT_CUDA;
    int32_t async = add("a", -1, 0, 1, 10);
    m.rows[async].flags = GT_ROW_ASYNC;
    m.rows[async].kind = GT_KIND_ASYNC;
    m.rows[add("a", -1, 0, 1, 10)].domain = gt_model_textz(&m, "dom");
    group(0);
    ck_assert_uint_eq(g.count, 6);
    avg("dom:a");
    m.rows[add("mark", -1, 0, 4, 0)].kind = GT_KIND_MARK;
    m.rows[add("counter", -1, 0, 4, 0)].kind = GT_KIND_COUNTER;
    group(0);
    ck_assert_uint_eq(g.count, 6);
}
END_TEST

/* What PyTorch would show as one row is one: is_async and the host only tell about the first. */
START_TEST(as_torch)
{
    int32_t async = add("op", -1, 0, 1, 10), sync = add("op", -1, 2, 2, 20);
    m.rows[async].flags = GT_ROW_ASYNC;
    m.rows[async].kind = GT_KIND_ASYNC;
    m.rows[async].source = m.rows[sync].source = GT_SOURCE_TORCH;
    m.processes[0].host = gt_model_textz(&m, "one");
    m.processes[1].host = gt_model_textz(&m, "two");
    group(0);
    ck_assert_uint_eq(g.count, 1);
    ck_assert_uint_eq(g.avgs[0].flags, GT_ROW_ASYNC);
    group(GT_BY_RANK);
    ck_assert_uint_eq(g.count, 2);
    ck_assert_uint_eq(g.avgs[1].flags, GT_ROW_REMOTE); /* not on the host of rank 0 */
    m.processes[0].rank = 5;
    m.processes[1].rank = 0;
    group(GT_BY_RANK);
    ck_assert_uint_eq(g.avgs[0].flags, GT_ROW_ASYNC | GT_ROW_REMOTE);
    ck_assert_uint_eq(g.avgs[1].flags, 0);
    m.rows[async].shapes = GT_TEXT_NO_SHAPES;
    group(GT_BY_SHAPE);
    ck_assert_uint_eq(g.count, 1);
    ck_assert_uint_eq(g.avgs[0].shapes, 0);
}
END_TEST

START_TEST(total)
{
    int32_t a = add("a", -1, 0, 1, 100);
    m.rows[add("b", a, 0, 2, 10)].memory = -5;
    add("c", a, 1, 3, 30);
    m.rows[add("mark", -1, 0, 4, 0)].kind = GT_KIND_MARK;
    group(GT_BY_NOTHING | GT_BY_SHAPE);
    ck_assert_uint_eq(g.count, 1);
    ck_assert_str_eq(gt_model_string(&m, g.avgs[0].key, NULL), "Total");
    ck_assert_int_eq(g.avgs[0].count, 6);
    ck_assert_int_eq(g.avgs[0].total_ns, 140);
    ck_assert_int_eq(g.avgs[0].memory, -5);
    ck_assert_int_eq(g.avgs[0].rank, 0);
    ck_assert_int_eq(g.avgs[0].threads, 2);
    ck_assert_uint_eq(g.link_count, 0);
    m.row_count = 0;
    group(GT_BY_NOTHING);
    ck_assert_uint_eq(g.count, 1);
    ck_assert_int_eq(g.avgs[0].count, 0);
}
END_TEST

/* A stack is there once, whoever names it, and is cut to its innermost frames. */
START_TEST(stacks)
{
    gt_text f[300];
    const char *bad;
    unsigned by;
    uint32_t ids[300];
    for (uint32_t i = 0; i < 300; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        f[i] = gt_model_textz(&m, name);
        ids[i] = gt_stacks_texts(&m, f, i);
        ck_assert_uint_eq(ids[i], i);
    }
    for (uint32_t i = 0; i < 300; i++)
        ck_assert_uint_eq(gt_stacks_texts(&m, f, i), ids[i]);
    ck_assert_uint_eq(m.stack_count, 299);
    ck_assert_uint_eq(gt_stacks_shown(&m, ids[9], 0).count, 9);
    ck_assert_uint_eq(gt_stacks_shown(&m, ids[9], 4).count, 4);
    ck_assert_uint_eq(gt_stacks_shown(&m, 0, 4).count, 0);
    for (int i = 0; i < 300; i++) {
        int32_t r = add("a", -1, 0, 1, 1);
        m.rows[r].stack = ids[i];
    }
    group(0);
    ck_assert_uint_eq(g.count, 1);
    ck_assert_int_eq(gt_group_parse("stack", &by, &bad), 0);
    group(by);
    ck_assert_uint_eq(g.count, 300);
    ck_assert_int_eq(gt_group_parse("stack:3", &by, &bad), 0);
    group(by);
    ck_assert_uint_eq(g.count, 4);
    ck_assert_int_eq(g.avgs[3].count, 297);
    ck_assert_uint_eq(g.avgs[3].stack.count, 3);
}
END_TEST

/* Every way of grouping has the same sums. */
START_TEST(same_sums)
{
    uint32_t random = 5;
    char key[16], shapes[16];
    int64_t count = 0, self = 0;
    gt_text frames[5];
    for (int i = 0; i < 5; i++) {
        snprintf(key, sizeof key, "f%d", i % 3);
        frames[i] = gt_model_textz(&m, key);
    }
    for (int i = 0; i < 3000; i++) {
        random = random * 1664525 + 1013904223;
        snprintf(key, sizeof key, "k%u", (random >> 8) % 40);
        int64_t n = (random >> 16) % 5;
        int32_t r = add(key, -1, (random >> 20) % 4, n, n ? random % 1000 : 0);
        snprintf(shapes, sizeof shapes, "[[%u]]", (random >> 12) % 3);
        m.rows[r].shapes = gt_model_textz(&m, shapes);
        m.rows[r].stack = gt_stacks_texts(&m, frames + random % 3, (random >> 9) % 3);
        count += m.rows[r].count;
        self += m.rows[r].self_ns;
    }
    for (unsigned by = 0; by < 128; by++) {
        int64_t c = 0, s = 0;
        group(by);
        for (size_t i = 0; i < g.count; i++) {
            c += g.avgs[i].count;
            s += g.avgs[i].self_ns;
        }
        ck_assert_int_eq(c, count);
        ck_assert_int_eq(s, self);
        if (by & GT_BY_THREAD && !(by & GT_BY_NOTHING))
            ck_assert_uint_gt(g.count, 40);
    }
    group(0);
    ck_assert_int_eq(g.avgs[0].rank, -1); /* seen on both */
    group(GT_BY_RANK);
    ck_assert_uint_eq(g.count, 80);
    ck_assert_int_ge(g.avgs[0].rank, 0);
}
END_TEST

START_TEST(numbers)
{
    add("a", -1, 0, 1, 10);
    add("a", -1, 1, 3, 90);
    m.rows[0].sumsq_ns2 = 100;
    m.rows[1].sumsq_ns2 = 2700;
    group(0);
    ck_assert_int_eq(g.avgs[0].min_ns, 10);
    ck_assert_int_eq(g.avgs[0].max_ns, 30);
    ck_assert_double_eq_tol(gt_avg_stddev_ns(&g.avgs[0]), 8.660254, 1e-6);
    m.rows[0].sumsq_ns2 = 1e308;
    m.rows[1].sumsq_ns2 = -1e308;
    m.rows[0].total_ns = INT64_MAX;
    m.rows[1].count = INT64_MAX;
    group(0);
    ck_assert_int_eq(g.avgs[0].total_ns, INT64_MAX);
    ck_assert_int_eq(g.avgs[0].count, INT64_MAX);
    ck_assert(gt_avg_stddev_ns(&g.avgs[0]) >= 0);
    add("ProfilerStep#12", -1, 0, 1, 1);
    add("ProfilerStep#x", -1, 0, 1, 1);
    group(0);
    avg("ProfilerStep*");
    avg("ProfilerStep#x");
}
END_TEST

START_TEST(words)
{
    uint32_t *order;
    const char *bad;
    unsigned by;
    add("b", -1, 0, 1, 10);
    add("a", -1, 0, 1, 30);
    add("c", -1, 0, 1, 10);
    group(0);
    ck_assert_int_eq(gt_group_sort(&g, "self_cpu_time_total", &order), 0);
    ck_assert_uint_eq(order[0], 1);
    ck_assert_uint_eq(order[1], 0); /* equal ones as they came */
    free(order);
    ck_assert_int_eq(gt_group_sort(&g, "name", &order), 0);
    ck_assert_uint_eq(order[0], 1);
    free(order);
    ck_assert_int_eq(gt_group_sort(&g, "self_cuda_time_total", &order), 0);
    free(order);
    ck_assert_int_lt(gt_group_sort(&g, "color", &order), 0);
    ck_assert_int_eq(gt_group_parse("shape,rank", &by, &bad), 0);
    ck_assert_uint_eq(by, GT_BY_SHAPE | GT_BY_RANK);
    ck_assert_int_lt(gt_group_parse("shape,col", &by, &bad), 0);
    ck_assert_str_eq(bad, "col");
}
END_TEST

/* a file with p0 and a new process after one with p0 and p1: only the new one is added */
START_TEST(once)
{
    struct gt_model before;
    int32_t top;
    for (uint32_t p = 0; p < 2; p++)
        m.processes[p].pid = 10 + p;
    top = add("a", -1, 0, 1, 10);
    add("b", top, 2, 1, 10);
    gt_model_open(&m)->row = top;
    before = m;
    gt_model_process(&m)->pid = 10;
    gt_model_process(&m)->pid = 12;
    gt_model_thread(&m)->process = 2;
    gt_model_thread(&m)->process = 3;
    gt_model_thread(&m)->process = 2;
    add("a", -1, 4, 1, 10);
    top = add("c", -1, 5, 2, 10);
    add("a", -1, 6, 1, 10);
    add("d", top, 5, 3, 4);
    gt_model_open(&m)->row = top - 1;
    gt_model_open(&m)->row = top + 2;
    ck_assert_uint_eq(gt_once(&m, &before), 1);
    ck_assert_uint_eq(m.process_count, 3);
    ck_assert_int_eq(m.processes[2].pid, 12);
    ck_assert_uint_eq(m.thread_count, 5);
    ck_assert_uint_eq(m.threads[4].process, 2);
    ck_assert_uint_eq(m.row_count, 4);
    ck_assert_str_eq(gt_model_string(&m, m.rows[2].key, NULL), "c");
    ck_assert_int_eq(m.rows[2].parent, -1);
    ck_assert_str_eq(gt_model_string(&m, m.rows[3].key, NULL), "d");
    ck_assert_int_eq(m.rows[3].parent, 2);
    ck_assert_uint_eq(m.rows[3].thread, 4);
    ck_assert_uint_eq(m.open_count, 2);
    ck_assert_int_eq(m.open[1].row, 3);
    before = m;
    gt_model_process(&m)->pid = 13;
    ck_assert_uint_eq(gt_once(&m, &before), 0);
    ck_assert_uint_eq(m.process_count, 4);
    ck_assert_uint_eq(m.row_count, 4);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("group");
    TCase *t = tcase_create("group");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, links);
    tcase_add_test(t, apart);
    tcase_add_test(t, as_torch);
    tcase_add_test(t, total);
    tcase_add_test(t, stacks);
    tcase_add_test(t, same_sums);
    tcase_add_test(t, numbers);
    tcase_add_test(t, words);
    tcase_add_test(t, once);
    suite_add_tcase(s, t);
    return sb_run(s);
}
