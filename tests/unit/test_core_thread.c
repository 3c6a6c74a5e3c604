/* core: many threads. Slots are handed on, start/end ranges cross threads, and what a thread leaves
 * open is counted when it ends. */
#include "tests/unit/core_reader.h"
#include <pthread.h>

static void begin(void *(*f)(void *), void *arg, pthread_t *t)
{
    ck_assert_int_eq(pthread_create(t, NULL, f, arg), 0);
}

static void run(void *(*f)(void *), void *arg)
{
    pthread_t t;
    begin(f, arg, &t);
    ck_assert_int_eq(pthread_join(t, NULL), 0);
}

static uint64_t sum_of(size_t offset)
{
    uint64_t n = 0;
    struct rd v = rd_self();
    for (uint32_t i = 0; i < rd_header(v)->slot_count; i++)
        n += *(const uint64_t *)((const char *)rd_slot(v, i) + offset);
    return n;
}
#define SUM(field) sum_of(offsetof(struct gt_slot, field))

static uint32_t slots(void)
{
    return rd_header(rd_self())->slot_count;
}

/* ---- many ---- */

#define ALL 2000
#define ONCE 300
static pthread_barrier_t barrier;
static int barrier_used; /* set while no other thread runs */

static void *short_life(void *arg)
{
    int wait = arg != NULL;
    for (int i = 0; i < 10; i++) {
        gt_push(API, "work");
        gt_push(NVTX, "inner");
        gt_pop(GROUP(NVTX));
        gt_pop(GROUP(API));
    }
    gt_push(API, "left");
    gt_push(API, "open");
    if (wait)
        pthread_barrier_wait(&barrier);
    return NULL;
}

START_TEST(two_thousand)
{
    static pthread_t t[ONCE];
    uint64_t used = 0;
    pthread_barrier_init(&barrier, NULL, ONCE + 1);
    gt_push(API, "main");
    for (int i = 0; i < ALL; i++) {
        if (i == ONCE) {
            pthread_barrier_wait(&barrier); /* now all of them have a slot */
            ck_assert_uint_eq(slots(), ONCE + 1);
            used = rd_header(rd_self())->used_bytes;
        }
        if (i >= ONCE)
            ck_assert_int_eq(pthread_join(t[i % ONCE], NULL), 0);
        begin(short_life, i < ONCE ? &barrier : NULL, &t[i % ONCE]);
    }
    for (int i = 0; i < ONCE; i++)
        ck_assert_int_eq(pthread_join(t[i], NULL), 0);
    gt_pop(GROUP(API));
    ck_assert_uint_eq(slots(), ONCE + 1);
    ck_assert_uint_eq(rd_header(rd_self())->used_bytes, used);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), ALL * 22 + 1);
    ck_assert_uint_eq(SUM(left_open), 2 * ALL);
    ck_assert_uint_eq(SUM(unbalanced) + SUM(overlapped), 0);
    uint64_t threads = 0;
    for (uint32_t i = 0; i <= ONCE; i++) {
        const struct gt_slot *s = rd_slot(rd_self(), i);
        threads += s->threads;
        ck_assert_uint_eq(s->depth, 0);
        ck_assert_uint_eq(s->state, i == 0 ? GT_SLOT_LIVE : GT_SLOT_FREE);
    }
    ck_assert_uint_eq(threads, ALL + 1);
    for (int i = 0; i < GT_LOST_KINDS; i++)
        ck_assert_uint_eq(rd_header(rd_self())->lost[i], 0);
}
END_TEST

