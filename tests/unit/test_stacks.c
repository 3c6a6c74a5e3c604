/* core: stacks as part of what is recorded. A call's node has the stack it was made with, as ids in
 * its slot's trie; modules that frames lie in are told; too many stacks of one name share a node.
 */
#include "tests/unit/core_reader.h"
#include <dlfcn.h>
#include <pthread.h>
#include "core/modules.h"
#include "core/stacks.h"
#include "maze_parts.h"

/* Another frame each: gt_push_attr must not be their last call. Apart, so that an address tells
 * which. */
#define NOINLINE __attribute__((noipa, aligned(1024)))
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

/* Is the function, none of which is longer than 1024 bytes, on the stack? */
static int passes(const struct gt_slot *s, uint32_t id, const void *function)
{
    for (; id >= GT_TRIE_FIRST; id = trie_node(s, id)->parent)
        if (trie_node(s, id)->pc - (uintptr_t)function < 1024)
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
        if (n->pc - (uintptr_t)one < 1024) {
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

/* ---- Python ---- */

static _Atomic int asked, fresh;
static uint32_t python_frames;

/* Stands for preload/python.c: so many frames, and whether it finds the state zeroed. */
static uint32_t walk_python(void *state, struct gt_trie *trie, int *truncated)
{
    uint32_t *calls = state, id = GT_TRIE_ROOT;
    ck_assert_uint_eq(((uintptr_t)state) % 64, 0);
    ck_assert_uint_eq(calls[GT_PYTHON_STATE_BYTES / 4 - 1], calls[0]);
    asked++;
    fresh += !calls[0];
    calls[GT_PYTHON_STATE_BYTES / 4 - 1] = ++calls[0];
    for (uint32_t i = 0; i < python_frames; i++)
        id = gt_trie_child(trie, id, GT_TRIE_PYTHON_PC(77, i + 1));
    (void)truncated;
    return id;
}

START_TEST(python)
{
    static const struct {
        const char *value;
        uint32_t frames;
        int native, python; /* of an operator */
    } cases[] = {
        {"1", 3, 0, 1},      {"1", 0, 1, 0},      {"python", 3, 0, 1},
        {"python", 0, 0, 0}, {"native", 3, 1, 0}, {"0", 3, 0, 0},
    };
    wants(cases[_i].value);
    python_frames = cases[_i].frames;
    atomic_store(&gt_python_walk, walk_python);
    const int walked = *cases[_i].value == '1' || *cases[_i].value == 'p',
              native = *cases[_i].value == '1' || *cases[_i].value == 'n';
    for (int i = 0; i < 3; i++) {
        call_as("either", GT_STACK_EITHER);
        gt_op_push(&(struct gt_op){.name = "op", .token = 5});
        gt_op_pop(5);
        call_as("both", GT_STACK_BOTH);
    }
    ck_assert_int_eq(asked, walked ? 9 : 0);
    for (const char *const *name = (const char *const[]){"op", "either", NULL}; *name; name++) {
        ck_assert_int_eq(nth(*name, 0)->stack != 0, cases[_i].native);
        ck_assert_int_eq(nth(*name, 0)->python != 0, cases[_i].python);
        ck_assert_uint_eq(nth(*name, 0)->count, 3);
    }
    ck_assert_int_eq(nth("both", 0)->stack != 0, native);
    ck_assert_int_eq(nth("both", 0)->python != 0, cases[_i].python);
    if (cases[_i].python) {
        const struct gt_trie_node *n = trie_node(rd_only(), nth("op", 0)->python);
        ck_assert_uint_eq(GT_TRIE_LINE(n->pc), 3);
        ck_assert_uint_eq(GT_TRIE_CODE(n->pc), 77);
        ck_assert_uint_eq(n->module, 0);
    }
}
END_TEST

/* ---- operators ---- */

static NOINLINE void operator(const char *name, uint64_t token)
{
    gt_op_push(&(struct gt_op){.name = name, .token = token});
    BARRIER;
}

static NOINLINE void operators(int nested)
{
    operator("op", 1);
    if (nested)
        operator("op", 2);
    gt_test_ticks++;
    if (nested)
        gt_op_pop(2);
    gt_op_pop(1);
    BARRIER;
}

static NOINLINE void elsewhere(int nested)
{
    operators(nested);
    BARRIER;
}

/* The same operator from two places is two nodes; an only child of the same name still is a
 * duplicate, though its stack is another one. */
START_TEST(op)
{
    void (*volatile who[])(int) = {operators, elsewhere, operators};
    for (int i = 0; i < 6; i++)
        who[i % 3](0);
    ck_assert_uint_eq(nth("op", 0)->count, 4);
    ck_assert_uint_eq(nth("op", 1)->count, 2);
    ck_assert_ptr_null(nth("op", 2));
    operators(1);
    const struct gt_node *outer = nth("op", 2), *inner = nth("op", 3);
    ck_assert_ptr_null(nth("op", 4));
    ck_assert_uint_eq(outer->count, 1);
    ck_assert_uint_eq(inner->count, 0);
    ck_assert_uint_ne(outer->stack, inner->stack);
    const struct gt_op_stats *stats = rd_at(rd_self(), inner->op, sizeof *stats);
    ck_assert_uint_eq(stats->dup_count, 1);
}
END_TEST

/* One that ends on another thread becomes a row of its own: the stack goes with it. */
static void *end_it(void *arg)
{
    gt_op_pop(*(uint64_t *)arg);
    return NULL;
}

START_TEST(op_ends_elsewhere)
{
    uint64_t token = 9;
    pthread_t t;
    operator("async", token);
    ck_assert_int_eq(pthread_create(&t, NULL, end_it, &token), 0);
    pthread_join(t, NULL);
    operators(0);
    const struct gt_slot *s = rd_slot(rd_self(), 0);
    const struct gt_node *async = rd_find(rd_self(), s, GT_KIND_ASYNC, "async");
    ck_assert_ptr_nonnull(async);
    ck_assert_uint_eq(async->count, 1);
    ck_assert_uint_ne(async->stack, 0);
    ck_assert_uint_eq(async->stack, rd_find(rd_self(), s, GT_KIND_RANGE, "async")->stack);
}
END_TEST

/* ---- limits ---- */

static NOINLINE void deeper(int n, const char *name)
{
    if (n)
        deeper(n - 1, name);
    else
        call_as(name, GT_STACK_BOTH);
    BARRIER;
}

START_TEST(folds)
{
    for (volatile int round = 0; round < 2; round++) /* not unrolled: one place */
        for (int i = 0; i < 300; i++)
            deeper(i, "many");
    for (int i = 0; i < 10; i++)
        deeper(i, "few");
    int nodes = 0;
    uint64_t other = 0;
    for (const struct gt_node *n; (n = nth("many", nodes)); nodes++)
        if (n->stack == GT_TRIE_OTHER) {
            ck_assert_uint_eq(n->python, GT_TRIE_OTHER);
            ck_assert_uint_eq(n->flags, 0);
            other += n->count;
        } else {
            ck_assert_uint_eq(n->count, 2);
        }
    ck_assert_int_eq(nodes, 257);
    ck_assert_uint_eq(other, 2 * 44);
    ck_assert_uint_eq(rd_only()->stack_folded, 2 * 44);
    ck_assert_uint_eq(rd_only()->stack_missing, 0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 610);
    ck_assert_ptr_nonnull(nth("few", 9));
}
END_TEST

START_TEST(truncated)
{
    deeper(2000, "deep");
    const struct gt_slot *s = rd_only();
    uint32_t id = nth("deep", 0)->stack, frames = 0;
    for (; id >= GT_TRIE_FIRST; id = trie_node(s, id)->parent)
        frames++;
    ck_assert_uint_eq(id, GT_TRIE_TRUNCATED);
    ck_assert_uint_eq(frames, GT_STACK_DEPTH);
    ck_assert_uint_eq(s->stack_truncated, 1);
    deeper(2000, "deep");
    ck_assert_uint_eq(nth("deep", 0)->count, 2);
    ck_assert_uint_eq(s->stack_truncated, 2);
}
END_TEST

/* Another way down for each number. */
static void left(uint32_t way, int n, const char *name);
static NOINLINE void right(uint32_t way, int n, const char *name)
{
    if (n)
        (way & 1 ? left : right)(way >> 1, n - 1, name);
    else
        call_as(name, GT_STACK_BOTH);
    BARRIER;
}
static NOINLINE void left(uint32_t way, int n, const char *name)
{
    right(way, n, name);
    BARRIER;
}

/* Stacks get half of the memory at most; without one the call counts all the same. */
static NOINLINE void shaped_right(uint32_t way, int n);
static NOINLINE void shaped(uint32_t way, int n)
{
    static const struct gt_attr a = {.name = "conv3d", .shapes = "[[3]]", .stack = GT_STACK_BOTH};
    if (n) {
        (way & 1 ? shaped : shaped_right)(way >> 1, n - 1);
    } else {
        gt_push_attr(API, &a);
        gt_pop(GROUP(API));
    }
    BARRIER;
}
static NOINLINE void shaped_right(uint32_t way, int n)
{
    shaped(way, n);
    BARRIER;
}

/* A name with a digit, and shapes, are the same ones from wherever they come. */
START_TEST(stacks_are_no_names)
{
    enum { WAYS = 4096, NAMES = 2000, LIMIT = 1024 };
    uint64_t plain = 0, with_shapes = 0, names = 0;
    const struct gt_node *n;
    setenv("GPUTALLY_RECORD_SHAPES", "1", 1);
    for (uint32_t way = 0; way < WAYS; way++) {
        right(way, 12, "conv2d");
        shaped(way, 12);
    }
    for (uint32_t i = 0; i < NAMES; i++) {
        char name[16];
        snprintf(name, sizeof name, "step %u", i);
        right(i, 12, name);
        right(i, 13, name);
    }
    for (int i = 0; (n = nth("conv2d", i)); i++)
        plain += n->count;
    for (int i = 0; (n = nth("conv3d", i)); i++)
        with_shapes += strcmp(rd_text(rd_self(), n->shapes), "[[3]]") ? 0 : n->count;
    ck_assert_uint_eq(plain, WAYS);
    ck_assert_uint_eq(with_shapes, WAYS);
    /* names are variants, each once */
    for (int i = 0; (n = nth("step *", i)); i++)
        names += n->count;
    ck_assert_uint_eq(names, 2 * (NAMES - LIMIT));
    ck_assert_uint_eq(rd_only()->folded, 2 * (NAMES - LIMIT));
}
END_TEST

START_TEST(memory)
{
    /* what is private comes in whole pages */
    setenv("GPUTALLY_MEMORY", !_i ? "256K" : GT_PAGE > 4096 ? "4M" : "1M", 1);
    char name[16];
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "n%c%c", 'a' + i % 400 / 20, 'a' + i % 20);
        right(i * 2654435761u, 32, name);
    }
    ck_assert_uint_gt(rd_only()->stack_missing, 0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1000);
    if (_i) {
        ck_assert_uint_lt(rd_only()->stack_missing, 1000);
        ck_assert_uint_eq(rd_header(rd_self())->memory_full, 0);
    }
    int64_t budget = atomic_load(&gt_session.budget_bytes);
    for (uint32_t i = 0; i < 1000; i++) /* and takes nothing at each try */
        right(i * 2654435761u + 1, 32, "naa");
    ck_assert_int_lt(budget - atomic_load(&gt_session.budget_bytes), 64 << 10);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 2000);
}
END_TEST

