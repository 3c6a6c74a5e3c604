/* core/op_forward.c and what op.c does with it: backward operators have the stack of the forward
 * one that made their node. Python's frames are made up: the walk is ours. In forked children,
 * since a process has one session. */
#include "core/op_forward.h"
#include <pthread.h>
#include "tests/unit/core_reader.h"

/* ---- a stack made up ---- */

/* The lines of the frames, outermost first; 0 ends it. */
static __thread uint32_t lines[8];
static __thread unsigned walks;

static uint32_t walk(void *state, struct gt_trie *trie, int *truncated)
{
    uint32_t id = GT_TRIE_ROOT;
    (void)state, (void)truncated;
    walks++;
    for (const uint32_t *l = lines; *l; l++)
        id = gt_trie_child(trie, id, GT_TRIE_PYTHON_PC(77, *l));
    return id;
}

#define AT(...)                                                                                    \
    do {                                                                                           \
        const uint32_t at_[8] = {__VA_ARGS__};                                                     \
        memcpy(lines, at_, sizeof lines);                                                          \
    } while (0)

/* The lines of the innermost open operator's stack, read as a reader does: of what is published. */
static const char *stack(void)
{
    static __thread char text[256], part[16], whole[256];
    const struct gt_slot *slot = gt_self->slot;
    const struct gt_node *node = gt_self->cur->node;
    CHILD_CHECK(!node->stack || !node->python);
    text[0] = 0;
    for (uint32_t id = node->python; id >= GT_TRIE_FIRST;) {
        const struct gt_trie_chunk *c = gt_session_at(slot->stacks);
        CHILD_CHECK(id < slot->stack_count);
        while (id - c->first >= c->capacity)
            c = gt_session_at(c->next);
        const struct gt_trie_node *n = &c->nodes[id - c->first];
        snprintf(part, sizeof part, "%u ", GT_TRIE_LINE(n->pc));
        CHILD_CHECK(GT_TRIE_CODE(n->pc) == 77);
        snprintf(whole, sizeof whole, "%s%s", part, text);
        strcpy(text, whole);
        id = n->parent;
    }
    return text;
}
#define STACK(text) CHILD_CHECK(strcmp(stack(), text) == 0)

static void open_op(uint8_t scope, const char *name, uint64_t token, uint64_t thread,
                    int64_t sequence)
{
    const struct gt_op op = {
        .name = name, .token = token, .thread = thread, .sequence = sequence, .scope = scope};
    CHILD_CHECK(gt_op_push(&op) == 0);
}
static void forward(uint64_t token, uint64_t thread, int64_t sequence)
{
    open_op(GT_SCOPE_FUNCTION, "forward", token, thread, sequence);
}
static void backward(uint64_t token, uint64_t thread, int64_t sequence)
{
    open_op(GT_SCOPE_BACKWARD, "backward", token, thread, sequence);
}
static void plain(uint64_t token)
{
    open_op(GT_SCOPE_FUNCTION, "plain", token, 0, -1);
}

/* Runs fn in a process of its own. */
static void in_child(void (*fn)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        atomic_store(&gt_python_walk, walk);
        fn();
        gt_core_end();
        _exit(0);
    }
    rd_wait(pid);
}

/* ---- one thread ---- */

static void do_nodes(void)
{
    AT(1, 2, 3);
    forward(1, 1, 10);
    STACK("1 2 3 ");
    gt_op_pop(1);
    AT(1, 2, 4);
    forward(1, 1, 11);
    gt_op_pop(1);
    AT(1, 9);
    walks = 0;
    backward(2, 1, 10);
    STACK("1 2 3 ");
    plain(3); /* what it calls has it too */
    STACK("1 2 3 ");
    gt_op_pop(3);
    gt_op_pop(2);
    backward(2, 1, 11);
    STACK("1 2 4 ");
    gt_op_pop(2);
    CHILD_CHECK(walks == 0);
    plain(4); /* what comes after has not */
    STACK("1 9 ");
    gt_op_pop(4);
    plain(4);
    backward(2, 1, 10); /* the engine's own, around it, neither */
    gt_op_pop(2);
    plain(5);
    STACK("1 9 ");
    gt_op_pop(5);
    gt_op_pop(4);
}
START_TEST(nodes)
{
    in_child(do_nodes);
}
END_TEST

static void do_last(void)
{
    AT(1, 2);
    forward(1, 1, 10); /* one that makes no node */
    gt_op_pop(1);
    AT(1, 3);
    forward(1, 1, 10);
    AT(1, 3, 4);
    forward(2, 1, 10); /* the one inside makes it */
    gt_op_pop(2);
    gt_op_pop(1);
    AT(1, 9);
    backward(3, 1, 10);
    STACK("1 3 4 ");
    gt_op_pop(3);
}
START_TEST(last_wins)
{
    in_child(do_last);
}
END_TEST

