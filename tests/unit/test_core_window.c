/* core: GPUTALLY_WINDOW. What is outside never counts, and the window shuts for everybody at one
 * moment, whoever notices when. */
#include "core/window.h"
#include <pthread.h>
#include "tests/unit/core_reader.h"

static void after(uint64_t ticks)
{
    gt_test_ticks += ticks;
}

static void window(const char *value)
{
    setenv("GPUTALLY_WINDOW", value, 1);
}

static const struct gt_node *find_in(uint32_t slot, const char *path)
{
    return rd_find(rd_self(), rd_slot(rd_self(), slot), GT_KIND_RANGE, path);
}

#define COUNTS_IN(slot, path, calls, self, total)                                                  \
    do {                                                                                           \
        const struct gt_node *n_ = find_in(slot, path);                                            \
        ck_assert_msg(n_ != NULL, "no range %s", path);                                            \
        ck_assert_msg(n_->count == (calls) && n_->self_ticks == (self) &&                          \
                          n_->total_ticks == (total),                                              \
                      "%s: %lu calls, self %lu, total %lu", path, n_->count, n_->self_ticks,       \
                      n_->total_ticks);                                                            \
    } while (0)
#define COUNTS(path, calls, self, total) COUNTS_IN(0, path, calls, self, total)

static void push(const char *name)
{
    gt_push(API, name);
}

static void pop(uint64_t ticks)
{
    after(ticks);
    ck_assert_int_ge(gt_pop(GROUP(API)), 0);
}

/* step{op, op{inner}}, 111 ticks */
static void step(void)
{
    push("step");
    push("op");
    pop(1);
    push("op");
    push("inner");
    pop(10);
    pop(0);
    pop(100);
}

static void everything_closed(void)
{
    const struct gt_slot *s = rd_only();
    ck_assert_uint_eq(s->depth, 0);
    ck_assert_uint_eq(s->unbalanced | s->clamped | s->overlapped | s->left_open, 0);
}

/* ---- range ---- */

START_TEST(three_steps)
{
    window("range=step,skip=2,count=3");
    for (int i = 0; i < 10; i++) {
        push("between");
        pop(5);
        step();
        gt_mark(API, &(struct gt_attr){.name = "mark"});
    }
    COUNTS("step", 3, 300, 333);
    COUNTS("step/op", 6, 3, 33);
    COUNTS("step/op/inner", 3, 30, 30);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 12);
    ck_assert_uint_eq(rd_only()->node_count, 2 + 3);
    ck_assert_uint_eq(rd_only()->cut, 0);
    ck_assert_uint_eq(rd_header(rd_self())->window_shuts, 3);
    ck_assert_uint_eq(rd_header(rd_self())->window_ticks, 333);
    ck_assert_uint_eq(rd_header(rd_self())->window_since, 0);
    everything_closed();
}
END_TEST

/* The steps are what a glob of labels matches; another domain's are others. */
START_TEST(labels)
{
    window("range=a,b:s*p,count=2");
    gt_tag other = GT_TAG(GT_SOURCE_NVTX, gt_domain("a,b"), 0);
    for (int i = 0; i < 4; i++) {
        step();
        gt_push(other, "snap");
        step();
        after(7);
        gt_pop(GROUP(other));
    }
    COUNTS("snap", 2, 14, 2 * 118);
    COUNTS("snap/step", 2, 200, 222);
    everything_closed();
}
END_TEST

/* One step inside another is part of it, also of one that does not count. */
START_TEST(nested)
{
    window("range=step,skip=1,count=1");
    for (int i = 0; i < 3; i++) {
        push("around");
        push("step");
        step();
        pop(3);
        pop(9);
    }
    COUNTS("step", 1, 3, 114);
    COUNTS("step/step", 1, 100, 111);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 5);
    everything_closed();
}
END_TEST

/* A range that is open when the step ends counts up to then, and its pop still matches. */
START_TEST(over_the_edge)
{
    window("range=step,count=2");
    for (int i = 0; i < 3; i++) {
        gt_push(API, "step");
        after(1);
        gt_push(NVTX, "x");
        gt_push(NVTX, "y");
        after(2);
        gt_pop(GROUP(API));
        after(1000);
        gt_push(API, "outside");
        after(1000);
        ck_assert_int_eq(gt_pop(GROUP(NVTX)), 1);
        ck_assert_int_eq(gt_pop(GROUP(API)), 0);
        ck_assert_int_eq(gt_pop(GROUP(NVTX)), 0);
        ck_assert_int_eq(gt_pop(GROUP(NVTX)), -1);
    }
    COUNTS("step", 2, 2, 6);
    COUNTS("step/x", 2, 0, 4);
    COUNTS("step/x/y", 2, 4, 4);
    ck_assert_uint_eq(rd_only()->cut, 4);
    ck_assert_uint_eq(rd_only()->unbalanced, 0); /* outside nothing counts */
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 6);
}
END_TEST

