/* core: the ring of the latest events. */
#include "tests/unit/core_reader.h"

static const struct gt_record *ring(void)
{
    const struct gt_slot *s = rd_only();
    ck_assert_uint_ne(s->ring, 0);
    return rd_at(rd_self(), s->ring, s->ring_records * sizeof(struct gt_record));
}

/* Record number i since the beginning; it must still be there. */
static struct gt_record record(uint64_t i)
{
    const struct gt_slot *s = rd_only();
    RD_MUST(i < s->ring_head && i + s->ring_records >= s->ring_head, "record %lu is gone", i);
    return ring()[i % s->ring_records];
}

static unsigned kind(struct gt_record r)
{
    return r.kind_node >> 28;
}

static const char *name(struct gt_record r)
{
    return rd_text(rd_self(), rd_node(rd_self(), rd_only(), GT_RECORD_NODE(r.kind_node))->key);
}

static void call(const char *n, uint64_t ticks)
{
    gt_push(API, n);
    gt_test_ticks += ticks;
    gt_pop(GROUP(API));
}

START_TEST(wraps)
{
    setenv("GPUTALLY_RING", "64", 1);
    for (uint64_t i = 0; i < 64 * 5 + 17; i++) {
        call(i & 1 ? "odd" : "even", i);
        uint64_t from = i < 64 ? 0 : i - 63;
        RD_MUST(rd_only()->ring_head == i + 1, "head %lu", rd_only()->ring_head);
        for (uint64_t k = from; k <= i; k++) {
            struct gt_record r = record(k);
            RD_MUST(r.dur == k && kind(r) == GT_RING_RANGE &&
                        strcmp(name(r), k & 1 ? "odd" : "even") == 0,
                    "record %lu after %lu", k, i);
        }
    }
    ck_assert_uint_eq(rd_only()->ring_records, 64);
    ck_assert_uint_eq(rd_only()->seq & 1, 0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 64 * 5 + 17);
}
END_TEST

/* Both clocks are read again when the ring wraps: a killed program has its second point there. */
START_TEST(wrap_refreshes_clock)
{
    setenv("GPUTALLY_RING", "8", 1);
    for (int i = 0; i < 7; i++)
        call("a", 10);
    ck_assert_uint_eq(rd_only()->last.ticks, rd_header(rd_self())->start.ticks);
    call("a", 10);
    ck_assert_uint_eq(rd_only()->last.ticks, gt_test_ticks);
    ck_assert_uint_eq(rd_only()->last.mono_ns, gt_test_ticks);
}
END_TEST

/* In the order of their ends, the inner one first. */
START_TEST(order)
{
    struct gt_attr m = {.name = "mark"};
    gt_push(API, "outer");
    gt_test_ticks += 5;
    uint64_t id = gt_start(API, &(struct gt_attr){.name = "async"});
    gt_mark(API, &m);
    gt_test_ticks += 6;
    call("inner", 7);
    ck_assert_int_eq(gt_end(id), 0);
    gt_pop(GROUP(API));
    ck_assert_uint_eq(rd_only()->ring_head, 4);
    struct gt_record r[4] = {record(0), record(1), record(2), record(3)};
    const char *names[] = {"mark", "inner", "async", "outer"};
    unsigned kinds[] = {GT_RING_MARK, GT_RING_RANGE, GT_RING_ASYNC, GT_RING_RANGE};
    uint64_t t0[] = {1005, 1011, 1005, 1000}, dur[] = {0, 7, 13, 18};
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(name(r[i]), names[i]);
        ck_assert_uint_eq(kind(r[i]), kinds[i]);
        ck_assert_uint_eq(r[i].t0, t0[i]);
        ck_assert_uint_eq(r[i].dur, dur[i]);
    }
}
END_TEST

