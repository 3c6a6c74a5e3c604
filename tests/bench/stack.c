/* A stack capture against unw_backtrace, in one process and in one round, at depths 10, 30 and 100:
 *   same    the stack of the capture before
 *   leaf    the innermost frame is another one each time
 *   whole   every frame is another one each time
 * Prints lines "NAME RATIO NS": the median over the rounds of how many of ours take as long as one
 * of libunwind's, and ours in ns. "hook" names compare what a hooked call needs: a number for the
 * stack, for which unw_backtrace's addresses are hashed and looked up.
 *
 *   stack                         all ratios
 *   stack ours|unw KIND DEPTH N   makes N captures, for counting instructions */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/rules.h"
#include "core/unwind.h"

enum { ROUNDS = 41, WORK = 60000 /* frames a batch */, MAX = 256 };

static struct gt_stack *stack;
static int (*unw_backtrace)(void **, int);
static volatile uint32_t sink;

static void *own(size_t bytes)
{
    return calloc(1, bytes);
}

static void *shared(size_t bytes, uint32_t *ref)
{
    *ref = 1;
    return calloc(1, bytes);
}

/* ---- what is compared ---- */

typedef void capture_fn(void);

static __attribute__((noinline)) void ours(void)
{
    struct gt_regs at = GT_REGS_OF_CALLER();
    sink = gt_stack_capture(stack, &at);
}

static __attribute__((noinline)) void unw(void)
{
    void *pcs[MAX];
    sink = (uint32_t)unw_backtrace(pcs, MAX);
}

/* The least that makes a number of a stack: one multiplication an address, one look-up. */
static __attribute__((noinline)) void unw_hook(void)
{
    static struct {
        uint64_t hash;
        int n;
        void *pcs[MAX];
    } table[1024];
    void *pcs[MAX];
    int n = unw_backtrace(pcs, MAX);
    uint64_t h = 0;
    for (int i = 0; i < n; i++)
        h = (h ^ (uint64_t)pcs[i]) * UINT64_C(0x9e3779b97f4a7c15);
    unsigned at = (unsigned)(h >> 54);
    while (table[at].n && (table[at].hash != h || table[at].n != n ||
                           memcmp(table[at].pcs, pcs, (size_t)n * sizeof *pcs) != 0))
        at = (at + 1) % 1024;
    if (!table[at].n) {
        table[at].hash = h;
        table[at].n = n;
        memcpy(table[at].pcs, pcs, (size_t)n * sizeof *pcs);
    }
    sink = at;
}

/* ---- stacks ---- */

#define NOINLINE __attribute__((noipa))
#define BARRIER __asm__ volatile("" ::: "memory")

static NOINLINE void leaf_a(capture_fn *f)
{
    f();
    BARRIER;
}

static NOINLINE void leaf_b(capture_fn *f)
{
    f();
    BARRIER;
}

static long at_bottom(capture_fn *f, const char *kind, long n)
{
    if (*kind == 's') {
        for (long i = 0; i < n; i++)
            leaf_a(f);
    } else if (*kind == 'l') {
        for (long i = 0; i < n; i += 2) {
            leaf_a(f);
            leaf_b(f);
        }
    } else {
        leaf_a(f);
    }
    return n;
}

#define CHAIN(name, next, more)                                                                    \
    static NOINLINE long name(capture_fn *f, const char *kind, int depth, long n)                  \
    {                                                                                              \
        volatile char room[more];                                                                  \
        room[0] = 0;                                                                               \
        long r = depth <= 0 ? at_bottom(f, kind, n) : next(f, kind, depth - 1, n);                 \
        return r + room[0];                                                                        \
    }
static long chain_c(capture_fn *f, const char *kind, int depth, long n);
CHAIN(chain_a, chain_c, 24)
CHAIN(chain_b, chain_a, 56)
CHAIN(chain_c, chain_b, 120)
static long other_c(capture_fn *f, const char *kind, int depth, long n);
CHAIN(other_a, other_c, 25)
CHAIN(other_b, other_a, 57)
CHAIN(other_c, other_b, 121)

static void make(capture_fn *f, const char *kind, int depth, long n)
{
    if (*kind != 'w') {
        chain_a(f, kind, depth, n);
        return;
    }
    for (long i = 0; i < n; i += 2) {
        chain_a(f, kind, depth, 1);
        other_a(f, kind, depth, 1);
    }
}

static double timed(capture_fn *f, const char *kind, int depth, long n)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    make(f, kind, depth, n);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)n;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v)
{
    qsort(v, ROUNDS, sizeof *v, by_size);
    return v[ROUNDS / 2];
}

static void compare(const char *kind, int depth)
{
    double plain[ROUNDS], hook[ROUNDS], ns[ROUNDS];
    long n = WORK / depth / 2 * 2;
    make(ours, kind, depth, 10), make(unw, kind, depth, 10), make(unw_hook, kind, depth, 10);
    for (int i = 0; i < ROUNDS; i++) {
        ns[i] = timed(ours, kind, depth, n);
        plain[i] = timed(unw, kind, depth, n) / ns[i];
        hook[i] = timed(unw_hook, kind, depth, n) / ns[i];
    }
    printf("%s_%d %.2f %.1f\n", kind, depth, median(plain), median(ns));
    printf("hook_%s_%d %.2f %.1f\n", kind, depth, median(hook), median(ns));
}

int main(int argc, char **argv)
{
    static const struct gt_trie_memory memory = {shared, own};
    static const char *const kinds[] = {"same", "leaf", "whole"};
    static const int depths[] = {10, 30, 100};
    void *lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

    if (!lib) {
        fprintf(stderr, "libunwind.so.8 is not installed\n");
        return 2;
    }
    *(void **)&unw_backtrace = dlsym(lib, "unw_backtrace");
    stack = calloc(1, sizeof *stack);
    if (gt_rules_init(14, own) || gt_stack_init(stack, GT_STACK_DEPTH, &memory))
        return 2;
    if (argc == 5) {
        make(strcmp(argv[1], "ours") == 0 ? ours : unw, argv[2], atoi(argv[3]), atol(argv[4]));
        return 0;
    }
    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = 0; k < 3; k++)
            compare(kinds[i], depths[k]);
    return 0;
}