/* ... also where the thread makes no call before the window opens again: then what comes stands
 * below none of them. */
START_TEST(missed_edges)
{
    window("range=step,count=200");
    push("step");
    gt_push(NVTX, "long");
    after(4);
    gt_pop(GROUP(API));
    for (int i = 0; i < 150; i++) {
        after(1000);
        step();
    }
    ck_assert_int_eq(gt_pop(GROUP(NVTX)), 0);
    COUNTS("step/long", 1, 4, 4);
    COUNTS("step", 151, 15000, 4 + 150 * 111);
    ck_assert_uint_eq(rd_only()->cut, 1);
    ck_assert_ptr_null(find_in(0, "step/long/step"));
}
END_TEST

/* An operator of PyTorch may be the step. */
START_TEST(operator_step)
{
    window("range=ProfilerStep#*,skip=1,count=2");
    char name[32];
    for (unsigned i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "ProfilerStep#%u", i);
        gt_op_push(&(struct gt_op){.name = name, .token = 1, .scope = GT_SCOPE_USER});
        for (unsigned k = 0; k < 3; k++) {
            gt_op_push(&(struct gt_op){.name = "aten::mm", .token = 2});
            gt_op_memory(64, GT_MEMORY_CPU);
            after(5);
            gt_op_pop(2);
        }
        gt_op_memory(8, GT_MEMORY_CPU);
        gt_op_pop(1);
    }
    COUNTS("ProfilerStep#1", 1, 0, 15);
    COUNTS("ProfilerStep#2", 1, 0, 15);
    COUNTS("ProfilerStep#2/aten::mm", 3, 15, 15);
    const struct gt_node *n = find_in(0, "ProfilerStep#2");
    ck_assert_uint_ne(n->op, 0);
    const struct gt_op_stats *s = rd_at(rd_self(), n->op, sizeof *s);
    ck_assert_int_eq(s->memory[GT_MEMORY_CPU], 3 * 64 + 8);
    ck_assert_int_eq(s->self_memory[GT_MEMORY_CPU], 8);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 8);
    everything_closed();
}
END_TEST

/* The steps of every thread are numbered together, and while one is open all threads record. */
static pthread_barrier_t meet;
static void *other_thread(void *unused)
{
    push("before"); /* open when the window opens */
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet); /* now it is open */
    push("beside");
    push("step"); /* number 2: does not count, what is in it does */
    push("deep");
    pop(1);
    pop(0);
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet); /* now it is shut again */
    push("late");
    pop(1);
    pop(1);
    pop(0);
    return unused;
}

START_TEST(threads)
{
    pthread_t t;
    window("range=step,count=1");
    pthread_barrier_init(&meet, NULL, 2);
    pthread_create(&t, NULL, other_thread, NULL);
    pthread_barrier_wait(&meet);
    push("step");
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet);
    pop(10);
    pthread_barrier_wait(&meet);
    pthread_join(t, NULL);
    const struct gt_slot *s = rd_slot(rd_self(), 0);
    uint32_t its = rd_find(rd_self(), s, GT_KIND_RANGE, "beside") ? 0 : 1;
    COUNTS_IN(1 - its, "step", 1, 11, 11);
    COUNTS_IN(its, "beside", 1, 10, 11);
    COUNTS_IN(its, "beside/deep", 1, 1, 1);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 3);
    ck_assert_uint_eq(rd_slot(rd_self(), its)->cut, 1);
    ck_assert_uint_eq(rd_slot(rd_self(), its)->unbalanced, 0);
}
END_TEST

static void *leave_open(void *unused)
{
    push("step");
    push("open");
    after(3);
    return unused;
}

/* The thread that holds the window open ends. */
START_TEST(thread_end)
{
    pthread_t t;
    window("range=step");
    push("outside");
    pthread_create(&t, NULL, leave_open, NULL);
    pthread_join(t, NULL);
    ck_assert_int_eq(gt_window_open, 0);
    ck_assert_uint_eq(rd_header(rd_self())->window_shuts, 1);
    push("outside");
    pop(0);
    pop(0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 2);
}
END_TEST

/* The child goes on in the step, and its window shuts with it; so does the parent's. */
START_TEST(forked)
{
    window("range=step,skip=1,count=2");
    step();
    push("step");
    after(1);
    pid_t pid = fork();
    if (!pid) {
        push("child");
        after(5);
        CHILD_CHECK(gt_pop(GROUP(API)) == 1);
        CHILD_CHECK(gt_window_open == 1);
        CHILD_CHECK(gt_pop(GROUP(API)) == 0);
        CHILD_CHECK(gt_window_open == 0);
        push("not");
        gt_pop(GROUP(API));
        step(); /* number 2 */
        step();
        CHILD_CHECK(rd_calls(rd_self(), 0) == 1 + 4);
        CHILD_CHECK(rd_only()->inherited == 1 && rd_only()->unbalanced == 0);
        CHILD_CHECK(rd_find(rd_self(), rd_only(), GT_KIND_RANGE, "step/child")->count == 1);
        _exit(0);
    }
    rd_wait(pid);
    push("parent");
    pop(1);
    pop(1);
    push("not");
    pop(0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 2);
    COUNTS("step", 1, 2, 3);
    everything_closed();
}
END_TEST

