/* core: calls of an API (gt_push_call, gt_pop_call): failures and bytes, below ranges and operators
 * of other sources, out of order, paused, and in a process that is killed. */
#include <signal.h>
#include "tests/unit/core_reader.h"

#define CUDA GT_TAG(GT_SOURCE_CUDA, 0, 0)

static int call(const char *name, uint64_t ticks, uint64_t bytes, int failed)
{
    int level = gt_push_call(CUDA, name);
    gt_test_ticks += ticks;
    gt_pop_call(GROUP(CUDA), bytes, failed);
    return level;
}

static const struct gt_node *node(const char *path)
{
    const struct gt_node *n = rd_find(rd_self(), rd_only(), GT_KIND_RANGE, path);
    RD_MUST(n, "no %s", path);
    return n;
}

static void is(const char *path, uint64_t count, uint64_t failed, uint64_t bytes, uint64_t self)
{
    const struct gt_node *n = node(path);
    RD_MUST(n->count == count && n->failed == failed && n->bytes == bytes && n->self_ticks == self,
            "%s: %lu calls, %lu failed, %lu bytes, %lu ticks", path, n->count, n->failed, n->bytes,
            n->self_ticks);
}

START_TEST(counts)
{
    /* with sanitizers our own frames differ from call to call, and so would the nodes */
    setenv("GPUTALLY_WITH_STACK", "0", 1);
    for (uint64_t i = 0; i < 100; i++)
        ck_assert_int_eq(call("copy", i, i * 8, i % 10 == 0), 0);
    is("copy", 100, 10, 4950 * 8, 4950);
    ck_assert_uint_eq(node("copy")->scope, GT_SCOPE_FUNCTION);
    ck_assert_uint_eq(node("copy")->source, GT_SOURCE_CUDA);
    ck_assert_uint_eq(rd_only()->ring_head, 100);
}
END_TEST

/* Inside ranges, operators and each other. The level is that of calls right below only. */
START_TEST(nesting)
{
    const struct gt_op op = {.name = "op", .token = 7};
    for (int i = 0; i < 20; i++) {
        gt_push(NVTX, "range");
        gt_op_push(&op);
        ck_assert_int_eq(gt_push_call(CUDA, "outer"), 0);
        ck_assert_int_eq(call("inner", 3, 0, 1), 1);
        gt_test_ticks += 2;
        gt_pop_call(GROUP(CUDA), 100, 0);
        gt_op_pop(7);
        gt_pop(GROUP(NVTX));
    }
    is("range/op/outer", 20, 0, 2000, 40);
    is("range/op/outer/inner", 20, 20, 0, 60);
    is("range/op", 20, 0, 0, 0);
    ck_assert_uint_eq(rd_only()->unbalanced + rd_only()->overlapped, 0);
    /* the inner one is part of the outer one, whose stack it shares */
    ck_assert_uint_ne(node("range/op/outer")->stack, 0);
    ck_assert_uint_eq(node("range/op/outer/inner")->stack, 0);
}
END_TEST

/* Over the edges of blocks of frames, and at the very top. */
START_TEST(deep)
{
    for (int i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%c%c", 'a' + i / 20, 'a' + i % 20);
        gt_push(NVTX, name);
        ck_assert_int_eq(call("c", 1, 5, i & 1), 0);
        ck_assert_int_eq(call("c", 1, 5, i & 1), 0);
    }
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(gt_pop(GROUP(NVTX)), 199 - i);
    uint64_t calls = 0, failed = 0, bytes = 0;
    for (uint32_t i = 1; i < rd_only()->node_count; i++) {
        const struct gt_node *n = rd_node(rd_self(), rd_only(), i);
        if (n->source == GT_SOURCE_CUDA)
            calls += n->count, failed += n->failed, bytes += n->bytes;
    }
    ck_assert_uint_eq(calls, 400);
    ck_assert_uint_eq(failed, 200);
    ck_assert_uint_eq(bytes, 2000);
}
END_TEST

/* A range is opened in the call (a callback's) and outlives it. */
START_TEST(out_of_order)
{
    gt_push_call(CUDA, "call");
    gt_test_ticks += 4;
    gt_push(NVTX, "left");
    gt_test_ticks += 5;
    gt_pop_call(GROUP(CUDA), 11, 1);
    gt_pop(GROUP(NVTX));
    is("call", 1, 1, 11, 4);
    is("call/left", 1, 0, 0, 5);
    ck_assert_uint_eq(rd_only()->overlapped, 1);
    gt_pop_call(GROUP(CUDA), 11, 1);
    is("call", 1, 1, 11, 4);
    ck_assert_uint_eq(rd_only()->unbalanced, 1);
}
END_TEST

/* What began before a pause counts in full, what began in it never. */
START_TEST(paused)
{
    gt_push_call(CUDA, "before");
    gt_pause();
    call("in", 1, 1, 1);
    gt_pop_call(GROUP(CUDA), 2, 1);
    gt_push_call(CUDA, "in");
    gt_resume();
    gt_pop_call(GROUP(CUDA), 4, 1);
    call("after", 0, 8, 1);
    is("before", 1, 1, 2, 1);
    is("after", 1, 1, 8, 0);
    ck_assert_ptr_null(rd_find(rd_self(), rd_only(), GT_KIND_RANGE, "in"));
    ck_assert_uint_eq(rd_only()->unbalanced, 0);
}
END_TEST

START_TEST(left_out)
{
    setenv("GPUTALLY_EXCLUDE", "no*", 1);
    for (int i = 0; i < 3; i++) {
        call("nothing", 1, 2, 1);
        call("something", 1, 2, 1);
    }
    is("something", 3, 3, 6, 3);
    ck_assert_uint_eq(rd_only()->excluded, 3);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 3);
}
END_TEST

/* At no instruction of a killed process are there more failed calls than calls, the open one
 * counted: here between the end of one and the beginning of the next, and inside of one. */
START_TEST(killed)
{
    pid_t pid = fork();
    if (!pid) {
        call("c", 5, 3, 1);
        gt_push_call(CUDA, "c");
        kill(getpid(), SIGKILL);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    struct rd v = rd_open(rd_session_of(pid));
    const struct gt_slot *s = rd_slot(v, 0);
    const struct gt_node *n = rd_find(v, s, GT_KIND_RANGE, "c");
    ck_assert_uint_eq(n->count, 1);
    ck_assert_uint_eq(n->failed, 1);
    ck_assert_uint_eq(n->bytes, 3);
    ck_assert_uint_eq(s->depth, 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("core_call");
    TCase *t = rd_case(s, "all");
    tcase_add_test(t, counts);
    tcase_add_test(t, nesting);
    tcase_add_test(t, deep);
    tcase_add_test(t, out_of_order);
    tcase_add_test(t, paused);
    tcase_add_test(t, left_out);
    tcase_add_test(t, killed);
    return rd_run(s);
}
