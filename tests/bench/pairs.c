/* Range pairs through the NVTX header, as any annotated program makes them. Arguments: the number
 * of pairs and "flat" (one name) or "nest" (20 names, depth 2 to 4). `make bench` runs it twice
 * under callgrind with different numbers: the difference is what a pair costs, in instructions. */
#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[20] = {
    "forward/layer0",  "forward/attn",  "forward/mlp",  "forward/norm",  "forward/add",
    "backward/layer0", "backward/attn", "backward/mlp", "backward/norm", "backward/add",
    "optim/step",      "optim/adam",    "optim/clip",   "optim/zero",    "optim/ema",
    "data/next",       "data/collate",  "data/h2d",     "data/aug",      "data/pin"};

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
        const char *const *s = names + i % 20;
        nvtxRangePushA(s[0]);
        nvtxRangePushA(s[1]);
        nvtxRangePushA(s[2]);
        nvtxRangePop();
        nvtxRangePushA(s[3]);
        nvtxRangePushA(s[4]);
        nvtxRangePop();
        nvtxRangePop();
        nvtxRangePop();
        nvtxRangePop();
    }
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 1000;
    if (argc > 2 && strcmp(argv[2], "nest") == 0)
        nest(n);
    else
        flat(n);
    return 0;
}
