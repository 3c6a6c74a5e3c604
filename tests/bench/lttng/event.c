/* What one LTTng-UST event costs in the same units as ratio.c: against two reads of the counter,
 * the median over rounds. Built and run by scripts/bench only where LTTng-UST is installed. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tests/bench/lttng/pair.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH = 20000, ROUNDS = 31 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    static volatile uint64_t sink; /* keeps the reads */
    (void)sink;
    double r[ROUNDS];
    for (int k = 0; k < ROUNDS; k++) {
        double t0 = now_ns();
        for (int i = 0; i < BATCH; i++) {
            uint64_t a = __builtin_ia32_rdtsc();
            sink = __builtin_ia32_rdtsc() - a;
        }
        double t1 = now_ns();
        for (int i = 0; i < BATCH; i++)
            lttng_ust_tracepoint(gputally_bench, ev, i, i, "step");
        r[k] = (now_ns() - t1) / (t1 - t0);
        /* the consumer empties the buffers: a full one would drop events and look fast */
        nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    }
    qsort(r, ROUNDS, sizeof *r, by_size);
    printf("event %.3f\n", r[ROUNDS / 2]);
    return 0;
}