START_TEST(long_durations)
{
    static const uint64_t durations[] = {0,
                                         INT32_MAX,
                                         (uint64_t)INT32_MAX + 1,
                                         UINT32_MAX - 1,
                                         UINT32_MAX,
                                         (uint64_t)1 << 32,
                                         (uint64_t)1 << 33,
                                         ((uint64_t)1 << 62) + 1,
                                         1,
                                         UINT32_MAX - 2,
                                         UINT32_MAX,
                                         2};
    enum { N = sizeof durations / sizeof *durations };
    setenv("GPUTALLY_RING", "16", 1); /* an extension comes to lie at both ends of it */
    call("first", 1);
    for (int round = 0; round < 7; round++) {
        uint64_t at[N];
        for (int i = 0; i < N; i++) {
            at[i] = rd_only()->ring_head;
            call("long", durations[i]);
        }
        for (int i = N - 8; i < N; i++) {
            struct gt_record r = record(at[i]);
            ck_assert_uint_eq(kind(r), GT_RING_RANGE);
            if (durations[i] >= GT_RING_ESCAPE) {
                struct gt_record x = record(at[i] + 1);
                ck_assert_uint_eq(r.dur, GT_RING_ESCAPE);
                ck_assert_uint_eq(kind(x), GT_RING_EXTENSION);
                ck_assert_uint_eq(x.t0, durations[i]);
                ck_assert_uint_eq(GT_RECORD_NODE(x.kind_node), GT_RECORD_NODE(r.kind_node));
            } else {
                ck_assert_uint_eq(r.dur, durations[i]);
            }
            ck_assert_uint_eq(rd_only()->ring_head - at[i] <= 16, 1);
        }
        call("shift", 1);
    }
    rd_calls(rd_self(), 0);
    ck_assert_uint_eq(rd_only()->clamped, 0);
}
END_TEST

/* What is counted as 0 is 0 here too, not 2^64 minus something. */
START_TEST(negative_durations)
{
    gt_push(API, "a");
    gt_test_ticks -= 100;
    gt_pop(GROUP(API));
    uint64_t id = gt_start(API, &(struct gt_attr){.name = "b"});
    gt_test_ticks -= 100;
    gt_end(id);
    ck_assert_uint_eq(rd_only()->ring_head, 2);
    ck_assert_uint_eq(record(0).dur, 0);
    ck_assert_uint_eq(record(1).dur, 0);
    ck_assert_uint_eq(rd_only()->clamped, 2);
}
END_TEST

START_TEST(none)
{
    setenv("GPUTALLY_RING", "0", 1);
    for (int i = 0; i < 10000; i++)
        call("a", i == 5000 ? (uint64_t)1 << 40 : 3);
    ck_assert_uint_eq(rd_only()->ring, 0);
    ck_assert_uint_eq(rd_only()->ring_records, 0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 10000);
    ck_assert_uint_gt(rd_only()->last.ticks, rd_header(rd_self())->start.ticks);
}
END_TEST

START_TEST(tiny)
{
    setenv("GPUTALLY_RING", _i ? "2" : "1", 1);
    for (int i = 0; i < 100; i++)
        call("a", i % 7 == 0 ? (uint64_t)1 << 33 : 3);
    ck_assert_uint_eq(rd_only()->ring_records, _i ? 2 : 1);
    ck_assert_uint_eq(rd_only()->ring_head, 100 + 15);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 100);
    ck_assert_uint_eq(record(114).dur, 3);
}
END_TEST

/* A number that is no power of two is refused by the configuration: the default rules. */
START_TEST(no_power_of_two)
{
    setenv("GPUTALLY_RING", "100", 1);
    setenv("GPUTALLY_LOG", "0", 1);
    call("a", 1);
    ck_assert_uint_eq(rd_only()->ring_records, 4096);
    ck_assert_uint_eq(rd_only()->ring_head, 1);
    ck_assert_msg(strstr(gt_config.warning, "RING"), "%s", gt_config.warning);
}
END_TEST

/* Rings are only nice to have: with little memory the tree comes first. */
START_TEST(no_room)
{
    setenv("GPUTALLY_MEMORY", "256K", 1);
    setenv("GPUTALLY_RING", "1048576", 1);
    for (int i = 0; i < 5000; i++)
        call("a", 3);
    ck_assert_uint_eq(rd_only()->ring, 0);
    ck_assert_uint_eq(rd_header(rd_self())->memory_full, 0); /* nothing was lost for want of it */
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 5000);
}
END_TEST

START_TEST(silent_leaves_nothing)
{
    gt_pause();
    call("a", 1);
    gt_resume();
    ck_assert_uint_eq(rd_only()->ring_head, 0);
    call("b", 1);
    ck_assert_uint_eq(rd_only()->ring_head, 1);
    ck_assert_str_eq(name(record(0)), "b");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("core_ring");
    TCase *t = rd_case(s, "all");
    tcase_add_test(t, wraps);
    tcase_add_test(t, wrap_refreshes_clock);
    tcase_add_test(t, order);
    tcase_add_test(t, long_durations);
    tcase_add_test(t, negative_durations);
    tcase_add_test(t, none);
    tcase_add_loop_test(t, tiny, 0, 2);
    tcase_add_test(t, no_power_of_two);
    tcase_add_test(t, no_room);
    tcase_add_test(t, silent_leaves_nothing);
    return rd_run(s);
}
