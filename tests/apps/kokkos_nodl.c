/* A program with a Kokkos that was built without dlopen: it looks at the variables only to complain
 * about them. What it mentions of the interface is a message: invoke_kokkosp_callback. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    static const char *const variables[] = {"KOKKOS_PROFILE_LIBRARY", "KOKKOS_TOOLS_LIBS"};

    for (int i = 0; i < 2; i++)
        if (getenv(variables[i]))
            printf("Warning: environment variable '%s' ignored because kokkos-tools is disabled\n",
                   variables[i]);
    puts("Kokkos::Tools::invoke_kokkosp_callback: Kokkos Profile Tool Fence");
    return 0;
}
