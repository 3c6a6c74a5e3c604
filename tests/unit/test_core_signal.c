/* core: signal handlers that record themselves, jump away or fork. What comes from inside one of
 * our calls is counted as lost; nothing hangs, and the tree stays right.
 *
 * To be inside one of our calls for certain, a name lies on a page that can't be read: the call
 * that looks at it faults, and the handler makes the page readable. */
#include "tests/unit/core_reader.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static volatile uint64_t handled, kept, refused;

static void call_in_handler(void)
{
    handled++;
    if (gt_push(NVTX, "handler") >= 0) {
        gt_push(NVTX, "inner");
        gt_pop(GROUP(NVTX));
        gt_pop(GROUP(NVTX));
        kept++;
    } else {
        gt_pop(GROUP(NVTX));
        refused++;
    }
}

static void on(int sig, void (*f)(int), int flags)
{
    struct sigaction a = {.sa_handler = f, .sa_flags = flags};
    ck_assert_int_eq(sigaction(sig, &a, NULL), 0);
}

/* ---- a handler inside one of our calls, for certain ---- */

static char *page;
static void (*in_fault)(void);
static void fault(int sig)
{
    (void)sig;
    if (in_fault)
        in_fault();
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

/* The next call that looks at the name it returns runs `f` inside. */
static const char *trap(void (*f)(void))
{
    if (!page) {
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(page, MAP_FAILED);
        strcpy(page + 64, "trap");
        on(SIGSEGV, fault, SA_NODEFER);
        on(SIGBUS, fault, SA_NODEFER);
    }
    in_fault = f;
    ck_assert_int_eq(mprotect(page, 4096, PROT_NONE), 0);
    return page + 64;
}

static void every_call(void)
{
    struct gt_attr a = {.name = "nested", .value = 1};
    errno = 77;
    RD_MUST(gt_push(API, "nested") == -1, "a push inside a push");
    RD_MUST(gt_push_attr(API, &a) == -1, "a push inside a push");
    RD_MUST(gt_pop(GROUP(API)) == -1, "a pop inside a push");
    RD_MUST(gt_pop_token(GROUP(API), 1) == -1, "a pop inside a push");
    RD_MUST(gt_start(API, &a) == 0, "a start inside a push");
    RD_MUST(gt_end(1) == -1, "an end inside a push");
    gt_mark(API, &a);
    gt_counter(API, &a);
    RD_MUST(errno == 77, "errno changed");
    handled++;
}

START_TEST(inside_a_push)
{
    gt_push(API, "a");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(gt_push(API, trap(every_call)), 1);
        ck_assert_int_eq(gt_pop(GROUP(API)), 1);
    }
    gt_push(API, "trap"); /* the short way looks at it now */
    gt_pop(GROUP(API));
    ck_assert_int_eq(gt_push(API, trap(every_call)), 1);
    ck_assert_int_eq(gt_pop(GROUP(API)), 1);
    gt_mark(API, &(struct gt_attr){.name = trap(every_call)});
    uint64_t id = gt_start(API, &(struct gt_attr){.name = trap(every_call)});
    ck_assert_int_eq(gt_end(id), 0);
    gt_counter(API, &(struct gt_attr){.name = trap(every_call)});
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    ck_assert_uint_eq(handled, 7);
    ck_assert_uint_eq(rd_header(rd_self())->lost[GT_LOST_NESTED], 7 * 8);
    ck_assert_uint_eq(rd_find(rd_self(), rd_only(), GT_KIND_RANGE, "a/trap")->count, 5);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 5 + 1 + 3);
    ck_assert_uint_eq(rd_only()->unbalanced, 0);
    ck_assert_uint_eq(rd_only()->node_count, 2 + 5);
}
END_TEST

/* The very first call, which opens the session and makes the slot. */
START_TEST(inside_the_first_push)
{
    ck_assert_int_eq(gt_push(API, trap(every_call)), 0);
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    ck_assert_uint_eq(rd_header(rd_self())->lost[GT_LOST_NESTED], 8);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
}
END_TEST

static void pauses(void)
{
    gt_pause();
    gt_resume();
    gt_pause();
    handled++;
}

START_TEST(pause_inside_a_push)
{
    gt_push(API, "a");
    gt_push(API, trap(pauses)); /* had begun when the pause came: either is right */
    gt_push(API, "silent");
    for (int level = 2; level >= 0; level--)
        ck_assert_int_eq(gt_pop(GROUP(API)), level);
    gt_resume();
    ck_assert_uint_eq(handled, 1);
    ck_assert_uint_eq(rd_calls(rd_self(), 0) + rd_only()->silent, 3);
    ck_assert_uint_ge(rd_only()->silent, 1);
    gt_push(API, "a");
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    ck_assert_uint_eq(rd_find(rd_self(), rd_only(), GT_KIND_RANGE, "a")->count, 2);
}
END_TEST

