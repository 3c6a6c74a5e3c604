/* What a program with Kokkos 4 does, every event at least once. --expect prints `expect KEY CALLS`,
 * `sum KEY bytes N` and `value KEY COUNT SUM MIN MAX`, as conftest.py's Expected reads them; other
 * arguments: `kill` dies by SIGKILL with ranges open, `fork` goes on in a child too. */
#define KOKKOS_VERSION 40000
#include "kokkos_client.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SERIAL = 0, CUDA = 2 };
#define ON(type, instance) ((uint32_t)(type) << 24 | (instance))

static void kernels(void)
{
    uint64_t id = 0, inner = 0;

    for (uint32_t i = 0; i < 4; i++) {
        KP(begin_parallel_for, "axpy", ON(CUDA, 1), &id);
        KP(end_parallel_for, id);
        KP(begin_parallel_reduce, "dot", ON(SERIAL, 0), &id);
        KP(begin_parallel_for, "inside dot", ON(SERIAL, 0), &inner);
        KP(end_parallel_for, inner);
        KP(end_parallel_reduce, id);
        KP(begin_parallel_scan, "offsets", ON(99, 7), &id);
        KP(end_parallel_scan, id);
    }
    KP(begin_fence, "wait here", ON(CUDA, 1), &id);
    KP(end_fence, id);
}

static void memory(void)
{
    char block[4];

    KP(allocate_data, in("Host"), "x", block, 1000);
    KP(allocate_data, in("Cuda"), "x", block, 4096);
    KP(allocate_data, in("Host"), "y", block, 500);
    KP(begin_deep_copy, in("Cuda"), "x", block, in("Host"), "x", block, 1000);
    KP(end_deep_copy);
    KP(begin_deep_copy, in("Cuda"), "x", block, in("Host"), "x", block, 24);
    KP(end_deep_copy);
    KP(deallocate_data, in("Host"), "x", block, 1000);
    KP(allocate_data, in("Host"), "x", block, 200);
    KP(deallocate_data, in("Host"), "x", block, 200);
    KP(deallocate_data, in("Host"), "y", block, 500);
    KP(dual_view_modify, "d", block, true);
    KP(dual_view_sync, "d", block, false);
}

static void regions(void)
{
    uint32_t section = UINT32_MAX, other = UINT32_MAX;
    uint64_t id = 0;

    KP(create_profile_section, "assembly", &section);
    KP(create_profile_section, "assembly", &other);
    for (int i = 0; i < 3; i++) {
        KP(push_profile_region, "step");
        KP(start_profile_section, section);
        KP(push_profile_region, "solve");
        KP(begin_parallel_for, "axpy", ON(CUDA, 1), &id);
        KP(end_parallel_for, id);
        KP(pop_profile_region);
        KP(profile_event, "converged");
        KP(pop_profile_region);
        KP(stop_profile_section, section);
    }
    KP(start_profile_section, other);
    KP(start_profile_section, section);
    KP(stop_profile_section, other);
    KP(stop_profile_section, section);
    KP(destroy_profile_section, other);
    KP(destroy_profile_section, section);
}

static const char expected[] =
    "expect axpy 7\nexpect dot 4\nexpect inside dot 4\nexpect offsets 4\nexpect wait here 1\n"
    "expect step 3\nexpect solve 3\nexpect converged 3\nexpect assembly 5\n"
    "expect deep_copy Cuda:x <- Host:x 2\nsum deep_copy Cuda:x <- Host:x bytes 1024\n"
    "expect allocate Host:x 2\nvalue allocate Host:x 2 1200 200 1000\n"
    "expect allocate Host:y 1\nvalue allocate Host:y 1 500 500 500\n"
    "expect allocate Cuda:x 1\nvalue allocate Cuda:x 1 4096 4096 4096\n"
    "expect deallocate Host:x 2\nvalue deallocate Host:x 2 1200 200 1000\n"
    "expect deallocate Host:y 1\nvalue deallocate Host:y 1 500 500 500\n"
    "expect Host memory 6\nvalue Host memory 6 4200 0 1500\n"
    "expect Cuda memory 1\nvalue Cuda memory 1 4096 4096 4096\n"
    "expect modify d on device 1\nexpect sync d to host 1\n";

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    uint64_t id = 0;

    kokkos_initialize(argc, argv);
    if (strcmp(mode, "kill") == 0) {
        uint32_t section = 0;

        KP(push_profile_region, "step");
        KP(create_profile_section, "running", &section);
        KP(start_profile_section, section);
        kernels();
        KP(begin_parallel_for, "endless", ON(CUDA, 0), &id);
        raise(SIGKILL);
    }
    if (strcmp(mode, "fork") == 0) {
        uint32_t section = 0;
        pid_t child;

        KP(create_profile_section, "running", &section);
        KP(start_profile_section, section);
        KP(allocate_data, in("Host"), "x", &id, 100);
        child = fork();
        if (child == 0) {
            /* the parent's range is not the child's to end; a start begins anew */
            KP(stop_profile_section, section);
            KP(start_profile_section, section);
            KP(stop_profile_section, section);
            kernels();
            KP(deallocate_data, in("Host"), "x", &id, 100);
            kokkos_finalize();
            return 0;
        }
        waitpid(child, NULL, 0);
        KP(stop_profile_section, section);
        kokkos_finalize();
        return 0;
    }
    regions();
    kernels();
    memory();
    kokkos_finalize();
    if (strcmp(mode, "--expect") == 0)
        fputs(expected, stdout);
    puts("done");
    return 0;
}
