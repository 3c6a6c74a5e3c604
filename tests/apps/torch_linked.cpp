/* Linked with the stand-in for PyTorch: operators from the first instruction of main on. */
#include "../sim/torch/sim.h"
#include <cstdio>

int main()
{
    for (int i = 0; i < 5; i++) {
        void *outer = sim_begin(0, "aten::linear", "", nullptr, 0);
        void *inner = sim_begin(0, "aten::mm", "", nullptr, 0);
        sim_free(sim_alloc(64));
        sim_end(inner);
        sim_end(outer);
    }
    sim_profiler(1, 1);
    sim_free(sim_alloc(5));
    sim_profiler(0, 0);
    puts("done");
    return 0;
}
