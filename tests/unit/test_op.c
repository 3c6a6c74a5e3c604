/* core/op.c with report/load*: operators, their memory and duplicates, against a model that keeps
 * every event and then does what PyTorch's EventList._build_tree does: it nests them, takes out
 * those that are the only child of a parent of the same name, until there is none, and sums up what
 * is left. The session is read by the report house: whole, and with operators still open. */
#include "tests/unit/core_reader.h"
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include "report/group.h"
#include "report/load.h"

#define SESSIONS 80
#define EVENTS 4000
#define NAMES 3
#define SHAPES 2
#define DEPTH 120 /* over the edges of two blocks of frames */

struct event {
    int name, shape, parent, alive;
    int64_t t0, t1, memory, flops; /* memory: its own */
};
/* What happened; shared with the child that makes it happen. */
static struct shared {
    struct event events[EVENTS + 64];
    int event_count;
    int64_t memory_outside, reports_outside, end;
    char path[sizeof gt_session.path];
} * shared;
#define events shared->events
#define event_count shared->event_count
static int stack[4 * DEPTH], depth;
static uint64_t state;

static uint32_t rnd(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state * 0x2545f4914f6cdd1du) >> 33) % n;
}

static const char *const names[NAMES] = {"aten::a", "aten::bb", "a rather longer name than that"};
static const char *const shapes[SHAPES] = {"[[1]]", "[[2, 3], []]"};

/* ---- driving ---- */

static void tick(void)
{
    gt_test_ticks += 1 + rnd(5);
}

static void push(void)
{
    struct event *e = &events[event_count];
    *e = (struct event){.name = (int)rnd(NAMES),
                        .shape = (int)rnd(SHAPES),
                        .parent = depth ? stack[depth - 1] : -1,
                        .alive = 1,
                        .flops = rnd(100)};
    tick();
    e->t0 = (int64_t)gt_test_ticks;
    const struct gt_op op = {.name = names[e->name],
                             .shapes = shapes[e->shape],
                             .token = (uint64_t)event_count + 1,
                             .flops = (uint64_t)e->flops};
    CHILD_CHECK(gt_op_push(&op) == 0);
    shared->end = e->t0;
    stack[depth++] = event_count++;
}

static void pop(void)
{
    tick();
    int i = stack[--depth];
    shared->end = events[i].t1 = (int64_t)gt_test_ticks;
    gt_op_pop((uint64_t)i + 1);
}

static void memory(void)
{
    int64_t bytes = (int64_t)rnd(101) - 50;
    tick();
    gt_op_memory(bytes, GT_MEMORY_CPU);
    if (depth) {
        events[stack[depth - 1]].memory += bytes;
    } else {
        shared->memory_outside += bytes;
        shared->reports_outside++;
    }
}

static void tree(int levels, uint32_t alone)
{
    push();
    if (rnd(2))
        memory();
    for (uint32_t kids = levels <= 1 ? 0 : rnd(alone) ? 1 : rnd(4); kids > 0; kids--) {
        tree(levels - 1, alone);
        if (rnd(3) == 0)
            memory();
    }
    pop();
}

/* ---- the model ---- */

struct sums {
    int64_t count, total, self, memory, self_memory, flops, min, max;
};

static void remove_duplicates(void)
{
    static int kids[EVENTS + 64], only[EVENTS + 64];
    for (int changed = 1; changed;) {
        changed = 0;
        memset(kids, 0, sizeof kids);
        for (int i = 0; i < event_count; i++)
            if (events[i].alive && events[i].parent >= 0) {
                kids[events[i].parent]++;
                only[events[i].parent] = i;
            }
        /* the innermost first: one at a time, the rest is counted anew */
        for (int i = event_count; i-- > 0 && !changed;) {
            int kid = only[i];
            if (!events[i].alive || kids[i] != 1 || events[kid].name != events[i].name)
                continue;
            events[kid].alive = 0;
            events[i].memory += events[kid].memory;
            for (int k = kid + 1; k < event_count; k++)
                if (events[k].parent == kid)
                    events[k].parent = i;
            changed = 1;
        }
    }
}

