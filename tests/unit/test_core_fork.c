/* core: fork in all its forms. A child finds out by itself, leaves the parent's file alone and goes
 * on in one of its own, below the ranges that were open. */
#include "tests/unit/core_reader.h"
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

extern pid_t _Fork(void) __attribute__((weak));

static pid_t raw_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

enum { FORK, UNDERSCORE_FORK, CLONE, WAYS };
static pid_t go(int way)
{
    fflush(stdout); /* what is buffered must not come out twice */
    return way == FORK ? fork() : way == UNDERSCORE_FORK ? _Fork() : raw_clone();
}

static void call(const char *name, uint64_t ticks)
{
    gt_push(API, name);
    gt_test_ticks += ticks;
    gt_pop(GROUP(API));
}

static const struct gt_node *range(const char *path)
{
    return rd_find(rd_self(), rd_slot(rd_self(), 0), GT_KIND_RANGE, path);
}

static uint64_t count_of(const char *path)
{
    const struct gt_node *n = range(path);
    return n ? n->count : UINT64_MAX;
}

/* A copy of this process's file as it is now, and whether it still is the same. */
static char *snapshot;
static size_t snapshot_bytes;
static void take_snapshot(void)
{
    snapshot_bytes = rd_header(rd_self())->used_bytes;
    snapshot = malloc(snapshot_bytes);
    memcpy(snapshot, gt_session.base, snapshot_bytes);
}
static void check_snapshot(void)
{
    ck_assert_int_eq(memcmp(snapshot, gt_session.base, snapshot_bytes), 0);
    free(snapshot);
}

START_TEST(each_way)
{
    static char parents[sizeof gt_session.path];
    if (_i == UNDERSCORE_FORK && !_Fork)
        RD_SKIP("this C library has no _Fork");
    call("before", 1);
    gt_push(API, "a");
    gt_push(NVTX, "b");
    gt_test_ticks += 10;
    strcpy(parents, gt_session.path);
    take_snapshot();
    pid_t pid = go(_i);
    if (pid == 0) {
        gt_test_ticks += 100;
        CHILD_CHECK(gt_push(API, "kid") == 1);
        gt_test_ticks += 5;
        CHILD_CHECK(strcmp(gt_session.path, parents) != 0);
        CHILD_CHECK(rd_header(rd_self())->pid == (uint32_t)getpid());
        CHILD_CHECK(rd_only()->inherited == 2);
        CHILD_CHECK(rd_only()->depth == 3);
        CHILD_CHECK(gt_pop(GROUP(API)) == 1);
        call("kid", 7);
        CHILD_CHECK(gt_pop(GROUP(NVTX)) == 0);
        CHILD_CHECK(gt_pop(GROUP(API)) == 0);
        CHILD_CHECK(gt_pop(GROUP(API)) == -1);
        call("after", 1);
        CHILD_CHECK(count_of("a") == 0 && count_of("a/b") == 0);
        CHILD_CHECK(range("a")->total_ticks == 0 && range("a")->self_ticks == 0);
        CHILD_CHECK(count_of("a/b/kid") == 2 && range("a/b/kid")->total_ticks == 12);
        CHILD_CHECK(count_of("after") == 1);
        CHILD_CHECK(!range("before"));
        CHILD_CHECK(rd_calls(rd_self(), 0) == 3);
        CHILD_CHECK(rd_only()->unbalanced == 1 && rd_only()->overlapped == 0);
        CHILD_CHECK(rd_header(rd_self())->sequence == 0);
        CHILD_CHECK(gt_core_end() == 1);
        _exit(0);
    }
    rd_wait(pid);
    check_snapshot();
    gt_test_ticks += 1;
    ck_assert_int_eq(gt_pop(GROUP(NVTX)), 0);
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    ck_assert_uint_eq(range("a")->total_ticks, 11);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 3);
    ck_assert_uint_eq(rd_header(rd_self())->state, GT_STATE_RUNNING);
    /* what the child left can be read by others, and knows its parent */
    struct rd v = rd_open(rd_session_of(pid));
    ck_assert_uint_eq(rd_header(v)->state, GT_STATE_ENDED);
    ck_assert_uint_eq(rd_header(v)->ppid, (uint32_t)getpid());
    ck_assert_uint_eq(rd_calls(v, 0), 3);
    ck_assert_int_eq(rd_files(), 2);
}
END_TEST

/* A child that records nothing leaves nothing and ends nothing. */
START_TEST(idle_child)
{
    gt_push(API, "a");
    take_snapshot();
    pid_t pid = go(_i ? CLONE : FORK);
    if (pid == 0) {
        CHILD_CHECK(gt_core_end() == 0);
        _exit(0);
    }
    rd_wait(pid);
    check_snapshot();
    ck_assert_int_eq(rd_files(), 1);
    ck_assert_int_eq(gt_core_end(), 1);
}
END_TEST