/* ---- time ---- */

START_TEST(by_time)
{
    window("delay=2,duration=3"); /* a tick is a ns */
    const uint64_t s = 1000000000;
    gt_test_ticks = 0;
    push("all");                   /* opened before */
    for (int i = 0; i < 10; i++) { /* 0.5, 1.5 ... */
        after(s / 2);
        push("second");
        push("inner");
        pop(s / 4);
        pop(s / 4);
    }
    pop(0);
    /* began at 2.5 and 3.5; at 4.5 too: ends with the window, 5.0 */
    COUNTS("second", 3, 3 * s / 4, 6 * s / 4);
    COUNTS("second/inner", 3, 3 * s / 4, 3 * s / 4);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 6);
    ck_assert_uint_eq(rd_header(rd_self())->window_shuts, 1);
    everything_closed();
}
END_TEST

/* Nobody calls at the moment: what is open then ends then all the same. */
START_TEST(by_time_late)
{
    window("duration=3");
    const uint64_t s = 1000000000;
    gt_test_ticks = 0;
    push("a");
    after(s);
    push("b");
    uint64_t id = gt_start(API, &(struct gt_attr){.name = "async"});
    after(7 * s);
    push("c");
    pop(s);
    pop(s);
    pop(s);
    ck_assert_int_eq(gt_end(id), 0);
    COUNTS("a", 1, s, 3 * s);
    COUNTS("a/b", 1, 2 * s, 2 * s);
    const struct gt_node *n = rd_find(rd_self(), rd_only(), GT_KIND_ASYNC, "async");
    ck_assert_uint_eq(n->total_ticks, 2 * s);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 3);
    ck_assert_uint_eq(rd_only()->cut, 3);
    everything_closed();
}
END_TEST

START_TEST(by_time_only_delay)
{
    window("delay=1");
    push("a");
    after(999999999);
    push("b");
    after(1);
    push("c");
    pop(4);
    pop(4);
    pop(4);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
    COUNTS("c", 1, 4, 4);
    everything_closed();
}
END_TEST

/* ---- paused, torch ---- */

START_TEST(paused)
{
    window("paused");
    step();
    gt_pause(); /* the program's own */
    step();
    gt_resume();
    push("a");
    gt_pause();
    push("b");
    gt_resume();
    pop(1);
    pop(1);
    COUNTS("a", 1, 2, 2);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
    everything_closed();
}
END_TEST

START_TEST(paused_resumed_first)
{
    window("paused");
    gt_core_init();
    gt_resume(); /* nothing was recorded yet, no session */
    step();
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 4);
    everything_closed();
}
END_TEST

START_TEST(torch)
{
    window("torch");
    step();
    for (int i = 0; i < 2; i++) {
        gt_window_torch(1);
        gt_window_torch(1);
        push("open");
        step();
        after(2);
        gt_window_torch(0);
        after(1000);
        push("outside");
        pop(1);
        pop(1);
    }
    COUNTS("open", 2, 4, 2 * 113);
    COUNTS("open/step", 2, 200, 222);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 10);
    ck_assert_uint_eq(rd_only()->cut, 2);
    everything_closed();
}
END_TEST

START_TEST(torch_not_asked)
{
    gt_window_torch(0);
    step();
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 4);
}
END_TEST

/* The fast way is open whenever the window is: a pop there is no slow one. */
START_TEST(fast_way)
{
    window("range=step");
    step();
    ck_assert_uint_eq(gt_fork.go, 0);
    push("step");
    ck_assert_uint_ne(gt_fork.go, 0);
    push("op");
    ck_assert_uint_eq(gt_fork.go, gt_self->door);
    gt_pause();
    ck_assert_uint_eq(gt_fork.go, 0);
    gt_resume();
    ck_assert_uint_eq(gt_fork.go, gt_self->door);
    pop(1);
    pop(1);
    ck_assert_uint_eq(gt_fork.go, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("core_window");
    TCase *t = rd_case(s, "all");
    tcase_add_test(t, three_steps);
    tcase_add_test(t, labels);
    tcase_add_test(t, nested);
    tcase_add_test(t, over_the_edge);
    tcase_add_test(t, missed_edges);
    tcase_add_test(t, operator_step);
    tcase_add_test(t, threads);
    tcase_add_test(t, thread_end);
    tcase_add_test(t, forked);
    tcase_add_test(t, by_time);
    tcase_add_test(t, by_time_late);
    tcase_add_test(t, by_time_only_delay);
    tcase_add_test(t, paused);
    tcase_add_test(t, paused_resumed_first);
    tcase_add_test(t, torch);
    tcase_add_test(t, torch_not_asked);
    tcase_add_test(t, fast_way);
    return rd_run(s);
}