static void sum(struct sums out[NAMES][SHAPES])
{
    static int64_t all_memory[EVENTS + 64], kids_time[EVENTS + 64];
    memset(out, 0, sizeof(struct sums) * NAMES * SHAPES);
    memset(kids_time, 0, sizeof kids_time);
    memset(all_memory, 0, sizeof all_memory);
    for (int i = event_count; i-- > 0;) {
        const struct event *e = &events[i];
        if (!e->alive)
            continue;
        struct sums *s = &out[e->name][e->shape];
        int64_t d = e->t1 - e->t0;
        all_memory[i] += e->memory;
        s->min = !s->count || d < s->min ? d : s->min;
        s->max = d > s->max ? d : s->max;
        s->count++;
        s->total += d;
        s->self += d - kids_time[i];
        s->memory += all_memory[i];
        s->self_memory += e->memory;
        s->flops += e->flops;
        if (e->parent >= 0) {
            all_memory[e->parent] += all_memory[i];
            kids_time[e->parent] += d;
        }
    }
}

static void check(const char *path, int number)
{
    const int64_t memory_outside = shared->memory_outside,
                  reports_outside = shared->reports_outside;
    struct sums want[NAMES][SHAPES];
    struct gt_model m;
    struct gt_groups g;
    struct gt_err err = {""};
    int64_t self = 0, roots = 0;
    size_t seen = reports_outside > 0;
    size_t expected = reports_outside > 0;
    remove_duplicates();
    sum(want);
    gt_model_init(&m);
    RD_MUST(gt_load_file(&m, path, &err) == 0, "%s", err.message);
    gt_group_rows(&g, &m, GT_BY_SHAPE);
    for (int n = 0; n < NAMES; n++)
        for (int s = 0; s < SHAPES; s++)
            expected += want[n][s].count > 0;
    RD_MUST(g.count == expected, "session %d: %zu rows, want %zu", number, g.count, expected);
    for (size_t i = 0; i < g.count; i++) {
        const struct gt_avg *a = &g.avgs[i];
        const char *key = gt_model_string(&m, a->key, NULL);
        const char *shape = gt_model_string(&m, a->shapes, NULL);
        if (strcmp(key, "[memory]") == 0) {
            RD_MUST(a->count == reports_outside && a->memory == memory_outside &&
                        a->self_memory == memory_outside,
                    "session %d: [memory]", number);
            continue;
        }
        for (int n = 0; n < NAMES; n++)
            for (int s = 0; s < SHAPES; s++) {
                const struct sums *w = &want[n][s];
                if (strcmp(key, names[n]) || strcmp(shape, shapes[s]))
                    continue;
#define SAME(field, value)                                                                         \
    RD_MUST(a->field == w->value, "session %d: " #field " of %s %s is %" PRId64 ", want %" PRId64, \
            number, key, shape, a->field, w->value)
                SAME(count, count);
                SAME(total_ns, total);
                SAME(self_ns, self);
                SAME(min_ns, min);
                SAME(max_ns, max);
                SAME(memory, memory);
                SAME(self_memory, self_memory);
                SAME(flops, flops);
                seen++;
            }
    }
    RD_MUST(seen == g.count, "session %d: a strange row", number);
    for (size_t i = 0; i < m.row_count; i++) {
        const struct gt_row *r = &m.rows[i];
        self += r->self_ns;
        roots += r->parent < 0 ? r->total_ns : 0;
        RD_MUST(r->self_ns >= 0 && r->self_ns <= r->total_ns, "session %d: self > total", number);
    }
    RD_MUST(self == roots, "session %d: self %" PRId64 ", roots %" PRId64, number, self, roots);
    gt_groups_fini(&g);
    gt_model_fini(&m);
}

/* ---- the tests ---- */

/* In the child. `open`: it ends with operators open. */
static void grow(int number, int open)
{
    int deep = number % 2;
    state = 0x9e3779b97f4a7c15u * (uint64_t)(number + 1);
    while (event_count < EVENTS / 2) {
        if (deep)
            tree(1 + (int)rnd(DEPTH), 80);
        else
            tree(1 + (int)rnd(10), rnd(2) ? 1 + rnd(4) : 5);
        if (rnd(2))
            memory();
    }
    for (uint32_t levels = open ? 1 + rnd(deep ? DEPTH : 10) : 0; levels > 0; levels--) {
        push();
        if (rnd(2))
            memory();
        for (uint32_t kids = rnd(3); kids > 0; kids--)
            tree(1 + (int)rnd(3), 3);
    }
}

static void one(int number, int open)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    setenv("GPUTALLY_RECORD_SHAPES", "1", 1);
    state = (uint64_t)number + 77;
    pid_t pid = fork();
    if (pid == 0) {
        grow(number, open);
        if (!open)
            gt_core_end();
        _exit(event_count < EVENTS ? 0 : 8);
    }
    rd_wait(pid);
    for (int i = 0; i < event_count; i++)
        if (!events[i].t1)
            events[i].t1 = shared->end;
    check(rd_session_of(pid), number);
}