static void do_unknown(void)
{
    AT(1, 2);
    forward(1, 1, 10);
    gt_op_pop(1);
    open_op(GT_SCOPE_FUNCTION, "not told", 1, 0, 12);
    gt_op_pop(1);
    open_op(GT_SCOPE_FUNCTION, "none", 1, 1, -1);
    gt_op_pop(1);
    open_op(GT_SCOPE_USER, "range", 1, 1, 13);
    gt_op_pop(1);
    AT(1, 9);
    static const struct {
        uint64_t thread;
        int64_t sequence;
    } unknown[] = {{1, 9}, {1, 11}, {2, 10}, {0, 12}, {0, -1}, {1, -1}, {1, 13}, {UINT64_MAX, 10}};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        backward(2, unknown[i].thread, unknown[i].sequence);
        STACK("1 9 ");
        AT(1, 9, 8);
        plain(3);
        STACK("1 9 8 ");
        gt_op_pop(3);
        AT(1, 9);
        gt_op_pop(2);
    }
    /* inside of one that is known */
    backward(2, 1, 10);
    backward(3, 1, 11);
    STACK("1 9 ");
    plain(4);
    STACK("1 9 ");
    gt_op_pop(4);
    gt_op_pop(3);
    plain(4);
    STACK("1 2 ");
    gt_op_pop(4);
    gt_op_pop(2);
}
START_TEST(unknown_nodes)
{
    in_child(do_unknown);
}
END_TEST

/* A range, one that is left out, and operators that end out of order do not get in the way. */
static void do_between(void)
{
    AT(1, 2);
    forward(1, 1, 10);
    gt_op_pop(1);
    AT(1, 9);
    backward(2, 1, 10);
    gt_push(NVTX, "a range");
    plain(3);
    STACK("1 2 ");
    plain(4);
    gt_op_pop(3);
    plain(5);
    STACK("1 2 ");
    gt_op_pop(4);
    gt_op_pop(5);
    gt_pop(GROUP(NVTX));
    open_op(GT_SCOPE_BACKWARD, "hidden", 3, 1, 11); /* of its own node, which is not known */
    plain(4);
    STACK("1 9 ");
    gt_op_pop(4);
    gt_op_pop(3);
    gt_op_pop(2);
    open_op(GT_SCOPE_BACKWARD, "hidden", 3, 1, 10);
    open_op(GT_SCOPE_FUNCTION, "hidden", 4, 0, -1);
    plain(5);
    STACK("1 2 ");
    gt_op_pop(5);
    gt_op_pop(4);
    gt_op_pop(3);
    for (uint64_t i = 0; i < 3 * GT_FRAMES_PER_BLOCK; i++) /* over the edge of a block */
        plain(100 + i);
    backward(2, 1, 10);
    for (uint64_t i = 0; i < 2 * GT_FRAMES_PER_BLOCK; i++) {
        plain(500 + i);
        STACK("1 2 ");
    }
    for (uint64_t i = 2 * GT_FRAMES_PER_BLOCK; i-- > 0;)
        gt_op_pop(500 + i);
    gt_op_pop(2);
    plain(2);
    STACK("1 9 ");
}
START_TEST(between)
{
    setenv("GPUTALLY_EXCLUDE", "hidden", 1);
    in_child(do_between);
}
END_TEST

static void do_paused(void)
{
    AT(1, 2);
    gt_pause();
    forward(1, 1, 10);
    gt_op_pop(1);
    forward(1, 1, 11);
    CHILD_CHECK(!gt_op_made(1, 10) && !gt_op_made(1, 11));
    gt_resume();
    AT(1, 3);
    forward(2, 1, 12);
    gt_op_pop(2);
    gt_op_pop(1);
    CHILD_CHECK(gt_op_made(1, 12) && !gt_op_made(1, 10));
    AT(1, 9);
    backward(1, 1, 12);
    gt_pause();
    plain(2);
    gt_resume();
    plain(3);
    STACK("1 3 ");
}
START_TEST(paused)
{
    in_child(do_paused);
}
END_TEST

static void do_off(void)
{
    AT(1, 2);
    forward(1, 1, 10);
    gt_op_pop(1);
    backward(1, 1, 10);
    STACK("");
    CHILD_CHECK(walks == 0 && !gt_op_made(1, 10));
}
START_TEST(off)
{
    setenv("GPUTALLY_WITH_STACK", "0", 1);
    in_child(do_off);
}
END_TEST