/* What is not recorded costs no capture. */
START_TEST(not_recorded)
{
    setenv("GPUTALLY_EXCLUDE", "a", 1);
    one(GT_STACK_BOTH);
    gt_pause();
    call_as("b", GT_STACK_BOTH);
    operators(0);
    gt_resume();
    ck_assert_ptr_null(gt_self->stack);
    call_as("b", GT_STACK_BOTH);
    ck_assert_ptr_nonnull(gt_self->stack);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
    ck_assert_uint_eq(rd_only()->excluded, 1);
}
END_TEST

/* ---- threads and processes ---- */

static void *thread_call(void *name)
{
    deeper(3, name);
    return NULL;
}

START_TEST(handed_over)
{
    pthread_t t;
    wants("1");
    python_frames = 2;
    atomic_store(&gt_python_walk, walk_python);
    one(GT_STACK_BOTH);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_create(&t, NULL, thread_call, i == 1 ? "first" : "second"), 0);
        pthread_join(t, NULL);
    }
    ck_assert_uint_eq(rd_header(rd_self())->slot_count, 2);
    ck_assert_int_eq(fresh, 4);
    const struct gt_slot *s = rd_slot(rd_self(), 1);
    const struct gt_node *a = rd_find(rd_self(), s, GT_KIND_RANGE, "first"),
                         *b = rd_find(rd_self(), s, GT_KIND_RANGE, "second");
    ck_assert_uint_eq(b->count, 2);
    ck_assert(passes(s, a->stack, thread_call) && passes(s, a->stack, deeper));
    ck_assert_uint_eq(a->stack, b->stack); /* called from one place, at one depth */
    ck_assert_uint_eq(a->python, b->python);
}
END_TEST