START_TEST(random_trees)
{
    one(_i, 0);
}
END_TEST

START_TEST(random_trees_left_open)
{
    one(1000 + _i, 1);
}
END_TEST

/* ---- by hand ---- */

static struct gt_model m;
static struct gt_groups g;

static void op(const char *name, uint64_t token)
{
    CHILD_CHECK(gt_op_push(&(struct gt_op){.name = name, .token = token}) == 0);
    gt_test_ticks += 10;
}

static void end(uint64_t token)
{
    gt_test_ticks += 10;
    gt_op_pop(token);
}

/* What `fn` records in a process of its own, read by the report house. */
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
    gt_group_rows(&g, &m, 0);
}

static const struct gt_avg *avg(const char *key)
{
    const struct gt_avg *found = NULL;
    for (size_t i = 0; i < g.count; i++)
        if (strcmp(gt_model_string(&m, g.avgs[i].key, NULL), key) == 0) {
            RD_MUST(!found, "two rows %s", key);
            found = &g.avgs[i];
        }
    RD_MUST(found != NULL, "no row %s", key);
    return found;
}

#define ROW(key, count_, total_, self_, memory_, self_memory_)                                     \
    do {                                                                                           \
        const struct gt_avg *a_ = avg(key);                                                        \
        ck_assert_int_eq(a_->count, count_);                                                       \
        ck_assert_int_eq(a_->total_ns, total_);                                                    \
        ck_assert_int_eq(a_->self_ns, self_);                                                      \
        ck_assert_int_eq(a_->memory, memory_);                                                     \
        ck_assert_int_eq(a_->self_memory, self_memory_);                                           \
    } while (0)

static void do_range_between(void)
{
    op("a", 1);
    gt_push(NVTX, "range");
    gt_op_memory(100, GT_MEMORY_CPU);
    op("a", 2);
    gt_op_memory(7, GT_MEMORY_CPU);
    end(2);
    gt_pop(GROUP(NVTX));
    end(1);
    gt_push(NVTX, "outside");
    gt_op_memory(-3, GT_MEMORY_CPU);
    gt_pop(GROUP(NVTX));
}

START_TEST(range_between)
{
    record(do_range_between);
    ROW("a", 2, 20 + 40, 20 + 20, 107 + 7, 7);
    ROW("range", 1, 20, 0, 107, 100);
    ROW("outside", 1, 0, 0, -3, 0);
    ROW("[memory]", 1, 0, 0, -3, -3);
}
END_TEST

/* PyTorch's own NVTX text: begins after ours and ends after it, though it is inside. */
static void do_text_beside(void)
{
    op("a", 1);
    gt_push_duplicate(NVTX);
    gt_op_memory(5, GT_MEMORY_CPU);
    op("a", 2);
    gt_push_duplicate(NVTX);
    end(2);
    gt_pop(GROUP(NVTX));
    end(1);
    gt_pop(GROUP(NVTX));
}

START_TEST(text_beside)
{
    record(do_text_beside);
    ROW("a", 1, 40, 40, 5, 5);
    ck_assert_uint_eq(g.count, 1);
    ck_assert_int_eq(m.processes[0].lost[GT_LOST_INDEX_duplicates], 2);
    ck_assert_int_eq(m.processes[0].lost[GT_LOST_INDEX_overlapped], 0);
    ck_assert_int_eq(m.processes[0].lost[GT_LOST_INDEX_unbalanced], 0);
}
END_TEST

static void do_scopes(void)
{
    for (uint8_t scope = 0; scope < 8; scope += 7)
        for (int i = 0; i <= scope; i++) {
            gt_op_push(&(struct gt_op){.name = "same", .token = 1, .scope = scope});
            end(1);
        }
}

START_TEST(scopes_are_apart)
{
    record(do_scopes);
    ck_assert_uint_eq(g.count, 2);
    for (int i = 0; i < 2; i++) {
        const struct gt_avg *a = &g.avgs[i];
        ck_assert_int_eq(a->count, a->scope + 1);
        ck_assert_int_eq(!!(a->flags & GT_ROW_ANNOTATION), a->scope == 7);
    }
    ck_assert_uint_ne(g.avgs[0].scope, g.avgs[1].scope);
}
END_TEST