static void *first_call(void *arg)
{
    (void)arg;
    pthread_barrier_wait(&barrier);
    gt_push(GT_TAG(GT_SOURCE_API, gt_domain("all the same"), 0), "first");
    gt_pop(GROUP(GT_TAG(GT_SOURCE_API, gt_domain("all the same"), 0)));
    gt_name_thread(GT_SOURCE_API, 0, "racer");
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Everybody's first call at the same moment: one session. */
START_TEST(first_calls_together)
{
    enum { N = 40 };
    pthread_t t[N];
    uint32_t names = 0;
    pthread_barrier_init(&barrier, NULL, N);
    for (int i = 0; i < N; i++)
        begin(first_call, NULL, &t[i]);
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    struct rd v = rd_self();
    ck_assert_int_eq(rd_files(), 1);
    ck_assert_uint_eq(slots(), N);
    ck_assert_uint_eq(rd_calls(v, 0), N);
    for (uint32_t i = 0; i < N; i++)
        ck_assert_uint_ne(rd_child(v, rd_slot(v, i), 0, GT_KIND_RANGE, "all the same", "first"), 0);
    for (gt_ref r = rd_header(v)->names; r; names++)
        r = ((const struct gt_name *)rd_at(v, r, sizeof(struct gt_name)))->next;
    ck_assert_uint_eq(names, N);
}
END_TEST

/* ---- who gets which slot ---- */

static void *named(void *name)
{
    pthread_setname_np(pthread_self(), name);
    gt_push(API, name);
    if (barrier_used)
        pthread_barrier_wait(&barrier);
    gt_pop(GROUP(API));
    return NULL;
}

static uint32_t slot_of(const char *name)
{
    struct rd v = rd_self();
    for (uint32_t i = 0; i < slots(); i++)
        if (rd_child(v, rd_slot(v, i), 0, GT_KIND_RANGE, NULL, name))
            return i;
    ck_abort_msg("no slot saw %s", name);
    return 0;
}

START_TEST(same_name_preferred)
{
    static const char *const names[] = {"alpha", "beta", "gamma"};
    pthread_t t[3];
    pthread_barrier_init(&barrier, NULL, 3);
    barrier_used = 1;
    for (int i = 0; i < 3; i++)
        begin(named, (void *)names[i], &t[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    barrier_used = 0;
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 3; i++)
            run(named, (void *)names[(i + round) % 3]);
    ck_assert_uint_eq(slots(), 3);
    for (int i = 0; i < 3; i++) {
        const struct gt_slot *s = rd_slot(rd_self(), slot_of(names[i]));
        ck_assert_str_eq(s->name, names[i]);
        ck_assert_uint_eq(s->threads, 5);
        ck_assert_uint_eq(rd_find(rd_self(), s, GT_KIND_RANGE, names[i])->count, 5);
    }
    run(named, "stranger"); /* takes any, and its name */
    ck_assert_uint_eq(slots(), 3);
    ck_assert_str_eq(rd_slot(rd_self(), slot_of("stranger"))->name, "stranger");
}
END_TEST

/* ---- ends of threads ---- */

static void *leaves_by_exit(void *arg)
{
    gt_push(API, "open");
    if (arg)
        pthread_exit(NULL);
    pthread_cancel(pthread_self());
    pthread_testcancel();
    return NULL;
}

START_TEST(exit_and_cancel)
{
    run(leaves_by_exit, &barrier);
    run(leaves_by_exit, NULL);
    ck_assert_uint_eq(slots(), 1);
    ck_assert_uint_eq(SUM(left_open), 2);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 2);
}
END_TEST

static void *leaves_silent(void *arg)
{
    (void)arg;
    gt_push(API, "a");
    gt_pause();
    gt_push(API, "silent");
    gt_resume();
    gt_push(API, "b");
    return NULL;
}

START_TEST(silent_is_not_left)
{
    run(leaves_silent, NULL);
    ck_assert_uint_eq(SUM(left_open), 2);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 2);
    ck_assert_uint_eq(rd_only()->depth, 0);
    ck_assert_uint_eq(rd_only()->overlapped, 0);
}
END_TEST

static pthread_key_t later;
static void calls_again(void *p)
{
    (void)p;
    gt_push(API, "in a destructor");
    gt_pop(GROUP(API));
    gt_push(API, "left by it");
}

static void *with_destructor(void *arg)
{
    (void)arg;
    gt_push(API, "usual");
    gt_pop(GROUP(API));
    pthread_setspecific(later, &later);
    return NULL;
}

