/* core/unwind.c while modules come and go: threads that walk through modules which stay, and others
 * that load, walk through and unload different builds of the same code, mostly at the same address.
 */
#include <pthread.h>
#include "maze_parts.h"
#include "stack_judge.h"

enum { DEPTH = 200, WALKERS = 4, CHURNERS = 4 };

static char paths[64][512];
static int files;
static struct maze_steps stay;
static _Atomic int done;

struct state {
    struct gt_stack *stack;
    long captures, bad, loads;
    uint64_t seed;
};

/* libgcc is the judge here: libunwind's own cache does not notice an unload. Where one of the two
 * has no way on, the other may. */
static __attribute__((noinline)) void compare(struct maze *m, void *arg)
{
    struct state *s = arg;
    static __thread uint64_t pcs[DEPTH];
    static __thread void *judge[DEPTH];
    struct gt_regs at = GT_REGS_OF_CALLER();
    uint32_t bottom;
    int n = judge_read(s->stack, gt_stack_capture(s->stack, &at), pcs, DEPTH, &bottom);

    (void)m;
    s->captures++;
    s->bad += judge_differs("libgcc", judge, judge_by_gcc(judge, DEPTH), at.pc, pcs, n, 0);
    if (s->bad > 3)
        abort();
}

static void explore(struct state *s, struct maze_steps *steps, long captures)
{
    struct maze m = {.random = ++s->seed,
                     .left = captures,
                     .leaf = compare,
                     .arg = s,
                     .quiet = 1,
                     .steps = steps->steps,
                     .count = steps->count};
    while (m.left > 0) {
        m.depth = (int)maze_random(&m, 25);
        maze_on(&m);
    }
}

static void *walker(void *arg)
{
    struct state *s = arg;
    while (!done)
        explore(s, &stay, 20);
    return NULL;
}

/* Two churners never take the same file, so each dlclose unloads. */
static void *churner(void *arg)
{
    struct state *s = arg;
    unsigned i = 0, of = (unsigned)(files - 1) / CHURNERS,
             first = 1 + (unsigned)(s->seed % CHURNERS) * of;
    while (s->loads < 60) {
#ifdef __SANITIZE_THREAD__ /* it takes the loader's own allocations for races: nothing is loaded   \
                            */
        (void)first, (void)of, i++;
        explore(s, &stay, 25);
#else
        struct maze_steps come = {.count = 0};
        void *lib = maze_load(paths[first + i++ % of], &come);
        explore(s, &come, 25);
        dlclose(lib);
#endif
        s->loads++;
        if (i % 8 == 0) /* as the hook does; else it has to be noticed without */
            gt_rules_forget();
    }
    return NULL;
}

START_TEST(modules_come_and_go)
{
    struct state s[WALKERS + CHURNERS] = {{0}};
    pthread_t t[WALKERS + CHURNERS];
    long captures = 0, bad = 0, loads = 0;

    judge_open();
    files = maze_files(paths, 64);
    if (files <= CHURNERS) {
        printf("SKIP: only %d parts of the maze\n", files);
        return;
    }
    maze_load(paths[0], &stay);
    for (unsigned i = 0; i < WALKERS + CHURNERS; i++) {
        s[i].stack = judge_stack(DEPTH);
        s[i].seed = i;
        ck_assert_int_eq(pthread_create(&t[i], NULL, i < WALKERS ? walker : churner, &s[i]), 0);
    }
    for (int i = WALKERS + CHURNERS; i--; done |= i == WALKERS)
        pthread_join(t[i], NULL);
    for (int i = 0; i < WALKERS + CHURNERS; i++) {
        captures += s[i].captures;
        bad += s[i].bad;
        loads += s[i].loads;
    }
    printf("%ld captures, %ld differ, %ld modules loaded and unloaded; the loader counts %lu\n",
           captures, bad, loads, (unsigned long)gt_rules.unloads);
    ck_assert_int_eq(bad, 0);
    ck_assert_int_eq(loads, 60 * CHURNERS);
#ifndef __SANITIZE_THREAD__
    ck_assert_uint_gt(gt_rules.unloads, 0);
#endif
}
END_TEST

int main(void)
{
    Suite *s = suite_create("stack_threads");
    TCase *c = tcase_create("threads");
    tcase_add_test(c, modules_come_and_go);
    tcase_set_timeout(c, 300);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