static void do_paused(void)
{
    op("seen", 1);
    gt_pause();
    op("not seen", 2);
    gt_op_memory(5, GT_MEMORY_CPU);
    end(2);
    gt_op_memory(6, GT_MEMORY_CPU);
    end(1);
    gt_op_memory(7, GT_MEMORY_CPU);
    gt_resume();
    op("seen", 3);
    end(3);
}

/* Memory under a silent operator is the one's around it, as its time is. */
START_TEST(paused)
{
    record(do_paused);
    ck_assert_uint_eq(g.count, 1);
    ROW("seen", 2, 40 + 20, 40 + 20, 11, 11);
}
END_TEST

static void *ends_it(void *arg)
{
    (void)arg;
    end(100);
    return NULL;
}

static void do_elsewhere(void)
{
    pthread_t thread;
    op("root", 9);
    op("future", 100);
    gt_op_memory(5, GT_MEMORY_CPU);
    pthread_create(&thread, NULL, ends_it, NULL);
    pthread_join(thread, NULL);
    gt_test_ticks += 100;
    op("next", 2);
    end(2);
    end(9);
    op("future", 100); /* the same object's address again */
    end(100);
}

START_TEST(ended_elsewhere)
{
    int async = 0;
    record(do_elsewhere);
    for (size_t i = 0; i < m.row_count; i++) {
        const struct gt_row *r = &m.rows[i];
        if (!r->count || strcmp(gt_model_string(&m, r->key, NULL), "future"))
            continue;
        async += !!(r->flags & GT_ROW_ASYNC);
        ck_assert_int_eq(r->count, 1);
        ck_assert_int_eq(r->total_ns, 20);
        ck_assert_int_eq(r->self_ns, r->flags & GT_ROW_ASYNC ? 0 : 20);
        ck_assert_int_eq(r->memory, r->flags & GT_ROW_ASYNC ? 5 : 0);
    }
    ROW("future", 2, 40, 20, 5, 5);
    ck_assert_int_eq(async, 1);
    ROW("next", 1, 20, 20, 0, 0);
    ROW("root", 1, 10 + 20 + 100 + 20 + 10, 10 + 20 + 100 + 10, 0, 0);
    ck_assert_int_eq(m.processes[0].lost[GT_LOST_INDEX_left_open], 0);
}
END_TEST

static void end_elsewhere(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, ends_it, NULL);
    pthread_join(thread, NULL);
}

/* Open frames of all threads. */
static uint32_t open_frames(void)
{
    uint32_t n = 0;
    for (gt_ref at = gt_session.header->slots; at;) {
        const struct gt_slot *slot = gt_session_at(at);
        n += slot->depth;
        at = slot->next;
    }
    return n;
}

/* One that is silent is taken out all the same: else each would stay for good, up to no room. */
static void do_silent_elsewhere(void)
{
    for (int i = 0; i < 2; i++) {
        gt_pause();
        op("future", 100);
        gt_resume();
        end_elsewhere();
        op("next", 2);
        RD_MUST(open_frames() == 1, "depth %u", open_frames());
        end(2);
    }
    RD_MUST(open_frames() == 0, "depth %u", open_frames());
}

START_TEST(silent_ended_elsewhere)
{
    record(do_silent_elsewhere);
    ck_assert_uint_eq(g.count, 1);
    ROW("next", 2, 40, 40, 0, 0);
    ck_assert_int_eq(m.processes[0].lost[GT_LOST_INDEX_left_open], 0);
}
END_TEST

/* With a duration every call takes the slow way. */
static void do_elsewhere_slowly(void)
{
    setenv("GPUTALLY_WINDOW", "duration=1000", 1);
    op("future", 100);
    end_elsewhere();
    op("next", 2);
    RD_MUST(open_frames() == 1, "depth %u", open_frames());
    end(2);
}

START_TEST(ended_elsewhere_slowly)
{
    record(do_elsewhere_slowly);
    ROW("future", 1, 20, 0, 0, 0);
    ROW("next", 1, 20, 20, 0, 0);
}
END_TEST

static void do_fork(void)
{
    op("outer", 1);
    gt_op_memory(64, GT_MEMORY_CPU);
    op("inner", 2);
    pid_t pid = fork();
    if (pid) {
        rd_wait(pid);
        _exit(0);
    }
    op("child", 3);
    end(3);
    end(2);
    end(1);
    op("child", 1);
    end(1);
    memcpy(shared->path, gt_session.path, sizeof shared->path);
    gt_core_end();
    _exit(0);
}