/* Another library's destructor that runs after ours still finds somebody listening. */
START_TEST(calls_after_release)
{
    gt_core_init();
    ck_assert_int_eq(pthread_key_create(&later, calls_again), 0); /* after ours: runs later */
    run(with_destructor, NULL);
    run(with_destructor, NULL);
    ck_assert_uint_eq(slots(), 1);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 6);
    ck_assert_uint_eq(SUM(left_open), 2);
    ck_assert_uint_eq(rd_only()->state, GT_SLOT_FREE);
}
END_TEST

static void *pops(void *arg)
{
    (void)arg;
    ck_assert_int_eq(gt_pop(GROUP(API)), -1);
    return NULL;
}

START_TEST(pop_elsewhere)
{
    gt_push(API, "mine");
    run(pops, NULL);
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    ck_assert_uint_eq(slots(), 2);
    ck_assert_uint_eq(rd_slot(rd_self(), 0)->unbalanced, 0);
    ck_assert_uint_eq(rd_slot(rd_self(), 1)->unbalanced, 1);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
}
END_TEST

/* ---- start and end ---- */

#define IDS 1000
static uint64_t ids[IDS];
static int ended[2][IDS];

static void *start_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < IDS; i++) {
        ids[i] = gt_start(API, &(struct gt_attr){.name = i & 1 ? "odd" : "even"});
        RD_MUST(ids[i] != 0, "no id");
        for (int k = i > 5 ? i - 5 : 0; k < i; k++)
            RD_MUST(ids[i] != ids[k], "an id twice");
    }
    return NULL;
}

static void *end_all(void *arg)
{
    int *mine = arg;
    if (barrier_used)
        pthread_barrier_wait(&barrier);
    for (int i = 0; i < IDS; i++)
        mine[i] = gt_end(ids[i]) == 0;
    return NULL;
}

START_TEST(across_threads)
{
    uint64_t used = 0;
    gt_push(API, "main");
    for (int round = 0; round < 20; round++) {
        run(start_all, NULL); /* these threads are gone when their ranges end */
        run(end_all, ended[0]);
        for (int i = 0; i < IDS; i++)
            RD_MUST(ended[0][i], "round %d: range %d was not open", round, i);
        if (round == 3)
            used = rd_header(rd_self())->used_bytes;
    }
    gt_pop(GROUP(API));
    ck_assert_uint_eq(rd_header(rd_self())->used_bytes, used);
    ck_assert_uint_eq(rd_calls(rd_self(), GT_KIND_ASYNC), 20 * IDS);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 20 * IDS + 1);
    ck_assert_uint_eq(SUM(unbalanced), 0);
}
END_TEST

START_TEST(given_back_elsewhere)
{
    uint64_t used = 0;
    for (int round = 0; round < 20; round++) {
        start_all(NULL);
        run(end_all, ended[0]);
        if (round == 1)
            used = rd_header(rd_self())->used_bytes;
    }
    ck_assert_uint_eq(rd_header(rd_self())->used_bytes, used);
    ck_assert_uint_eq(rd_slot(rd_self(), 1)->unbalanced, 0);
    ck_assert_uint_eq(rd_calls(rd_self(), GT_KIND_ASYNC), 20 * IDS);
}
END_TEST

/* Two threads end the same ranges at the same time: each range ends once. */
START_TEST(double_end_race)
{
    pthread_t t[2];
    pthread_barrier_init(&barrier, NULL, 2);
    barrier_used = 1;
    for (int round = 0; round < 10; round++) {
        start_all(NULL);
        for (int k = 0; k < 2; k++)
            begin(end_all, ended[k], &t[k]);
        for (int k = 0; k < 2; k++)
            pthread_join(t[k], NULL);
        for (int i = 0; i < IDS; i++)
            RD_MUST(ended[0][i] + ended[1][i] == 1, "range %d ended %d times", i,
                    ended[0][i] + ended[1][i]);
    }
    ck_assert_uint_eq(rd_calls(rd_self(), GT_KIND_ASYNC), 10 * IDS);
    ck_assert_uint_eq(SUM(unbalanced), 10 * IDS);
}
END_TEST