/* Native frames where there are none of Python's. */
static void do_native(void)
{
    AT(0);
    forward(1, 1, 10);
    uint32_t made = gt_self->cur->node->stack;
    CHILD_CHECK(made >= GT_TRIE_FIRST && !gt_self->cur->node->python);
    gt_op_pop(1);
    AT(1, 9);
    backward(2, 1, 10);
    CHILD_CHECK(gt_self->cur->node->stack == made && !gt_self->cur->node->python);
    gt_op_pop(2);
}
START_TEST(native)
{
    in_child(do_native);
}
END_TEST

/* More nodes than are remembered: the oldest are forgotten, none is mistaken for another. */
static void do_many(void)
{
    enum { NODES = 200000 };
    unsigned known = 0;
    AT(1);
    for (int64_t i = 0; i < NODES; i++) {
        lines[1] = (uint32_t)i % 200 + 1; /* under 256, where stacks fold */
        forward(1, 1, i);
        gt_op_pop(1);
    }
    AT(999);
    for (int64_t i = NODES; i-- > 0;) {
        backward(1, 1, i);
        const uint32_t id = gt_self->cur->node->python;
        uint32_t line = GT_TRIE_LINE(gt_trie_node(&gt_self->stack->trie, id)->pc);
        gt_op_pop(1);
        CHILD_CHECK(line == 999 ? NODES - i > 60000 : line == i % 200 + 1);
        known += line != 999;
    }
    CHILD_CHECK(known > 60000 && known < 70000);
}
START_TEST(more_than_fit)
{
    in_child(do_many);
}
END_TEST

/* A million operators from stacks that are always new: 256 of a name are kept apart, of the rest
 * there is one row, and no call is lost. */
static void do_changing(void)
{
    enum { CALLS = 1000000, STACKS = 256 };
    AT(1, 1, 1);
    for (int64_t i = 0; i < CALLS; i++) {
        lines[1] = (uint32_t)i / 1000 + 1;
        lines[2] = (uint32_t)i % 1000 + 1;
        forward(1, 1, i);
        gt_op_pop(1);
        backward(2, 1, i);
        plain(3);
        gt_op_pop(3);
        gt_op_pop(2);
    }
    const struct gt_slot *slot = gt_self->slot;
    CHILD_CHECK(slot->node_count < 3 * (STACKS + 1) + STACKS + 8);
    CHILD_CHECK(slot->stack_folded >= 3u * CALLS - 4u * (STACKS + 1));
    uint64_t calls = 0;
    for (uint32_t i = 2; i < slot->node_count; i++)
        calls += rd_node(rd_self(), slot, i)->count;
    CHILD_CHECK(calls == 3u * CALLS);
}
START_TEST(always_new)
{
    setenv("GPUTALLY_MEMORY", "16M", 1);
    in_child(do_changing);
}
END_TEST

/* ---- a fork ---- */

static void do_fork(void)
{
    AT(1, 2);
    forward(1, 1, 10);
    gt_op_pop(1);
    backward(2, 1, 10);
    pid_t pid = fork();
    if (pid == 0) {
        AT(1, 7);
        backward(1, 1, 10); /* that was the parent's */
        STACK("1 7 ");
        gt_op_pop(1);
        plain(3); /* and so was the one that it is in */
        STACK("1 7 ");
        gt_op_pop(3);
        AT(1, 5);
        forward(1, 1, 10);
        gt_op_pop(1);
        AT(1, 7);
        backward(1, 1, 10);
        STACK("1 5 ");
        gt_op_pop(1);
        gt_core_end();
        _exit(0);
    }
    rd_wait(pid);
    AT(1, 9);
    gt_op_pop(2);
    backward(2, 1, 10);
    STACK("1 2 ");
}
START_TEST(forked)
{
    in_child(do_fork);
}
END_TEST

/* ---- threads ---- */

static void *other_thread(void *arg)
{
    (void)arg;
    AT(5, 6, 7);
    for (uint64_t i = 0; i < 100; i++) { /* ids of this slot are not the other's */
        lines[3] = 100 + (uint32_t)i;
        plain(1);
        gt_op_pop(1);
    }
    for (int again = 0; again < 2; again++)
        for (int64_t i = 0; i < 200; i++) {
            char want[64];
            snprintf(want, sizeof want, "1 %d 3 ", (int)i + 1);
            backward(1, 1, i);
            STACK(want);
            plain(2);
            STACK(want);
            gt_op_pop(2);
            gt_op_pop(1);
        }
    return NULL;
}

