/* Rows without stacks, and rows below their frames: no call is lost or counted twice. */
#include <math.h>
#include "core/config.h"
#include "core/layout.h"
#include "report/arrange.h"
#include "report/group.h"
#include "report/writer.h"
#include "session_builder.h"

static struct gt_model m;

static void setup(void)
{
    gt_model_init(&m);
    gt_model_process(&m);
    gt_model_thread(&m);
    gt_model_thread(&m)->slot = 1;
}

static void teardown(void)
{
    gt_model_fini(&m);
}

static uint32_t python(const char *function, uint32_t line)
{
    struct gt_stack_frame f = {.kind = GT_STACK_IS_PYTHON,
                               .function = gt_model_textz(&m, function),
                               .file = gt_model_textz(&m, "a.py"),
                               .line = line,
                               .entry = 1};
    return gt_stacks_frame(&m, &f);
}

/* A range of one call. `stack`: "f1 g2", outermost first: function and line; "" none. */
static int32_t range(int32_t parent, const char *key, const char *stack, int64_t total)
{
    uint32_t frames[8];
    size_t n = 0;
    for (const char *p = stack + strlen(stack); p > stack;) {
        while (p > stack && p[-1] != ' ')
            p--;
        frames[n++] = python((char[2]){*p, 0}, (uint32_t)atoi(p + 1));
        if (p > stack)
            p--;
    }
    uint32_t id = gt_stacks_add(&m, frames, n, NULL, 0);
    struct gt_row *r = gt_model_row(&m);
    r->parent = parent;
    r->key = gt_model_textz(&m, key);
    r->kind = GT_KIND_RANGE;
    r->source = GT_SOURCE_NVTX;
    r->stack = id;
    r->count = 1;
    r->self_ns = r->total_ns = r->min_ns = r->max_ns = total;
    r->sumsq_ns2 = (double)total * (double)total;
    if (parent >= 0)
        m.rows[parent].self_ns -= total;
    return (int32_t)m.row_count - 1;
}

static char *written(void (*write)(const struct gt_model *, const struct gt_write_options *,
                                   struct gt_sink *),
                     unsigned by)
{
    struct gt_write_options o = {.row_limit = -1, .group_by = by};
    struct gt_sink s;
    gt_sink_open(&s, -1);
    write(&m, &o, &s);
    return gt_sink_take(&s, NULL);
}

static void check(void (*write)(const struct gt_model *, const struct gt_write_options *,
                                struct gt_sink *),
                  unsigned by, const char *want)
{
    char *got = written(write, by);
    same(got, want);
    free(got);
}

/* main (m) pushes step, calls train (t), whose operators run at several lines. */
static void program(void)
{
    int32_t step = range(-1, "step", "m1", 100000);
    int32_t a = range(step, "op", "m2 t5", 10000);
    range(a, "kernel", "m2 t5", 3000);
    range(step, "op", "m2 t6", 20000);
    range(step, "op", "m2 t6 h7", 30000);
    range(step, "plain", "", 5000);
    gt_model_finish(&m, 0, 0);
    gt_stacks_show(&m, GT_STACK_AUTO);
}

START_TEST(folded)
{
    program();
    check(gt_out_folded, 0, "step 35\nstep;op 57\nstep;op;kernel 3\nstep;plain 5\n");
    /* step began at line 1 of m, and called on from line 2 */
    check(gt_out_folded, GT_BY_STACK,
          "a.py(1):_m;step 35\na.py(1):_m;step;a.py(2):_m;a.py(5):_t;op 7\n"
          "a.py(1):_m;step;a.py(2):_m;a.py(5):_t;op;kernel 3\n"
          "a.py(1):_m;step;a.py(2):_m;a.py(6):_t;op 20\n"
          "a.py(1):_m;step;a.py(2):_m;a.py(6):_t;a.py(7):_h;op 30\na.py(1):_m;step;plain 5\n");
    check(gt_out_folded, GT_BY_STACK | 1 << 16,
          "a.py(1):_m;step 35\na.py(1):_m;step;a.py(5):_t;op 7\n"
          "a.py(1):_m;step;a.py(5):_t;op;kernel 3\na.py(1):_m;step;a.py(6):_t;op 20\n"
          "a.py(1):_m;step;a.py(7):_h;op 30\na.py(1):_m;step;plain 5\n");
}
END_TEST

START_TEST(tree)
{
    program();
    check(gt_out_tree, 0,
          "       Total          Self    # of Calls  Name\n"
          "process 0 , thread slot 0 \n"
          "   100.000us      35.000us             1  step\n"
          "    60.000us      57.000us             3    op\n"
          "     3.000us       3.000us             1      kernel\n"
          "     5.000us       5.000us             1    plain\n");
    check(gt_out_tree, GT_BY_STACK,
          "       Total          Self    # of Calls  Name\n"
          "process 0 , thread slot 0 \n"
          "   100.000us                              a.py(1): m\n"
          "   100.000us      35.000us             1    step\n"
          "    60.000us                                  a.py(2): m\n"
          "    50.000us                                    a.py(6): t\n"
          "    30.000us                                      a.py(7): h\n"
          "    30.000us      30.000us             1            op\n"
          "    20.000us      20.000us             1          op\n"
          "    10.000us                                    a.py(5): t\n"
          "    10.000us       7.000us             1          op\n"
          "     3.000us       3.000us             1            kernel\n"
          "     5.000us       5.000us             1      plain\n");
}
END_TEST

