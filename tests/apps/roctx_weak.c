/* A program that annotates if somebody has ROCTX, and has no library of it. What it prints tells
 * only whether the results follow the rules. */
#include <stdint.h>
#include <stdio.h>

__attribute__((weak)) int roctxRangePushA(const char *text);
__attribute__((weak)) int roctxRangePop(void);
__attribute__((weak)) uint64_t roctxRangeStartA(const char *text);
__attribute__((weak)) void roctxRangeStop(uint64_t id);
__attribute__((weak)) void roctxMarkA(const char *text);
__attribute__((weak)) int roctxProfilerPause(uint64_t tid);
__attribute__((weak)) int roctxProfilerResume(uint64_t tid);

int main(void)
{
    int bad = 0;

    if (roctxRangePushA && roctxRangePop) {
        bad |= roctxRangePop() >= 0;
        bad |= roctxRangePushA("weak") != 0;
        bad |= roctxRangePushA("weak") != 1;
        bad |= roctxRangePop() != 1;
        bad |= roctxRangePop() != 0;
        roctxRangeStop(roctxRangeStartA("weak async"));
        roctxMarkA("weak mark");
        bad |= roctxProfilerPause(0) != 0;
        roctxRangeStop(roctxRangeStartA("unseen"));
        bad |= roctxProfilerResume(0) != 0;
    }
    puts(bad ? "wrong" : "done");
    return bad;
}