START_TEST(forked_inside)
{
    struct gt_err err = {""};
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    record(do_fork);
    ROW("outer", 1, 10, 10, 64, 64); /* the parent ended with both open, last seen at inner */
    gt_groups_fini(&g);
    gt_model_fini(&m);
    gt_model_init(&m);
    RD_MUST(gt_load_file(&m, shared->path, &err) == 0, "%s", err.message);
    gt_group_rows(&g, &m, 0);
    ck_assert_uint_eq(g.count, 1);
    ROW("child", 2, 40, 40, 0, 0);
    ck_assert_int_eq(m.processes[0].lost[GT_LOST_INDEX_inherited], 2);
    ck_assert_int_eq(m.processes[0].lost[GT_LOST_INDEX_unbalanced], 0);
    ck_assert_int_eq(m.processes[0].lost[GT_LOST_INDEX_left_open], 0);
}
END_TEST

/* Killed at any instruction: a call that ended or is open counts once, a duplicate never. */
static const char *const pattern[] = {"a", "a", "b", "a", "c", "c", "c", "b"};
#define LEVELS ((int)(sizeof pattern / sizeof *pattern))

/* Calls of `name` among the first `levels`, each the only child of the one before. */
static int64_t kept(const char *name, int levels)
{
    int64_t n = 0;
    for (int i = 0; i < levels; i++)
        n += strcmp(pattern[i], name) == 0 && (!i || strcmp(pattern[i - 1], name));
    return n;
}

static void for_ever(void)
{
    for (int64_t round = 0;; round++) {
        for (int i = 0; i < LEVELS; i++) {
            gt_test_ticks++;
            gt_op_push(&(struct gt_op){.name = pattern[i], .token = (uint64_t)i + 1});
            __atomic_store_n(&shared->end, round * 16 + i + 1, __ATOMIC_RELEASE);
        }
        for (int i = LEVELS; i > 0; i--) {
            gt_test_ticks++;
            gt_op_pop((uint64_t)i);
        }
        __atomic_store_n(&shared->end, (round + 1) * 16, __ATOMIC_RELEASE);
    }
}

START_TEST(killed)
{
    static const char *const keys[] = {"a", "b", "c"};
    struct gt_err err = {""};
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    state = (uint64_t)_i + 1;
    pid_t pid = fork();
    if (pid == 0)
        for_ever();
    while (!__atomic_load_n(&shared->end, __ATOMIC_ACQUIRE))
        usleep(100);
    usleep(rnd(2000));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    int64_t rounds = shared->end / 16;
    int levels = (int)(shared->end % 16), may = 0;
    gt_model_init(&m);
    RD_MUST(gt_load_file(&m, rd_session_of(pid), &err) == 0, "%s", err.message);
    gt_group_rows(&g, &m, 0);
    for (int more = 0; more < 2; more++) { /* the push under way may be seen, or not yet */
        int same = 1, n = levels + more <= LEVELS ? levels + more : LEVELS;
        for (int k = 0; k < 3; k++) {
            int64_t got = 0;
            for (size_t i = 0; i < g.count; i++)
                if (strcmp(gt_model_string(&m, g.avgs[i].key, NULL), keys[k]) == 0)
                    got = g.avgs[i].count;
            same &= got == rounds * kept(keys[k], LEVELS) + kept(keys[k], n);
        }
        may |= same;
    }
    RD_MUST(may, "after %" PRId64 " rounds and %d levels", rounds, levels);
    for (size_t i = 0; i < m.row_count; i++)
        RD_MUST(m.rows[i].self_ns >= 0 && m.rows[i].self_ns <= m.rows[i].total_ns, "self > total");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("op");
    TCase *t = rd_case(s, "all");
    tcase_add_loop_test(t, random_trees, 0, SESSIONS);
    tcase_add_loop_test(t, random_trees_left_open, 0, SESSIONS);
    tcase_add_test(t, range_between);
    tcase_add_test(t, text_beside);
    tcase_add_test(t, scopes_are_apart);
    tcase_add_test(t, paused);
    tcase_add_test(t, ended_elsewhere);
    tcase_add_test(t, silent_ended_elsewhere);
    tcase_add_test(t, ended_elsewhere_slowly);
    tcase_add_test(t, forked_inside);
    tcase_add_loop_test(t, killed, 0, 300);
    return rd_run(s);
}