/* ---- fork in a handler ---- */

static pid_t child;
static void forks_and_ends(void)
{
    child = fork();
    if (child == 0) {
        every_call();
        gt_core_end();
        _exit(0);
    }
}

/* The child of such a fork can record nothing, and must not write it into the parent's file. */
START_TEST(fork_inside_a_push)
{
    static char copy[1 << 16];
    gt_push(API, "a");
    ck_assert_uint_lt(rd_header(rd_self())->used_bytes, 1u << 20);
    gt_push(API, trap(forks_and_ends));
    rd_wait(child);
    memcpy(copy, gt_session.base, GT_HEADER_BYTES);
    ck_assert_uint_eq(((struct gt_header *)(void *)copy)->lost[GT_LOST_NESTED], 0);
    ck_assert_uint_eq(((struct gt_header *)(void *)copy)->state, GT_STATE_RUNNING);
    gt_pop(GROUP(API));
    gt_pop(GROUP(API));
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 2);
    ck_assert_int_eq(rd_files(), 1);
}
END_TEST

static void fork_handler(int sig)
{
    (void)sig;
    child = fork();
    if (child == 0) {
        CHILD_CHECK(gt_push(API, "kid") == 1);
        CHILD_CHECK(gt_pop(GROUP(API)) == 1);
        CHILD_CHECK(rd_calls(rd_self(), 0) == 1);
        CHILD_CHECK(gt_core_end() == 1);
    }
}

/* From user code it is a fork like any other, and the child may go on behind the handler. */
START_TEST(fork_in_a_handler)
{
    on(SIGUSR1, fork_handler, 0);
    gt_push(API, "a");
    raise(SIGUSR1);
    if (child == 0) {
        CHILD_CHECK(gt_push(API, "late") == -1);
        _exit(0);
    }
    rd_wait(child);
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
    ck_assert_uint_eq(rd_calls(rd_open(rd_session_of(child)), 0), 1);
}
END_TEST

/* ---- jumps ---- */

static sigjmp_buf out;
static void jump(int sig)
{
    (void)sig;
    siglongjmp(out, 1);
}

START_TEST(jump_out_of_user_code)
{
    on(SIGUSR1, jump, 0);
    for (volatile int i = 0; i < 100; i++) {
        ck_assert_int_eq(gt_push(API, "loop"), 0);
        if (sigsetjmp(out, 1) == 0) {
            gt_push(NVTX, "left by a jump");
            raise(SIGUSR1);
        }
        ck_assert_int_eq(gt_pop(GROUP(API)), 0);
        ck_assert_uint_eq(rd_only()->depth, (uint32_t)i + 1);
    }
    ck_assert_uint_eq(rd_only()->overlapped, 100);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 100);
    for (int i = 100; i-- > 0;)
        ck_assert_int_eq(gt_pop(GROUP(NVTX)), i);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 200);
}
END_TEST

static void jump_away(void)
{
    siglongjmp(out, 1);
}

static void *jumps_out_of_ours(void *arg)
{
    (void)arg;
    gt_push(API, "a");
    if (sigsetjmp(out, 1) == 0)
        gt_push(API, trap(jump_away));
    /* our call has never ended: this thread records no more, and tells so */
    RD_MUST(gt_push(API, "lost") == -1, "the door is open");
    RD_MUST(gt_pop(GROUP(API)) == -1, "the door is open");
    return NULL;
}

static void *records_b(void *arg)
{
    (void)arg;
    RD_MUST(gt_push(API, "b") == 0, "the door is shut");
    RD_MUST(gt_pop(GROUP(API)) == 0, "the door is shut");
    return NULL;
}

/* The one case that can't be mended without a price on each call. It costs the thread, no more. */
START_TEST(jump_out_of_ours)
{
    pthread_t t;
    if (RD_SANITIZED)
        RD_SKIP("sanitizers take no jump out of their functions");
    ck_assert_int_eq(pthread_create(&t, NULL, jumps_out_of_ours, NULL), 0);
    ck_assert_int_eq(pthread_join(t, NULL), 0);
    ck_assert_uint_eq(rd_header(rd_self())->lost[GT_LOST_NESTED], 2);
    ck_assert_uint_eq(rd_only()->left_open,
                      0); /* open as at a kill: its slot may be half changed */
    ck_assert_uint_ge(rd_only()->depth, 1);
    /* the next thread has another slot and is well */
    ck_assert_int_eq(pthread_create(&t, NULL, records_b, NULL), 0);
    ck_assert_int_eq(pthread_join(t, NULL), 0);
    ck_assert_uint_eq(rd_header(rd_self())->slot_count, 2);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
}
END_TEST

/* ---- storms ---- */

static void on_timer(int sig)
{
    (void)sig;
    call_in_handler();
}

