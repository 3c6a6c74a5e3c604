/* Range pairs against the floor, in one process and in one round: two reads of the time-stamp
 * counter. Prints one line "NAME RATIO": the median over the rounds of each round's ratio, and the
 * growth of the resident set over argv[1] further pairs in KiB. Run with the library preloaded (the
 * figures that count) and without (what NVTX itself costs). */
#include <nvtx3/nvToolsExt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { BATCH = 100000, ROUNDS = 61 };

static uint64_t ticks(void)
{
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#endif
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void two_reads(long n)
{
    static volatile uint64_t sink; /* keeps the reads */
    (void)sink;
    for (long i = 0; i < n; i++) {
        uint64_t a = ticks();
        sink = ticks() - a;
    }
}

static void flat(long n)
{
    for (long i = 0; i < n; i++) {
        nvtxRangePushA("step");
        nvtxRangePop();
    }
}

static void nest(long n)
{
    for (long i = 0; i < n; i += 5) {
        nvtxRangePushA("forward/layer0");
        nvtxRangePushA("forward/attn");
        nvtxRangePushA("forward/mlp");
        nvtxRangePop();
        nvtxRangePushA("forward/norm");
        nvtxRangePushA("forward/add");
        nvtxRangePop();
        nvtxRangePop();
        nvtxRangePop();
        nvtxRangePop();
    }
}

static double timed(void (*f)(long))
{
    double t = now_ns();
    f(BATCH);
    return now_ns() - t;
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

int main(int argc, char **argv)
{
    long more = argc > 1 ? atol(argv[1]) : 0;
    double f[ROUNDS], n[ROUNDS], ns[ROUNDS];
    struct rusage before, after;
    timed(two_reads), timed(flat), timed(nest);
    for (int i = 0; i < ROUNDS; i++) {
        double floor_ns = timed(two_reads);
        double flat_ns = timed(flat);
        f[i] = flat_ns / floor_ns;
        n[i] = timed(nest) / floor_ns;
        ns[i] = flat_ns / BATCH;
    }
    printf("flat %.3f\nnest %.3f\nflat_ns %.1f\n", median(f), median(n), median(ns));
    getrusage(RUSAGE_SELF, &before);
    flat(more / 2);
    nest(more / 2);
    getrusage(RUSAGE_SELF, &after);
    printf("growth_kib %ld\n", after.ru_maxrss - before.ru_maxrss);
    return 0;
}