START_TEST(forked)
{
    if (getenv("GT_TEST_EMULATED"))
        RD_SKIP("qemu-user does not know MADV_WIPEONFORK");
    one(GT_STACK_BOTH);
    gt_push_attr(API, &(struct gt_attr){.name = "open", .stack = GT_STACK_BOTH});
    uint32_t parents = rd_only()->stack_count;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        two(GT_STACK_BOTH);
        const struct gt_node *open = nth("open", 0), *a = nth("a", 0);
        /* the parent's ids mean nothing here */
        CHILD_CHECK(open && open->stack == 0 && open->count == 0);
        CHILD_CHECK(a && a->count == 1 && passes(rd_only(), a->stack, two));
        CHILD_CHECK(module(1) && !strcmp(rd_text(rd_self(), module(1)->path),
                                         rd_text(rd_self(), rd_header(rd_self())->exe)));
        gt_pop(GROUP(API));
        CHILD_CHECK(rd_calls(rd_self(), 0) == 1);
        _exit(0);
    }
    rd_wait(pid);
    ck_assert_uint_eq(rd_only()->stack_count, parents);
    gt_pop(GROUP(API));
}
END_TEST

/* ---- another module in the place of one that has gone ---- */

static void leaf(struct maze *m, void *name)
{
    (void)m;
    call_as(name, GT_STACK_BOTH);
    BARRIER;
}

