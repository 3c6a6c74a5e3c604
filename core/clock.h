/* The one clock of the hot path: raw ticks. Any thread. */
#ifndef GT_CLOCK_H
#define GT_CLOCK_H

#include <stdint.h>
#include <time.h>
#include "core/layout.h"

extern uint32_t gt_clock_kind; /* enum gt_clock_kind; set by gt_clock_init, read-only afterwards */

/* Chooses the counter: TSC only where the kernel itself trusts it (its clock source is tsc) and the
 * process may read it (PR_SET_TSC), else CLOCK_MONOTONIC_RAW. Idempotent. */
void gt_clock_init(void);

/* Reads both clocks as close together as it can: the shortest of a few tries. */
struct gt_pair gt_clock_pair(void);

uint64_t gt_clock_mono_ns(void);
uint64_t gt_clock_realtime_ns(void);

#ifdef GT_TEST_CLOCK
extern uint64_t gt_test_ticks; /* the unit tests turn the clock by hand */
#endif

static inline uint64_t gt_clock_now(void)
{
#ifdef GT_TEST_CLOCK
    return gt_test_ticks;
#elif defined(__x86_64__)
    if (__builtin_expect(gt_clock_kind == GT_CLOCK_TSC, 1))
        return __builtin_ia32_rdtsc();
    return gt_clock_mono_ns();
#elif defined(__aarch64__)
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#else
    return gt_clock_mono_ns();
#endif
}

#endif
