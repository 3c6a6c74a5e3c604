/* core: INCLUDE and EXCLUDE. A range that is left out is as if it were not there: its time is the
 * range's around it, what it holds stands under the nearest range that is recorded. */
#include "tests/unit/core_reader.h"

static void after(uint64_t ticks)
{
    gt_test_ticks += ticks;
}

static const struct gt_node *find(int kind, const char *path)
{
    return rd_find(rd_self(), rd_only(), kind, path);
}

#define COUNTS(path, calls, self, total)                                                           \
    do {                                                                                           \
        const struct gt_node *n_ = find(GT_KIND_RANGE, path);                                      \
        ck_assert_msg(n_ != NULL, "no range %s", path);                                            \
        ck_assert_msg(n_->count == (calls) && n_->self_ticks == (self) &&                          \
                          n_->total_ticks == (total),                                              \
                      "%s: %lu calls, self %lu, total %lu", path, n_->count, n_->self_ticks,       \
                      n_->total_ticks);                                                            \
    } while (0)

START_TEST(transparent)
{
    setenv("GPUTALLY_EXCLUDE", "noise*,un?it", 1);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(gt_push(API, "noise outside"), 0);
        ck_assert_int_eq(gt_push(API, "a"), 1);
        after(1);
        ck_assert_int_eq(gt_push(API, "noise"), 2);
        after(10);
        ck_assert_int_eq(gt_push(API, "b"), 3);
        after(100);
        ck_assert_int_eq(gt_push(API, "unfit"), 4);
        after(1000);
        ck_assert_int_eq(gt_pop(GROUP(API)), 4);
        ck_assert_int_eq(gt_pop(GROUP(API)), 3);
        after(10000);
        ck_assert_int_eq(gt_pop(GROUP(API)), 2);
        ck_assert_int_eq(gt_pop(GROUP(API)), 1);
        after(100000);
        ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    }
    COUNTS("a", 5, 5 * 10011, 5 * 11111);
    COUNTS("a/b", 5, 5 * 1100, 5 * 1100);
    ck_assert_uint_eq(rd_only()->node_count, 2 + 2);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 10);
    ck_assert_uint_eq(rd_only()->excluded, 15);
    ck_assert_uint_eq(rd_only()->silent | rd_only()->unbalanced | rd_only()->overlapped, 0);
}
END_TEST

/* The label of the views is what is matched; include first, exclude takes away from it. */
START_TEST(labels)
{
    setenv("GPUTALLY_INCLUDE", "blas:*,step", 1);
    setenv("GPUTALLY_EXCLUDE", "*:tiny,blas", 1);
    gt_tag blas = GT_TAG(GT_SOURCE_NVTX, gt_domain("blas"), 0);
    const struct {
        gt_tag tag;
        const char *name;
        int recorded;
    } cases[] = {{blas, "gemm", 1}, {blas, "tiny", 0}, {API, "tiny", 0}, {API, "step", 1},
                 {blas, "step", 1}, {API, "gemm", 0},  {API, "blas", 0}, {API, "steps", 0},
                 {blas, "", 1},     {API, "", 0},      {API, NULL, 0}};
    size_t all = sizeof cases / sizeof *cases, want = 0;
    for (size_t i = 0; i < all; i++) {
        uint64_t before = i ? rd_only()->excluded : 0;
        gt_push(cases[i].tag, cases[i].name);
        gt_pop(GROUP(cases[i].tag));
        ck_assert_msg(rd_only()->excluded - before == (uint64_t)!cases[i].recorded, "case %zu", i);
        want += (size_t)cases[i].recorded;
    }
    ck_assert_uint_eq(rd_calls(rd_self(), 0), want);
}
END_TEST