/* One that has no stack yet. */
static void *fresh_thread(void *arg)
{
    (void)arg;
    backward(1, 1, 5);
    STACK("1 6 3 ");
    gt_op_pop(1);
    return NULL;
}

static void do_threads(void)
{
    pthread_t t;
    for (int64_t i = 0; i < 200; i++) {
        AT(1, (uint32_t)i + 1, 3);
        forward(1, 1, i);
        gt_op_pop(1);
    }
    CHILD_CHECK(pthread_create(&t, NULL, other_thread, NULL) == 0);
    pthread_join(t, NULL);
    /* two at once, so that one gets a slot of its own */
    backward(1, 1, 5);
    CHILD_CHECK(pthread_create(&t, NULL, fresh_thread, NULL) == 0);
    pthread_join(t, NULL);
    STACK("1 6 3 ");
}
START_TEST(on_another_thread)
{
    in_child(do_threads);
}
END_TEST

/* Deeper than what is taken over at once: the inner frames stay. */
static uint32_t deep_walk(void *state, struct gt_trie *trie, int *truncated)
{
    uint32_t id = GT_TRIE_ROOT;
    (void)state, (void)truncated;
    for (uint32_t i = 1; i <= 2000; i++)
        id = gt_trie_child(trie, id, GT_TRIE_PYTHON_PC(77, i));
    return id;
}
static void *deep_thread(void *arg)
{
    (void)arg;
    backward(1, 1, 5);
    const struct gt_trie *trie = &gt_self->stack->trie;
    uint32_t id = gt_self->cur->node->python, line = 2000;
    for (; id >= GT_TRIE_FIRST; id = gt_trie_node(trie, id)->parent)
        CHILD_CHECK(GT_TRIE_LINE(gt_trie_node(trie, id)->pc) == line--);
    CHILD_CHECK(id == GT_TRIE_TRUNCATED && line < 1600);
    gt_op_pop(1);
    return NULL;
}
static void do_deep(void)
{
    pthread_t t;
    atomic_store(&gt_python_walk, deep_walk);
    forward(1, 1, 5);
    CHILD_CHECK(pthread_create(&t, NULL, deep_thread, NULL) == 0);
    pthread_join(t, NULL);
}
START_TEST(deep)
{
    in_child(do_deep);
}
END_TEST

/* Everybody writes and reads at once, many at the same place: a stack may be unknown, never another
 * node's. */
enum { CROWD = 4, NODES = 20000 };
static _Atomic int ready;
static void *crowd(void *arg)
{
    uint64_t me = (uint64_t)(uintptr_t)arg;
    unsigned known = 0;
    atomic_fetch_add(&ready, 1);
    while (atomic_load(&ready) < CROWD)
        sched_yield();
    AT(1);
    for (int64_t i = 0; i < NODES; i++) {
        lines[1] = (uint32_t)(me * 100 + (uint64_t)i % 50);
        forward(1, me, i * 16); /* few places */
        gt_op_pop(1);
        uint64_t whose = (me + (uint64_t)i % CROWD) % CROWD + 1;
        int64_t which = i - i % 7;
        lines[1] = 9999;
        backward(2, whose, which * 16);
        uint32_t id = gt_self->cur->node->python;
        uint32_t line = GT_TRIE_LINE(gt_trie_node(&gt_self->stack->trie, id)->pc);
        CHILD_CHECK(line == 9999 || line == whose * 100 + (uint64_t)which % 50);
        known += line != 9999;
        gt_op_pop(2);
    }
    CHILD_CHECK(known > NODES / 8);
    return NULL;
}
static void do_crowd(void)
{
    pthread_t t[CROWD];
    for (uintptr_t i = 0; i < CROWD; i++)
        CHILD_CHECK(pthread_create(&t[i], NULL, crowd, (void *)(i + 1)) == 0);
    for (int i = 0; i < CROWD; i++)
        pthread_join(t[i], NULL);
}
START_TEST(everybody_at_once)
{
    in_child(do_crowd);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("op_forward");
    TCase *t = rd_case(s, "all");
    tcase_add_test(t, nodes);
    tcase_add_test(t, last_wins);
    tcase_add_test(t, unknown_nodes);
    tcase_add_test(t, between);
    tcase_add_test(t, paused);
    tcase_add_test(t, off);
    tcase_add_test(t, native);
    tcase_add_test(t, more_than_fit);
    tcase_add_test(t, always_new);
    tcase_add_test(t, forked);
    tcase_add_test(t, on_another_thread);
    tcase_add_test(t, deep);
    tcase_add_test(t, everybody_at_once);
    return rd_run(s);
}
