/* core: stacks as part of what is recorded. A call's node has the stack it was made with, as ids in
 * its slot's trie; modules that frames lie in are told; too many stacks of one name share a node.
 */
#include "tests/unit/core_reader.h"
#include <dlfcn.h>
#include <pthread.h>
#include "core/modules.h"
#include "core/stacks.h"

/* Another frame each: gt_push_attr must not be their last call. Apart, so that an address tells
 * which. */
#define NOINLINE __attribute__((noipa, aligned(256)))
#define BARRIER __asm__ volatile("" ::: "memory")

static void wants(const char *value)
{
    setenv("GPUTALLY_WITH_STACK", value, 1);
}

static NOINLINE void call_as(const char *name, enum gt_stack_want want)
{
    gt_push_attr(API, &(struct gt_attr){.name = name, .stack = (uint8_t)want});
    gt_test_ticks++;
    gt_pop(GROUP(API));
    BARRIER;
}

static NOINLINE void one(enum gt_stack_want want)
{
    call_as("a", want);
    BARRIER;
}

static NOINLINE void two(enum gt_stack_want want)
{
    call_as("a", want);
    BARRIER;
}

/* ---- reading ---- */

static const struct gt_trie_node *trie_node(const struct gt_slot *s, uint32_t id)
{
    RD_MUST(id < s->stack_count, "id %u of %u", id, s->stack_count);
    for (gt_ref r = s->stacks; r;) {
        const struct gt_trie_chunk *c = rd_at(rd_self(), r, sizeof *c);
        if (id - c->first < c->capacity)
            return &c->nodes[id - c->first];
        r = c->next;
    }
    ck_abort_msg("no chunk holds %u", id);
    return NULL;
}

static const struct gt_module *module(uint32_t id)
{
    const struct gt_module *m;
    for (gt_ref r = rd_header(rd_self())->modules; r; r = m->next) {
        m = rd_at(rd_self(), r, sizeof *m);
        if (m->id == id)
            return m;
    }
    return NULL;
}

/* Is the function, none of which is longer than 256 bytes, on the stack? */
static int passes(const struct gt_slot *s, uint32_t id, const void *function)
{
    for (; id >= GT_TRIE_FIRST; id = trie_node(s, id)->parent)
        if (trie_node(s, id)->pc - (uintptr_t)function < 256)
            return 1;
    return 0;
}

static const struct gt_node *nth(const char *name, int n)
{
    const struct gt_slot *s = rd_only();
    for (uint32_t i = 0; i < s->node_count; i++) {
        const struct gt_node *node = rd_node(rd_self(), s, i);
        if (strcmp(rd_text(rd_self(), node->key), name) == 0 && n-- == 0)
            return node;
    }
    return NULL;
}

/* ---- tests ---- */

START_TEST(part_of_the_node)
{
    for (int i = 0; i < 3; i++) {
        one(GT_STACK_BOTH);
        two(GT_STACK_BOTH);
    }
    const struct gt_slot *s = rd_only();
    const struct gt_node *a = nth("a", 0), *b = nth("a", 1);
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_null(nth("a", 2));
    ck_assert_uint_eq(a->count, 3);
    ck_assert_uint_eq(b->count, 3);
    ck_assert_uint_ne(a->stack, b->stack);
    ck_assert_uint_eq(a->python, 0);
    ck_assert(passes(s, a->stack, one) && !passes(s, a->stack, two));
    ck_assert(passes(s, b->stack, two) && !passes(s, b->stack, one));
    ck_assert(passes(s, a->stack, call_as));
    ck_assert_uint_eq(s->stack_missing + s->stack_cut + s->stack_truncated + s->stack_folded, 0);
}
END_TEST