/* A column of its own for the device's time, by which those stand that have none of the CPU's. */
START_TEST(device)
{
    int32_t call = range(-1, "launch", "", 7000);
    static const struct {
        const char *key;
        int64_t ns;
    } kernels[] = {{"small", 1000}, {"large", 30000}};
    for (size_t i = 0; i < 2; i++) {
        struct gt_row *r = &m.rows[range(call, kernels[i].key, "", 0)];
        r->device = GT_CUDA;
        r->device_ns = r->self_device_ns = kernels[i].ns;
        m.rows[call].device_ns += kernels[i].ns;
    }
    range(-1, "idle", "", 9000);
    gt_model_finish(&m, 0, 0);
    check(gt_out_tree, 0,
          "       Total          Self  Device total    # of Calls  Name\n"
          "process 0 , thread slot 0 \n"
          "     9.000us       9.000us                           1  idle\n"
          "     7.000us       7.000us      31.000us             1  launch\n"
          "                                30.000us             1    large [CUDA]\n"
          "                                 1.000us             1    small [CUDA]\n");
}
END_TEST

/* What forms of places show of a model is what they show of one that never had stacks. */
START_TEST(as_without)
{
    char *before[5];
    program();
    for (size_t w = 0, n = 0; w < gt_writer_count; w++)
        if (gt_writers[w].bit != GT_FORMAT_JSON && n < 5 && strncmp(gt_writers[w].name, "c", 1))
            before[n++] = written(gt_writers[w].write, 0);
    teardown();
    setup();
    int32_t step = range(-1, "step", "", 100000);
    int32_t op = range(step, "op", "", 60000);
    range(op, "kernel", "", 3000);
    range(step, "plain", "", 5000);
    m.rows[op].count = 3;
    m.rows[op].min_ns = 10000;
    m.rows[op].max_ns = 30000;
    m.rows[op].sumsq_ns2 = 14e8;
    gt_model_finish(&m, 0, 0);
    for (size_t w = 0, n = 0; w < gt_writer_count; w++)
        if (gt_writers[w].bit != GT_FORMAT_JSON && n < 5 && strncmp(gt_writers[w].name, "c", 1)) {
            check(gt_writers[w].write, 0, before[n]);
            free(before[n++]);
        }
}
END_TEST

/* Everything that keeps two places apart keeps them apart; nothing else does. */
START_TEST(identity)
{
    struct gt_model room;
    range(-1, "a", "m1", 10);
    size_t base = m.row_count;
    for (int i = 0; i < 14; i++)
        gt_model_launched(&m)->grid[2] = i == 13;
    for (int i = 0; i < 14; i++) {
        struct gt_row *r = &m.rows[range(-1, "a", "m2", 10)];
        gt_text *texts[] = {&r->domain, &r->shapes, &r->overload};
        if (i < 3)
            *texts[i] = gt_model_textz(&m, "x");
        uint8_t *bytes[] = {&r->source, &r->kind, &r->scope, &r->device};
        if (i >= 3 && i < 7)
            *bytes[i - 3] = i == 3 ? GT_SOURCE_TORCH : 2;
        r->category = i == 7;
        r->thread = i == 8;
        r->launched = i == 11 ? 14 : i == 12 ? 1 : 0; /* 1: as if nothing were known */
        r->flags = i == 9 ? GT_ROW_FOLDED : i == 10 ? GT_ROW_ANNOTATION : i == 13 ? GT_ROW_TORN : 0;
    }
    struct gt_open *o = gt_model_open(&m);
    o->row = (int32_t)m.row_count - 1;
    o->since_ns = 7;
    m.rows[0].values = (struct gt_values){1, 5, 5, 5, 5};
    m.rows[m.row_count - 1].values = (struct gt_values){2, 3, 1, 2, 2};
    const struct gt_model *v = gt_arrange(&room, &m, 0);
    ck_assert_ptr_eq(v, &room);
    ck_assert_uint_eq(v->row_count, base + 12);
    ck_assert_int_eq(v->rows[0].count, 3);
    ck_assert_uint_eq(v->rows[0].flags, GT_ROW_TORN);
    ck_assert_int_eq(v->rows[0].values.count, 3);
    ck_assert_double_eq(v->rows[0].values.min, 1);
    ck_assert_int_eq(v->open[0].row, 0);
    ck_assert_int_eq(v->open[0].since_ns, 7);
    gt_arrange_fini(&room);
    for (size_t i = 0; i < m.row_count; i++)
        m.rows[i].stack = 0;
    ck_assert_ptr_eq(gt_arrange(&room, &m, 0), &m);
    gt_arrange_fini(&room);
}
END_TEST

