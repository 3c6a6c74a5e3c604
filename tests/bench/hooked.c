/* A whole hooked call with its stack against the same one on unw_backtrace, in one process and in
 * one round: a push that captures, and its pop; against unw_backtrace, the least that makes a
 * number of its addresses, and the same push and pop without a stack. At depth 30: same    the
 * stack of the call before leaf    the innermost frame is another one each time Prints lines "NAME
 * RATIO NS": the median over the rounds of how many of ours take as long as one of the other, and
 * ours in ns. Linked with the library's own objects.
 *
 *   hooked                          all ratios
 *   hooked ours|unw KIND DEPTH N    makes N calls, for counting instructions */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/record.h"

enum { ROUNDS = 41, CALLS = 2000 /* a batch */, MAX = 256 };

#define TAG GT_TAG(GT_SOURCE_CUDA, 0, 0)
#define NOINLINE __attribute__((noipa))
#define BARRIER __asm__ volatile("" ::: "memory")

static int (*unw_backtrace)(void **, int);
static volatile uint32_t sink;

/* ---- what is compared ---- */

typedef void hook_fn(void);

static NOINLINE void ours(void)
{
    gt_push_call(TAG, "cudaLaunchKernel");
    gt_pop_call(GT_TAG_GROUP(TAG), 0, 0);
}

static uint32_t number(void **pcs, int n)
{
    static struct {
        uint64_t hash;
        int n;
        void *pcs[MAX];
    } table[1024];
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
    return at;
}

static NOINLINE void unw(void)
{
    void *pcs[MAX];
    sink = number(pcs, unw_backtrace(pcs, MAX));
    gt_push_attr(TAG, &(struct gt_attr){.name = "cudaLaunchKernel"});
    gt_pop_call(GT_TAG_GROUP(TAG), 0, 0);
}

/* ---- stacks ---- */

static NOINLINE void leaf_a(hook_fn *f)
{
    f();
    BARRIER;
}

static NOINLINE void leaf_b(hook_fn *f)
{
    f();
    BARRIER;
}

static void at_bottom(hook_fn *f, const char *kind, long n)
{
    if (*kind == 's')
        for (long i = 0; i < n; i++)
            leaf_a(f);
    else
        for (long i = 0; i < n; i += 2) {
            leaf_a(f);
            leaf_b(f);
        }
}

#define CHAIN(name, next, more)                                                                    \
    static NOINLINE void name(hook_fn *f, const char *kind, int depth, long n)                     \
    {                                                                                              \
        volatile char room[more];                                                                  \
        room[0] = 0;                                                                               \
        if (depth <= 0)                                                                            \
            at_bottom(f, kind, n);                                                                 \
        else                                                                                       \
            next(f, kind, depth - 1, n);                                                           \
        room[0]++;                                                                                 \
    }
static void chain_c(hook_fn *f, const char *kind, int depth, long n);
CHAIN(chain_a, chain_c, 24)
CHAIN(chain_b, chain_a, 56)
CHAIN(chain_c, chain_b, 120)

static double timed(hook_fn *f, const char *kind, int depth)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    chain_a(f, kind, depth, CALLS);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / CALLS;
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
    double ratio[ROUNDS], ns[ROUNDS];
    chain_a(ours, kind, depth, 10), chain_a(unw, kind, depth, 10);
    for (int i = 0; i < ROUNDS; i++) {
        ns[i] = timed(ours, kind, depth);
        ratio[i] = timed(unw, kind, depth) / ns[i];
    }
    printf("%s_%d %.2f %.1f\n", kind, depth, median(ratio), median(ns));
}

int main(int argc, char **argv)
{
    void *lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

    if (argc == 5 && strcmp(argv[1], "ours") == 0) {
        chain_a(ours, argv[2], atoi(argv[3]), atol(argv[4]));
        return 0;
    }
    if (!lib) {
        fprintf(stderr, "libunwind.so.8 is not installed\n");
        return 2;
    }
    *(void **)&unw_backtrace = dlsym(lib, "unw_backtrace");
    if (argc == 5) {
        chain_a(unw, argv[2], atoi(argv[3]), atol(argv[4]));
        return 0;
    }
    compare("same", 30);
    compare("leaf", 30);
    return 0;
}