START_TEST(vfork_child)
{
    gt_push(API, "a");
    pid_t pid = vfork();
    if (pid == 0)
        _exit(gt_core_end()); /* must not end ours */
    rd_wait(pid);
    ck_assert_uint_eq(rd_header(rd_self())->state, GT_STATE_RUNNING);
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    ck_assert_int_eq(gt_core_end(), 1);
}
END_TEST

/* Six generations; each second one records nothing itself. */
static void generation(int n)
{
    if (n == 6)
        return;
    pid_t pid = go(n % 2 ? CLONE : FORK);
    if (pid == 0) {
        if (n % 2) {
            char name[32];
            snprintf(name, sizeof name, "level %d", n);
            CHILD_CHECK(gt_push(API, name) == 1 + n / 2);
            CHILD_CHECK(rd_only()->inherited == 1 + (unsigned)n / 2);
        }
        generation(n + 1);
        if (n % 2) {
            CHILD_CHECK(gt_pop(GROUP(API)) == 1 + n / 2);
            CHILD_CHECK(rd_calls(rd_self(), 0) == 1);
            CHILD_CHECK(count_of(n == 1   ? "first/level 1"
                                 : n == 3 ? "first/level 1/level 3"
                                          : "first/level 1/level 3/level 5") == 1);
            CHILD_CHECK(gt_core_end() == 1);
        } else {
            CHILD_CHECK(gt_core_end() == 0);
        }
        _exit(0);
    }
    int status;
    if (waitpid(pid, &status, __WALL) != pid || status != 0)
        _exit(9);
}

START_TEST(generations)
{
    gt_push(API, "first");
    pid_t pid = fork();
    if (pid == 0) {
        generation(1);
        _exit(0);
    }
    rd_wait(pid);
    gt_pop(GROUP(API));
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
    ck_assert_int_eq(rd_files(), 4);
}
END_TEST

/* ---- threads ---- */

static pthread_barrier_t barrier;
static _Atomic int stop;

static void *busy(void *arg)
{
    (void)arg;
    gt_push(API, "other thread");
    pthread_barrier_wait(&barrier);
    while (!atomic_load(&stop))
        gt_push(API, "n"), gt_pop(GROUP(API));
    gt_pop(GROUP(API));
    return NULL;
}

static void *forks(void *arg)
{
    int *failed = arg;
    gt_push(API, "forking thread");
    for (int i = 0; i < 30; i++) {
        /* a raw clone goes unseen by the thread sanitizer: it would wait for threads that are gone
         */
        pid_t pid = go(i % 2 && !RD_TSAN ? CLONE : FORK);
        if (pid == 0) {
            CHILD_CHECK(gt_push(API, "kid") == 1);
            CHILD_CHECK(rd_header(rd_self())->slot_count == 1);
            CHILD_CHECK(gt_pop(GROUP(API)) == 1);
            CHILD_CHECK(gt_pop(GROUP(API)) == 0);
            CHILD_CHECK(count_of("forking thread/kid") == 1);
            CHILD_CHECK(rd_calls(rd_self(), 0) == 1);
            _exit(0);
        }
        int status = -1;
        if (waitpid(pid, &status, __WALL) != pid || status != 0)
            ++*failed;
    }
    gt_pop(GROUP(API));
    return NULL;
}

/* Others are in the middle of our calls all the while. */
START_TEST(from_a_thread)
{
    pthread_t t[3];
    int failed = 0;
    pthread_barrier_init(&barrier, NULL, 3);
    pthread_create(&t[0], NULL, busy, NULL);
    pthread_create(&t[1], NULL, busy, NULL);
    pthread_barrier_wait(&barrier);
    pthread_create(&t[2], NULL, forks, &failed);
    pthread_join(t[2], NULL);
    atomic_store(&stop, 1);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    ck_assert_int_eq(failed, 0);
    ck_assert_uint_eq(rd_header(rd_self())->slot_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct gt_slot *s = rd_slot(rd_self(), i);
        ck_assert_uint_eq(s->unbalanced + s->overlapped + s->left_open + s->depth, 0);
    }
    rd_calls(rd_self(), 0);
    ck_assert_int_eq(rd_files(), 31);
}
END_TEST

static void *records_first(void *arg)
{
    (void)arg;
    call("new thread", 1);
    return NULL;
}

/* In the child another thread comes first and opens the session: the forking one stays balanced. */
START_TEST(other_thread_opens)
{
    if (RD_TSAN)
        RD_SKIP("the thread sanitizer allows no new thread in the child of a fork");
    gt_push(API, "a");
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t t;
        CHILD_CHECK(pthread_create(&t, NULL, records_first, NULL) == 0);
        pthread_join(t, NULL);
        CHILD_CHECK(gt_push(API, "kid") == 1);
        CHILD_CHECK(gt_pop(GROUP(API)) == 1);
        CHILD_CHECK(gt_pop(GROUP(API)) == 0);
        CHILD_CHECK(gt_pop(GROUP(API)) == -1);
        CHILD_CHECK(rd_calls(rd_self(), 0) == 2);
        _exit(0);
    }
    rd_wait(pid);
}
END_TEST

