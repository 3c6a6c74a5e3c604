/* A program with Kokkos 2.5 to 3.1: no settings, and device ids that say nothing. */
#define KOKKOS_VERSION 30100
#include "kokkos_client.h"

int main(int argc, char **argv)
{
    uint64_t id = 0;

    kokkos_initialize(argc, argv);
    KP(begin_parallel_for, "oldest kernel", 0, &id);
    KP(end_parallel_for, id);
    kokkos_finalize();
    puts("done");
    return 0;
}
