/* A program with Kokkos 3.6: knows only the old variable, and throws when that differs from the
 * option. */
#define KOKKOS_VERSION 30600
#include "kokkos_client.h"

int main(int argc, char **argv)
{
    uint64_t id = 0;

    kokkos_initialize(argc, argv);
    KP(push_profile_region, "old region");
    KP(begin_parallel_for, "old kernel", 1u << 24, &id);
    KP(end_parallel_for, id);
    KP(pop_profile_region);
    kokkos_finalize();
    puts("done");
    return 0;
}
