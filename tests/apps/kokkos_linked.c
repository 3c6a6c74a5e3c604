/* A program that is linked with a Kokkos tool (kokkostool.c) and defines a function of the
 * interface itself. Whatever way they are looked up, they are the program's. Exit 1: they are not.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

void kokkosp_push_profile_region(const char *name);
void kokkosp_pop_profile_region(void);

void kokkosp_end_parallel_for(uint64_t id);
void kokkosp_end_parallel_for(uint64_t id)
{
    printf("program: end %d\n", (int)id);
}

int main(void)
{
    static void *const scopes[] = {RTLD_DEFAULT, RTLD_NEXT, NULL};
    void *self = dlopen(NULL, RTLD_NOW);

    kokkosp_push_profile_region("linked");
    kokkosp_pop_profile_region();
    for (int i = 0; i < 3; i++) {
        void *scope = i == 2 ? self : scopes[i];
        void (*push)(const char *) =
            (void (*)(const char *))dlsym(scope, "kokkosp_push_profile_region");
        void (*end)(uint64_t) = (void (*)(uint64_t))dlsym(scope, "kokkosp_end_parallel_for");

        if (push != kokkosp_push_profile_region)
            return 1;
        if (i != 1) /* not defined behind the program */
            end(7);
        else if (end)
            return 1;
        /* nobody has this one */
        if (dlsym(scope, "kokkosp_begin_fence") || !dlerror())
            return 1;
    }
    puts("done");
    return 0;
}