START_TEST(every_kind)
{
    const struct gt_attr no = {.name = "no", .has_value = 1, .value = 3},
                         yes = {.name = "yes", .has_value = 1, .value = 3};
    setenv("GPUTALLY_EXCLUDE", "no", 1);
    gt_mark(API, &no);
    gt_mark(API, &yes);
    gt_counter(API, &no);
    gt_counter(API, &yes);
    ck_assert_uint_eq(gt_start(API, &no), 0);
    uint64_t id = gt_start(API, &yes);
    ck_assert_uint_ne(id, 0);
    ck_assert_int_eq(gt_end(id), 0);
    gt_push_attr(API, &(struct gt_attr){.name = "no", .token = 7, .bytes = 5});
    ck_assert_int_eq(gt_pop_token(GROUP(API), 7), 0);
    ck_assert_int_eq(gt_op_push(&(struct gt_op){.name = "no", .token = 9}), 0);
    gt_op_pop(9);
    gt_span(API, &no, 10, 20);
    gt_span(API, &(struct gt_attr){.name = "span"}, 10, 20);
    gt_op_push(&(struct gt_op){.name = "op", .token = 9});
    gt_op_pop(9);
    ck_assert_uint_eq(rd_only()->excluded, 6);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 5);
    ck_assert_uint_eq(rd_only()->unbalanced, 0);
    ck_assert_uint_eq(rd_only()->depth, 0);
}
END_TEST

/* Far more names than a thread remembers: they take no memory, each call is counted, and the ones
 * that are recorded are not folded because of them. */
START_TEST(hundred_thousand)
{
    char name[64];
    setenv("GPUTALLY_EXCLUDE", "tmp *", 1);
    setenv("GPUTALLY_MEMORY", "2M", 1);
    gt_push(API, "around");
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 100000; i++) {
            snprintf(name, sizeof name, "tmp %d", i);
            gt_push(API, name);
            gt_push(API, "inside");
            after(1);
            gt_pop(GROUP(API));
            gt_pop(GROUP(API));
        }
    gt_pop(GROUP(API));
    COUNTS("around", 1, 0, 200000);
    COUNTS("around/inside", 200000, 200000, 200000);
    ck_assert_uint_eq(rd_only()->excluded, 200000);
    ck_assert_uint_eq(rd_only()->folded, 0);
    ck_assert_uint_eq(rd_header(rd_self())->memory_full, 0);
    ck_assert_uint_eq(rd_only()->node_count, 2 + 2);
}
END_TEST

/* A name longer than a thread remembers, and one whose end differs only there. */
START_TEST(long_names)
{
    static char a[2000];
    setenv("GPUTALLY_EXCLUDE", "*no", 1);
    memset(a, 'x', sizeof a - 3);
    strcpy(a + sizeof a - 3, "no");
    gt_push(API, a);
    gt_pop(GROUP(API));
    a[sizeof a - 2] = 'k';
    gt_push(API, a);
    gt_pop(GROUP(API));
    ck_assert_uint_eq(rd_only()->excluded, 1);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
}
END_TEST

/* Memory outside of operators has a name too. */
START_TEST(memory)
{
    setenv("GPUTALLY_EXCLUDE", "?memory]", 1);
    gt_op_memory(64, GT_MEMORY_CPU);
    ck_assert_uint_eq(rd_only()->excluded, 1);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 0);
}
END_TEST

/* What is left out leaves from below others, and is open when its thread ends. */
START_TEST(overlapped)
{
    setenv("GPUTALLY_EXCLUDE", "no", 1);
    gt_push(API, "a");
    after(1);
    gt_push(NVTX, "no");
    after(2);
    gt_push(API, "b");
    after(4);
    gt_pop(GROUP(NVTX));
    after(8);
    gt_pop(GROUP(API));
    gt_pop(GROUP(API));
    COUNTS("a", 1, 3, 15);
    COUNTS("a/b", 1, 12, 12);
    ck_assert_uint_eq(rd_only()->overlapped | rd_only()->unbalanced, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("core_filter");
    TCase *t = rd_case(s, "all");
    tcase_add_test(t, transparent);
    tcase_add_test(t, labels);
    tcase_add_test(t, every_kind);
    tcase_add_test(t, hundred_thousand);
    tcase_add_test(t, long_names);
    tcase_add_test(t, memory);
    tcase_add_test(t, overlapped);
    return rd_run(s);
}
