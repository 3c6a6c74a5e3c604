// A real Kokkos program: regions, a section, kernels of each kind, a deep copy, views, a fence, an
// event. Prints what it computed. Exit 77: built without Kokkos.
#include <cstdio>

#if __has_include(<Kokkos_Core.hpp>)
#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ProfileSection.hpp>

static void work()
{
    const int n = 1000;
    Kokkos::View<double *> a("a", n), b("b", n);
    Kokkos::Profiling::ProfilingSection section("section");

    for (int step = 0; step < 3; step++) {
        Kokkos::Profiling::pushRegion("step");
        section.start();
        Kokkos::parallel_for(
            "fill", n, KOKKOS_LAMBDA(int i) { a(i) = i + step; });
        double sum = 0;
        Kokkos::parallel_reduce(
            "sum", n, KOKKOS_LAMBDA(int i, double &s) { s += a(i); }, sum);
        section.stop();
        Kokkos::parallel_scan(
            "scan", n, KOKKOS_LAMBDA(int i, double &s, bool last) {
                s += a(i);
                if (last)
                    b(i) = s;
            });
        Kokkos::Profiling::pushRegion("copy");
        Kokkos::deep_copy(a, b);
        Kokkos::fence();
        Kokkos::Profiling::popRegion();
        Kokkos::Profiling::markEvent("done");
        Kokkos::Profiling::popRegion();
        printf("%d %.0f %.0f\n", step, sum, a(n - 1));
    }
}

int main(int argc, char **argv)
{
    Kokkos::initialize(argc, argv);
    work();
    Kokkos::finalize();
    return 0;
}
#else
int main()
{
    fputs("built without Kokkos (libtrilinos-kokkos-dev)\n", stderr);
    return 77;
}
#endif