/* Ids of ranges that have ended, and numbers that never were ids. */
START_TEST(no_ids)
{
    uint64_t bad = 0, state = 1;
    start_all(NULL);
    end_all(ended[0]);
    for (int i = 0; i < IDS; i++, bad++)
        RD_MUST(gt_end(ids[i]) == -1, "ended twice");
    uint64_t live = gt_start(API, &(struct gt_attr){.name = "live"});
    uint64_t size = gt_session.size_bytes / GT_ALIGN;
    const uint64_t edges[] = {
        0,    1,        511,      512,      UINT64_MAX,          UINT32_MAX,         size - 1,
        size, size + 1, live ^ 1, live ^ 8, live + (1ull << 32), live - (1ull << 32)};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++, bad++)
        RD_MUST(gt_end(edges[i]) == -1, "%#lx was open", edges[i]);
    for (uint64_t at = 0; at < rd_header(rd_self())->used_bytes / GT_ALIGN; at++)
        for (int k = 0; k < 3; k++) {
            uint64_t generation = k == 0   ? 0
                                  : k == 1 ? live >> 32
                                           : (state *= 6364136223846793005u);
            uint64_t id = generation << 32 | at;
            if (id == live)
                continue;
            RD_MUST(gt_end(id) == -1, "%#lx was open", id);
            bad++;
        }
    ck_assert_uint_eq(rd_only()->unbalanced, bad);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), IDS);
    ck_assert_int_eq(gt_end(live), 0);
}
END_TEST