/* ---- state that a child inherits ---- */

START_TEST(paused_parent)
{
    gt_push(API, "a");
    gt_pause();
    take_snapshot();
    pid_t pid = fork();
    if (pid == 0) {
        call("in the pause", 1);
        CHILD_CHECK(rd_only()->silent == 1);
        CHILD_CHECK(rd_calls(rd_self(), 0) == 0);
        gt_resume();
        call("kid", 1);
        CHILD_CHECK(gt_pop(GROUP(API)) == 0);
        CHILD_CHECK(rd_calls(rd_self(), 0) == 1);
        CHILD_CHECK(count_of("a/kid") == 1);
        _exit(0);
    }
    rd_wait(pid);
    check_snapshot();
    call("still paused", 1); /* the child's resume was the child's */
    ck_assert_uint_eq(rd_only()->silent, 1);
    gt_resume();
    gt_pop(GROUP(API));
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
}
END_TEST

/* Ranges that are silent or ended out of order: the child has the very ones that are open, with
 * their levels, so that each pop ends its own. */
static void pops_its_own(void)
{
    CHILD_CHECK(gt_push(API, "kid") == 4);
    CHILD_CHECK(rd_only()->inherited == 3 && rd_only()->depth == 6);
    CHILD_CHECK(gt_pop(GROUP(API)) == 4);
    CHILD_CHECK(gt_pop(GROUP(API)) == 3); /* left out */
    call("in c", 1);
    CHILD_CHECK(gt_pop_token(GROUP(NVTX), 7) == 0);
    call("in b", 1);
    CHILD_CHECK(gt_pop(GROUP(API)) == 2);
    call("in a", 1);
    CHILD_CHECK(gt_pop(GROUP(API)) == 1); /* pushed in a pause */
    call("in a", 1);
    CHILD_CHECK(gt_pop(GROUP(API)) == 0);
    call("after", 1);
    CHILD_CHECK(gt_pop(GROUP(API)) == -1);
    CHILD_CHECK(count_of("a/gone/b/c/kid") == 1 && count_of("a/gone/b/c/in c") == 1);
    CHILD_CHECK(count_of("a/gone/b/in b") == 1 && count_of("a/in a") == 2 &&
                count_of("after") == 1);
    CHILD_CHECK(rd_only()->unbalanced == 1 && rd_only()->depth == 0);
}

START_TEST(the_very_ranges)
{
    setenv("GPUTALLY_EXCLUDE", "noise", 1);
    gt_push(API, "a");
    gt_pause();
    gt_push(API, "b in a pause");
    gt_resume();
    gt_push(NVTX, "gone");
    gt_push(API, "b");
    gt_push_attr(NVTX, &(struct gt_attr){.name = "c", .token = 7});
    gt_pop(GROUP(NVTX));
    gt_push(API, "noise");
    gt_pop(GROUP(API));
    gt_push(API, "noise");
    pid_t pid = fork();
    if (pid == 0) {
        /* one that forks before it records, and forgets nothing by that */
        for (int i = 0; _i && i < 2; i++) {
            if ((pid = fork()) == 0) {
                pops_its_own();
                _exit(0);
            }
            rd_wait(pid);
        }
        pops_its_own();
        _exit(0);
    }
    rd_wait(pid);
    for (int level = 3; level >= 0; level--)
        ck_assert_int_eq(gt_pop(GROUP(API)), level);
    ck_assert_uint_eq(rd_only()->unbalanced, 0);
}
END_TEST

START_TEST(domains_and_names)
{
    uint32_t d = gt_domain("mine");
    gt_tag tag = GT_TAG(GT_SOURCE_NVTX, d, 3);
    gt_name_category(GT_SOURCE_NVTX, d, 3, "io");
    gt_name_thread(GT_SOURCE_NVTX, 0, "parent's");
    gt_push(tag, "a");
    pid_t pid = fork();
    if (pid == 0) {
        struct rd v;
        uint32_t i;
        CHILD_CHECK(gt_domain("mine") == d);
        CHILD_CHECK(gt_push(tag, "b") == 1);
        CHILD_CHECK(gt_pop(GROUP(tag)) == 1);
        v = rd_self();
        i = rd_child(v, rd_only(), 0, GT_KIND_RANGE, "mine", "a");
        CHILD_CHECK(i && rd_node(v, rd_only(), i)->category == 3);
        const struct gt_name *n = rd_at(v, rd_header(v)->names, sizeof *n);
        CHILD_CHECK(n->next == 0); /* the thread is another */
        CHILD_CHECK(n->kind == GT_NAME_CATEGORY && strcmp(rd_text(v, n->text), "io") == 0);
        _exit(0);
    }
    rd_wait(pid);
}
END_TEST