static void timer(long us)
{
    struct itimerval v = {{0, us}, {0, us}};
    ck_assert_int_eq(setitimer(ITIMER_REAL, &v, NULL), 0);
}

/* Everything that was accepted is there, everything else is counted. */
static void check_storm(uint64_t mine)
{
    ck_assert_uint_eq(rd_calls(rd_self(), 0), mine + 2 * kept);
    ck_assert_uint_eq(rd_header(rd_self())->lost[GT_LOST_NESTED], 2 * refused);
    ck_assert_uint_eq(kept + refused, handled);
    for (uint32_t i = 0; i < rd_header(rd_self())->slot_count; i++) {
        const struct gt_slot *s = rd_slot(rd_self(), i);
        ck_assert_uint_eq(s->unbalanced + s->overlapped + s->clamped + s->depth, 0);
        ck_assert_uint_eq(s->seq & 1, 0);
    }
}

START_TEST(timer_storm)
{
    uint64_t n = 0;
    char name[32];
    gt_core_init(); /* as the constructor does: it asks the loader for a function */
    on(SIGALRM, on_timer, SA_RESTART);
    timer(50);
    for (; handled < 3000 && n < 3000000; n++) {
        gt_push(API, "a");
        snprintf(name, sizeof name, "name %d", (int)(n % 2000)); /* new nodes, then folding */
        gt_push(API, name);
        gt_mark(API, &(struct gt_attr){.name = "m"});
        gt_end(gt_start(API, &(struct gt_attr){.name = "s"}));
        gt_pop(GROUP(API));
        gt_pop(GROUP(API));
    }
    timer(0);
    ck_assert_uint_gt(handled, 0);
    check_storm(4 * n);
}
END_TEST

/* In each of these children the first call, which opens the session, is under fire already. */
START_TEST(first_call_in_a_storm)
{
    on(SIGALRM, on_timer, SA_RESTART);
    gt_push(API, "parent");
    for (int i = 0; i < 40; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            timer(20 + i);
            for (int k = 0; k < 300; k++) {
                gt_push(API, "kid");
                gt_pop(GROUP(API));
            }
            timer(0);
            CHILD_CHECK(rd_find(rd_self(), rd_slot(rd_self(), 0), GT_KIND_RANGE, "parent/kid") ||
                        refused);
            CHILD_CHECK(rd_calls(rd_self(), 0) == 300 + 2 * kept);
            CHILD_CHECK(rd_header(rd_self())->lost[GT_LOST_NESTED] == 2 * refused);
            _exit(0);
        }
        rd_wait(pid);
    }
}
END_TEST

static _Atomic int stop, running;
static __thread uint64_t my_kept, my_refused;
static _Atomic uint64_t all_kept, all_refused, all_mine;
static void on_kill(int sig)
{
    (void)sig;
    if (gt_push(NVTX, "handler") >= 0) {
        gt_pop(GROUP(NVTX));
        my_kept++;
    } else {
        my_refused++;
    }
}

static void *target(void *arg)
{
    uint64_t n = 0;
    (void)arg;
    atomic_fetch_add(&running, 1);
    for (; !atomic_load(&stop); n++) {
        gt_push(API, "a");
        gt_push(API, n & 1 ? "b" : "c");
        gt_pop(GROUP(API));
        gt_pop(GROUP(API));
    }
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    atomic_fetch_add(&all_mine, 2 * n);
    atomic_fetch_add(&all_kept, my_kept);
    atomic_fetch_add(&all_refused, my_refused);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

START_TEST(threads_under_fire)
{
    pthread_t t[3];
    on(SIGUSR2, on_kill, SA_RESTART);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, target, NULL), 0);
    while (atomic_load(&running) < 3)
        sched_yield();
    for (int i = 0; i < 6000; i++)
        pthread_kill(t[i % 3], SIGUSR2);
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    ck_assert_uint_gt(all_kept + all_refused, 0);
    ck_assert_uint_eq(rd_header(rd_self())->lost[GT_LOST_NESTED], all_refused);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), all_mine + all_kept);
    for (uint32_t i = 0; i < rd_header(rd_self())->slot_count; i++) {
        const struct gt_slot *s = rd_slot(rd_self(), i);
        ck_assert_uint_eq(s->unbalanced + s->overlapped + s->left_open + s->depth, 0);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("core_signal");
    TCase *t = rd_case(s, "all");
    tcase_add_test(t, inside_a_push);
    tcase_add_test(t, inside_the_first_push);
    tcase_add_test(t, pause_inside_a_push);
    tcase_add_test(t, fork_inside_a_push);
    tcase_add_test(t, fork_in_a_handler);
    tcase_add_test(t, jump_out_of_user_code);
    tcase_add_test(t, jump_out_of_ours);
    tcase_add_test(t, timer_storm);
    tcase_add_test(t, first_call_in_a_storm);
    tcase_add_test(t, threads_under_fire);
    return rd_run(s);
}
