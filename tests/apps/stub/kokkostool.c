/* A user's own Kokkos tool, to be linked in or named by KOKKOS_TOOLS_LIBS: says what it is called
 * with, and calls its own functions by their exported names, as real tools do. */
#include <stdint.h>
#include <stdio.h>

void kokkosp_profile_event(const char *name);
void kokkosp_profile_event(const char *name)
{
    printf("tool: event %s\n", name);
}

void kokkosp_push_profile_region(const char *name);
void kokkosp_push_profile_region(const char *name)
{
    printf("tool: region %s\n", name);
    kokkosp_profile_event("inside the tool");
}

void kokkosp_pop_profile_region(void);
void kokkosp_pop_profile_region(void)
{
    puts("tool: pop");
}

void kokkosp_begin_parallel_for(const char *name, uint32_t device_id, uint64_t *id);
void kokkosp_begin_parallel_for(const char *name, uint32_t device_id, uint64_t *id)
{
    (void)device_id;
    printf("tool: kernel %s\n", name);
    *id = 42;
}