/* The innermost frame of the stack that lies in a module with that file name; 0: none. */
static uint32_t module_on(const struct gt_slot *s, uint32_t id, const char *file)
{
    for (; id >= GT_TRIE_FIRST; id = trie_node(s, id)->parent) {
        const struct gt_module *m = module(trie_node(s, id)->module);
        const char *path = m ? rd_text(rd_self(), m->path) : "";
        if (strrchr(path, '/') && strcmp(strrchr(path, '/') + 1, file) == 0)
            return m->id;
    }
    return 0;
}

static uintptr_t walk_through(const char *file, const char *name)
{
    struct maze_steps steps = {.count = 0};
    char path[256];
    Dl_info info;
    snprintf(path, sizeof path, "%s/%s", rd_dir, file);
    void *lib = maze_load(path, &steps);
    struct maze m = {.random = 5,
                     .left = 1,
                     .depth = 6,
                     .leaf = leaf,
                     .arg = (void *)name,
                     .quiet = 1,
                     .steps = steps.steps,
                     .count = steps.count};
    maze_on(&m);
    ck_assert_int_ne(dladdr((void *)steps.steps[0], &info), 0);
    uintptr_t base = (uintptr_t)info.dli_fbase;
    dlclose(lib);
    gt_stacks_unloaded(); /* as our dlclose does */
    ck_assert_int_eq(dladdr((void *)base, &info), 0);
    return base;
}

START_TEST(unloaded)
{
#ifdef __SANITIZE_THREAD__
    RD_SKIP("ThreadSanitizer takes the loader's own allocations for races");
#endif
    char paths[64][512], command[2048];
    maze_files(paths, 64);
    snprintf(command, sizeof command, "cp '%s' '%s/a.so' && cp '%s' '%s/b.so'", paths[0], rd_dir,
             paths[0], rd_dir);
    ck_assert_int_eq(system(command), 0);
    uintptr_t at[3] = {walk_through("a.so", "first"), walk_through("b.so", "second"),
                       walk_through("b.so", "third")};
    const struct gt_slot *s = rd_only();
    uint32_t ids[3];
    if (at[0] != at[1] || at[1] != at[2])
        RD_SKIP("the loader did not take the same place again");
    ids[0] = module_on(s, nth("first", 0)->stack, "a.so");
    ids[1] = module_on(s, nth("second", 0)->stack, "b.so");
    ids[2] = module_on(s, nth("third", 0)->stack, "b.so");
    ck_assert_uint_ne(ids[0], 0);
    ck_assert_uint_ne(ids[1], 0);
    ck_assert_uint_ne(ids[2], 0);
    ck_assert_uint_ne(ids[1], ids[2]); /* it might be another file by now */
    ck_assert_uint_eq(module_on(s, nth("second", 0)->stack, "a.so"), 0);
    ck_assert_uint_eq(module_on(s, nth("first", 0)->stack, "b.so"), 0);
    /* what stayed is the same as ever */
    const char *exe = strrchr(rd_text(rd_self(), rd_header(rd_self())->exe), '/') + 1;
    ck_assert_uint_eq(module_on(s, nth("first", 0)->stack, exe),
                      module_on(s, nth("third", 0)->stack, exe));
    ck_assert_uint_eq(s->stack_cut, 0);
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
    tcase_add_loop_test(t, python, 0, 6);
    tcase_add_test(t, op);
    tcase_add_test(t, op_ends_elsewhere);
    tcase_add_test(t, folds);
    tcase_add_test(t, stacks_are_no_names);
    tcase_add_test(t, truncated);
    tcase_add_loop_test(t, memory, 0, 2);
    tcase_add_test(t, not_recorded);
    tcase_add_test(t, handed_over);
    tcase_add_test(t, unloaded);
    tcase_add_test(t, forked);
    return rd_run(suite);
}
