/* Choosing and pairing the clock. Called when a session opens and, for pairs, every 65,536 records.
 */
#include "core/clock.h"
#include <string.h>
#include <sys/prctl.h>
#include "core/sys.h"

uint32_t gt_clock_kind;

#ifdef GT_TEST_CLOCK
uint64_t gt_test_ticks;
#endif

/* Where the process may not read the TSC, libc's clock_gettime (the vDSO, which does) would kill
 * it. */
static int by_system_call;

static uint64_t read_ns(clockid_t id)
{
    struct timespec t = {0};
    if (by_system_call)
        gt_sys(SYS_clock_gettime, id, (long)&t, 0, 0, 0, 0);
    else
        clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t gt_clock_mono_ns(void)
{
#ifdef GT_TEST_CLOCK
    return gt_test_ticks; /* one tick is one ns */
#endif
    return read_ns(CLOCK_MONOTONIC_RAW);
}

uint64_t gt_clock_realtime_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

void gt_clock_init(void)
{
    if (gt_clock_kind)
        return;
#ifdef GT_TEST_CLOCK
    gt_clock_kind = GT_CLOCK_MONOTONIC;
#elif defined(__x86_64__)
    char source[32];
    int may = 0;
    gt_sys_slurp("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
                 sizeof source);
    if (prctl(PR_GET_TSC, &may) != 0)
        may = PR_TSC_ENABLE;
    by_system_call = may != PR_TSC_ENABLE;
    gt_clock_kind =
        strcmp(source, "tsc\n") == 0 && may == PR_TSC_ENABLE ? GT_CLOCK_TSC : GT_CLOCK_MONOTONIC;
#elif defined(__aarch64__)
    gt_clock_kind = GT_CLOCK_CNTVCT;
#else
    gt_clock_kind = GT_CLOCK_MONOTONIC;
#endif
}

struct gt_pair gt_clock_pair(void)
{
    struct gt_pair best = {0};
    uint64_t width = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t a = gt_clock_now(), ns = gt_clock_mono_ns(), b = gt_clock_now();
        if (b - a < width) {
            width = b - a;
            best = (struct gt_pair){a + (b - a) / 2, ns};
        }
    }
#ifdef GT_TEST_CLOCK
    best.mono_ns = best.ticks; /* one tick is one ns */
#endif
    return best;
}