/* One round: who has a stack, by what is asked for and what is wanted. */
START_TEST(policy)
{
    static const struct {
        const char *value;
        int none, range, both, either;
    } cases[] = {
        {"0", 0, 0, 0, 0},
        {"1", 0, 0, 1, 1},
        {"native", 0, 0, 1, 1},
        {"python", 0, 0, 0, 0},
        {"ranges", 0, 1, 1, 1},
        {"1,ranges", 0, 1, 1, 1},
        {"python,ranges", 0, 0, 0, 0},
    };
    wants(cases[_i].value);
    call_as("none", GT_STACK_NONE);
    call_as("range", GT_STACK_RANGE);
    call_as("both", GT_STACK_BOTH);
    call_as("either", GT_STACK_EITHER);
    gt_push(API, "hot");
    gt_pop(GROUP(API));
    gt_mark(API, &(struct gt_attr){.name = "mark", .stack = GT_STACK_RANGE});
    gt_counter(API, &(struct gt_attr){.name = "counter", .stack = GT_STACK_RANGE});
    ck_assert_int_eq(nth("none", 0)->stack != 0, cases[_i].none);
    ck_assert_int_eq(nth("range", 0)->stack != 0, cases[_i].range);
    ck_assert_int_eq(nth("both", 0)->stack != 0, cases[_i].both);
    ck_assert_int_eq(nth("either", 0)->stack != 0, cases[_i].either);
    ck_assert_int_eq(nth("hot", 0)->stack != 0, cases[_i].range);
    ck_assert_int_eq(nth("mark", 0)->stack != 0, cases[_i].range);
    ck_assert_uint_eq(nth("counter", 0)->stack, 0);
    if (!cases[_i].either) { /* and nothing was taken for it */
        ck_assert_ptr_null(gt_self->stack);
        ck_assert_uint_eq(rd_only()->stacks, 0);
        ck_assert_uint_eq(rd_header(rd_self())->modules, 0);
    }
}
END_TEST

/* Recurring ranges with stacks of their own, by the short call. */
START_TEST(ranges)
{
    void (*volatile who[])(enum gt_stack_want) = {one, two, one};
    wants("ranges");
    for (int i = 0; i < 100; i++) {
        gt_push(API, "outer");
        for (int k = 0; k < 3; k++)
            who[k](GT_STACK_RANGE);
        gt_pop(GROUP(API));
    }
    ck_assert_uint_eq(nth("outer", 0)->count, 100);
    ck_assert_uint_eq(nth("a", 0)->count, 200);
    ck_assert_uint_eq(nth("a", 1)->count, 100);
    ck_assert_ptr_null(nth("a", 2));
    ck_assert_uint_eq(rd_calls(rd_self(), GT_KIND_RANGE), 400);
}
END_TEST

/* Every frame's module is the one that the loader knows there. */
START_TEST(modules)
{
    one(GT_STACK_BOTH);
    const struct gt_slot *s = rd_only();
    int programs = 0, others = 0;
    for (uint32_t id = nth("a", 0)->stack; id >= GT_TRIE_FIRST; id = trie_node(s, id)->parent) {
        const struct gt_trie_node *n = trie_node(s, id);
        const struct gt_module *m = module(n->module);
        Dl_info info;
        ck_assert_msg(m != NULL, "frame %#lx has the module %u", n->pc, n->module);
        ck_assert_int_ne(dladdr((void *)(n->pc - 1), &info), 0);
        ck_assert(n->pc > m->start && n->pc <= m->end);
        ck_assert_uint_eq(m->start, (uintptr_t)info.dli_fbase & ~4095ul);
        ck_assert_uint_ge(m->build_id_bytes, 8);
        if (n->pc - (uintptr_t)one < 256) {
            ck_assert_str_eq(rd_text(rd_self(), m->path),
                             rd_text(rd_self(), rd_header(rd_self())->exe));
            programs++;
        }
        others += strstr(rd_text(rd_self(), m->path), "libc") != NULL;
    }
    ck_assert_int_eq(programs, 1);
    ck_assert_int_ge(others, 1); /* what calls main */
    ck_assert_ptr_null(module(0));
    /* asked again, no new ones */
    uint32_t most = module(2) ? 2 : 1;
    while (module(most + 1))
        most++;
    ck_assert_uint_eq(gt_modules_of((uintptr_t)one + 1), trie_node(s, nth("a", 0)->stack)->module);
    ck_assert_ptr_null(module(most + 1));
    ck_assert_uint_eq(gt_modules_of((uintptr_t)&most), 0); /* the stack */
    ck_assert_uint_eq(gt_modules_of(GT_TRIE_PYTHON | 1), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stacks");
    TCase *t = rd_case(suite, "stacks");
    tcase_add_test(t, part_of_the_node);
    tcase_add_loop_test(t, policy, 0, 7);
    tcase_add_test(t, ranges);
    tcase_add_test(t, modules);
    return rd_run(suite);
}
