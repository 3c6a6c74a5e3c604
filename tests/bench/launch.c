/* Launches of a kernel through CUDA's driver, found by dlsym in the library that the third argument
 * names: a stub, so that what is counted is ours. Arguments: the number of launches and "alone" (in
 * no range) or "range" (in one of another source, between copies). `make bench` runs it under
 * callgrind with us and without us: the difference is what a hooked launch costs. */
#include <dlfcn.h>
#include <gputally.h>
#include <stdlib.h>
#include <string.h>

typedef int launch_fn(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      void *, void **, void **);
typedef int copy_fn(unsigned long long, const void *, size_t);

int main(int argc, char **argv)
{
    long n = argc > 3 ? atol(argv[1]) : 0;
    void *driver = argc > 3 ? dlopen(argv[3], RTLD_NOW) : NULL;
    launch_fn *launch = driver ? (launch_fn *)dlsym(driver, "cuLaunchKernel") : NULL;
    copy_fn *copy = driver ? (copy_fn *)dlsym(driver, "cuMemcpyHtoD_v2") : NULL;

    if (!launch || !copy)
        return 1;
    if (strcmp(argv[2], "range") != 0) {
        for (long i = 0; i < n; i++)
            launch(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
        return 0;
    }
    gputally_range_push("step");
    for (long i = 0; i < n / 2; i++) {
        copy(0, argv, 64);
        launch(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    }
    gputally_range_pop();
    return 0;
}