START_TEST(parents_id)
{
    uint64_t id = gt_start(API, &(struct gt_attr){.name = "a"});
    pid_t pid = fork();
    if (pid == 0) {
        uint64_t mine;
        CHILD_CHECK(gt_end(id) == -1);
        mine = gt_start(API, &(struct gt_attr){.name = "a"});
        CHILD_CHECK(mine != 0 && mine != id);
        CHILD_CHECK(gt_end(id) == -1);
        CHILD_CHECK(gt_end(mine) == 0);
        CHILD_CHECK(rd_only()->unbalanced == 2);
        CHILD_CHECK(rd_calls(rd_self(), 0) == 1);
        _exit(0);
    }
    rd_wait(pid);
    ck_assert_int_eq(gt_end(id), 0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
    ck_assert_uint_eq(rd_only()->unbalanced, 0);
}
END_TEST

/* ---- pauses that come while others record ---- */

static _Atomic int stop;
static _Atomic uint64_t pushed;
static void *records(void *arg)
{
    uint64_t n = 0;
    (void)arg;
    pthread_barrier_wait(&barrier);
    while (!atomic_load(&stop)) {
        gt_push(API, "a");
        gt_push(API, "b");
        gt_pop(GROUP(API));
        gt_pop(GROUP(API));
        n += 2;
    }
    atomic_fetch_add(&pushed, n);
    return NULL;
}

START_TEST(pauses_meanwhile)
{
    pthread_t t[4];
    pthread_barrier_init(&barrier, NULL, 5);
    for (int i = 0; i < 4; i++)
        begin(records, NULL, &t[i]);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2000; i++) {
        gt_pause();
        sched_yield();
        gt_resume();
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    if (!pushed)
        RD_SKIP("the other threads came to nothing: the machine is busy");
    ck_assert_uint_eq(rd_calls(rd_self(), 0) + SUM(silent), pushed);
    ck_assert_uint_eq(SUM(unbalanced) + SUM(overlapped) + SUM(left_open), 0);
}
END_TEST

/* ---- a reader while they write ---- */

static _Atomic int written;
static void *writes(void *arg)
{
    (void)arg;
    for (int i = 0; i < 400000; i++) {
        gt_push(API, "r");
        gt_test_ticks += i % 64 ? 5 : (uint64_t)5 << 32; /* short and long way */
        gt_pop(GROUP(API));
        if (i % 16 == 0)
            gt_end(gt_start(API, &(struct gt_attr){.name = "s"}));
    }
    atomic_store(&written, 1);
    return NULL;
}

/* What a reader copies while the slot's sequence word is even and stays the same, fits together. */
START_TEST(live_reader)
{
    pthread_t t;
    uint64_t good = 0, torn = 0, last = 0;
    if (RD_TSAN)
        RD_SKIP("the copy is a race that the sequence word resolves");
    gt_push(API, "r");
    gt_pop(GROUP(API));
    begin(writes, NULL, &t);
    while (!atomic_load(&written)) {
        const struct gt_slot *s = rd_slot(rd_self(), 1);
        const struct gt_node *n = s ? rd_find(rd_self(), s, GT_KIND_RANGE, "r") : NULL;
        struct gt_node copy;
        if (!n)
            continue;
        uint64_t seq = atomic_load_explicit(&s->seq, memory_order_acquire);
        memcpy(&copy, (const void *)n, sizeof copy);
        atomic_thread_fence(memory_order_acquire);
        if (seq & 1 || atomic_load_explicit(&s->seq, memory_order_relaxed) != seq) {
            torn++;
            continue;
        }
        uint64_t longs = copy.total_ticks >> 32 ? copy.total_ticks / ((uint64_t)5 << 32) : 0;
        RD_MUST(copy.self_ticks == copy.total_ticks, "self %lu, total %lu", copy.self_ticks,
                copy.total_ticks);
        RD_MUST(copy.total_ticks == longs * ((uint64_t)5 << 32) + (copy.count - longs) * 5,
                "%lu calls, total %lu", copy.count, copy.total_ticks);
        RD_MUST(longs == (copy.count + 63) / 64, "%lu calls, %lu long", copy.count, longs);
        RD_MUST(copy.count >= last, "the count fell");
        last = copy.count;
        good++;
    }
    pthread_join(t, NULL);
    ck_assert_uint_eq(rd_calls(rd_self(), GT_KIND_RANGE), 400001);
    if (!good)
        RD_SKIP("the reader never came to read");
    (void)torn;
}
END_TEST

static void *keeps(void *arg)
{
    const char **out = arg;
    char name[32];
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "text %d", i);
        out[i] = gt_keep(name);
        snprintf(name, sizeof name, "domain %d", i % 50);
        RD_MUST(strcmp(gt_domain_name(gt_domain(name)), name) == 0, "another domain");
    }
    return NULL;
}

/* Equal texts are one text, whoever brings them first. */
START_TEST(kept_once)
{
    static const char *kept[4][500];
    pthread_t t[4];
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++)
        begin(keeps, kept[i], &t[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    for (int k = 0; k < 500; k++)
        for (int i = 1; i < 4; i++)
            RD_MUST(kept[i][k] == kept[0][k], "text %d twice", k);
    ck_assert_str_eq(gt_domain_name(50), gt_domain_name(gt_domain(gt_domain_name(50))));
    ck_assert_str_eq(gt_domain_name(51), "");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("core_thread");
    TCase *t = rd_case(s, "all");
    tcase_add_test(t, two_thousand);
    tcase_add_test(t, first_calls_together);
    tcase_add_test(t, same_name_preferred);
    tcase_add_test(t, exit_and_cancel);
    tcase_add_test(t, silent_is_not_left);
    tcase_add_test(t, calls_after_release);
    tcase_add_test(t, pop_elsewhere);
    tcase_add_test(t, across_threads);
    tcase_add_test(t, given_back_elsewhere);
    tcase_add_test(t, double_end_race);
    tcase_add_test(t, no_ids);
    tcase_add_test(t, parents_id);
    tcase_add_test(t, pauses_meanwhile);
    tcase_add_test(t, kept_once);
    tcase_add_test(t, live_reader);
    return rd_run(s);
}