struct sums {
    int64_t count, failed, self, roots, device, flops, memory;
    double squares;
};

static struct sums sums_of(const struct gt_model *v)
{
    struct sums s = {0};
    for (size_t i = 0; i < v->row_count; i++) {
        const struct gt_row *r = &v->rows[i];
        ck_assert_int_lt(r->parent, (int32_t)i);
        s.count += r->count;
        s.failed += r->failed;
        s.self += r->self_ns;
        s.roots += r->parent < 0 ? r->total_ns : 0;
        s.device += r->self_device_ns;
        s.flops += r->flops;
        s.memory += r->self_memory;
        s.squares += r->sumsq_ns2;
        if (r->flags & GT_ROW_FRAME)
            ck_assert(r->count == 0 && r->self_ns == 0);
    }
    return s;
}

/* Random trees: sums stay, self times add up to the roots, what a row has below it is its total,
 * and averages are the same whether they are made before or after. */
START_TEST(sums)
{
    static const unsigned ways[] = {0, GT_BY_STACK, GT_BY_STACK | 1 << 16, GT_BY_STACK | 2 << 16};
    static const char *const stacks[] = {"",      "m1",    "m1 t2",    "m1 t3",   "m1 t2 h4",
                                         "x1 y2", "m2 t2", "m1 m1 m1", "m1 m1 t2"};
    uint32_t random = (uint32_t)_i * 77 + 1;
    for (int i = 0; i < 400; i++) {
        char key[8];
        random = random * 1664525 + 1013904223;
        int32_t parent = i < 5 ? -1 : (int32_t)((random >> 8) % (unsigned)i) - 1;
        int64_t most = parent >= 0 ? m.rows[parent].self_ns / 2 : 1000000;
        random = random * 1664525 + 1013904223;
        snprintf(key, sizeof key, "k%u", (random >> 10) % 3);
        int32_t at = range(parent, key, stacks[(random >> 16) % 9], most);
        m.rows[at].thread = parent >= 0 ? m.rows[parent].thread : (random >> 20) % 2;
        m.rows[at].flops = (random >> 8) % 100;
        m.rows[at].failed = random >> 31;
        m.rows[at].self_memory = (int64_t)(random >> 8) - 5000;
        m.rows[at].self_device_ns = random >> 24;
    }
    gt_model_finish(&m, 0, 0);
    gt_stacks_show(&m, GT_STACK_AUTO);
    struct sums want = sums_of(&m);
    ck_assert_int_eq(want.self, want.roots);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct gt_model room;
        const struct gt_model *v = gt_arrange(&room, &m, ways[w]);
        struct sums got = sums_of(v);
        ck_assert(fabs(got.squares - want.squares) <= want.squares * 1e-12);
        got.squares = want.squares;
        ck_assert_mem_eq(&got, &want, sizeof got);
        int64_t *below = calloc(v->row_count, sizeof *below);
        for (size_t i = v->row_count; i-- > 0;) {
            ck_assert_int_eq(v->rows[i].self_ns + below[i], v->rows[i].total_ns);
            if (v->rows[i].parent >= 0) {
                below[v->rows[i].parent] += v->rows[i].total_ns;
                ck_assert_uint_eq(v->rows[i].thread, v->rows[v->rows[i].parent].thread);
            }
        }
        free(below);
        for (size_t i = 0; i < v->row_count; i++)
            for (size_t k = 0; k < i; k++)
                ck_assert(v->rows[i].parent != v->rows[k].parent ||
                          v->rows[i].thread != v->rows[k].thread ||
                          v->rows[i].label != v->rows[k].label);
        struct gt_groups a, b;
        gt_group_rows(&a, &m, GT_BY_THREAD);
        gt_group_rows(&b, v, GT_BY_THREAD);
        ck_assert_uint_eq(a.count, b.count);
        ck_assert_uint_eq(a.link_count, b.link_count);
        for (size_t i = 0; i < a.count; i++) {
            ck_assert_int_eq(a.avgs[i].total_ns, b.avgs[i].total_ns);
            ck_assert_int_eq(a.avgs[i].min_ns, b.avgs[i].min_ns);
            ck_assert_int_eq(a.avgs[i].max_ns, b.avgs[i].max_ns);
            ck_assert_int_eq(a.avgs[i].count, b.avgs[i].count);
        }
        gt_groups_fini(&a);
        gt_groups_fini(&b);
        gt_arrange_fini(&room);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("arrange");
    TCase *t = tcase_create("arrange");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, folded);
    tcase_add_test(t, tree);
    tcase_add_test(t, device);
    tcase_add_test(t, as_without);
    tcase_add_test(t, identity);
    tcase_add_loop_test(t, sums, 0, 8);
    suite_add_tcase(s, t);
    return sb_run(s);
}
