/* N distinct names under one parent, none of which folds (letters only): argv[1] = N, argv[2] = how
 * often each is used. For the time of a report with many keys and the bound on memory. */
#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 10000, times = argc > 2 ? atol(argv[2]) : 1;
    for (long k = 0; k < times; k++)
        for (long i = 0; i < n; i++) {
            char name[16] = "key_ghijklm";
            long v = i;
            for (int d = 10; d > 4; d--, v /= 20)
                name[d] = (char)('g' + v % 20); /* no hex digit */
            nvtxRangePushA(name);
            nvtxRangePop();
        }
    return 0;
}