/* The open path keeps its shapes and overloads. */
START_TEST(shapes)
{
    struct gt_attr a = {.name = "mm", .shapes = "[[2, 3]]", .overload = "out", .scope = 7};
    setenv("GPUTALLY_RECORD_SHAPES", "1", 1);
    gt_push_attr(API, &a);
    pid_t pid = fork();
    if (pid == 0) {
        call("kid", 1);
        const struct gt_node *n = range("mm");
        CHILD_CHECK(strcmp(rd_text(rd_self(), n->shapes), "[[2, 3]]") == 0);
        CHILD_CHECK(strcmp(rd_text(rd_self(), n->overload), "out") == 0);
        CHILD_CHECK(n->scope == 7);
        _exit(0);
    }
    rd_wait(pid);
}
END_TEST

/* More than one block of frames. */
START_TEST(deep)
{
    gt_push(NVTX, "bottom");
    for (int i = 0; i < 400; i++)
        gt_push(API, "n");
    pid_t pid = fork();
    if (pid == 0) {
        CHILD_CHECK(gt_push(API, "kid") == 400);
        CHILD_CHECK(rd_only()->inherited == 401);
        for (int i = 401; i-- > 0;)
            CHILD_CHECK(gt_pop(GROUP(API)) == i);
        CHILD_CHECK(gt_pop(GROUP(NVTX)) == 0);
        CHILD_CHECK(rd_calls(rd_self(), 0) == 1);
        CHILD_CHECK(rd_only()->depth == 0);
        _exit(0);
    }
    rd_wait(pid);
}
END_TEST

START_TEST(no_children)
{
    setenv("GPUTALLY_CHILDREN", "0", 1);
    gt_push(API, "a");
    take_snapshot();
    pid_t pid = go(_i ? CLONE : FORK);
    if (pid == 0) {
        CHILD_CHECK(gt_push(API, "kid") == -1);
        CHILD_CHECK(gt_pop(GROUP(API)) == -1);
        CHILD_CHECK(gt_start(API, &(struct gt_attr){.name = "b"}) == 0);
        CHILD_CHECK(gt_core_end() == 0);
        _exit(0);
    }
    rd_wait(pid);
    check_snapshot();
    ck_assert_int_eq(rd_files(), 1);
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
}
END_TEST

/* The parent had recorded nothing, or was over already: a child of its own. */
START_TEST(before_and_after)
{
    if (_i) {
        call("a", 1);
        gt_core_end();
        take_snapshot();
    }
    pid_t pid = fork();
    if (pid == 0) {
        call("kid", 1);
        CHILD_CHECK(rd_calls(rd_self(), 0) == 1);
        CHILD_CHECK(rd_only()->inherited == 0);
        CHILD_CHECK(gt_core_end() == 1);
        _exit(0);
    }
    rd_wait(pid);
    ck_assert_int_eq(rd_files(), 1 + _i);
    if (_i)
        check_snapshot();
    rd_session_of(pid);
}
END_TEST

/* Eight at a time, each with its own file. */
START_TEST(eight)
{
    pid_t pid[8];
    call("a", 1);
    for (int i = 0; i < 8; i++) {
        pid[i] = fork();
        if (pid[i] == 0) {
            for (int k = 0; k <= i; k++)
                call("kid", 1);
            CHILD_CHECK(gt_core_end() == 1);
            _exit(0);
        }
    }
    for (int i = 0; i < 8; i++)
        rd_wait(pid[i]);
    for (int i = 0; i < 8; i++)
        ck_assert_uint_eq(rd_calls(rd_open(rd_session_of(pid[i])), 0), (uint64_t)i + 1);
    ck_assert_int_eq(rd_files(), 9);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("core_fork");
    TCase *t = rd_case(s, "all");
    tcase_add_loop_test(t, each_way, 0, WAYS);
    tcase_add_loop_test(t, idle_child, 0, 2);
    tcase_add_test(t, vfork_child);
    tcase_add_test(t, generations);
    tcase_add_test(t, from_a_thread);
    tcase_add_test(t, other_thread_opens);
    tcase_add_test(t, paused_parent);
    tcase_add_loop_test(t, the_very_ranges, 0, 2);
    tcase_add_test(t, domains_and_names);
    tcase_add_test(t, shapes);
    tcase_add_test(t, deep);
    tcase_add_loop_test(t, no_children, 0, 2);
    tcase_add_loop_test(t, before_and_after, 0, 2);
    tcase_add_test(t, eight);
    return rd_run(s);
}
