/* Opens each library that is named, one after the other, with a range while it is there and one
 * when it is gone: what a program does that has its interpreter in a plugin. */
#include <dlfcn.h>
#include <stdio.h>
#include "gputally.h"

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (!library || !dlsym(library, "Py_IsInitialized")) {
            printf("%s\n", dlerror());
            return 1;
        }
        for (int k = 0; k < 3; k++) {
            gputally_range_push("open");
            gputally_range_pop();
        }
        dlclose(library);
        gputally_range_push("closed");
        gputally_range_pop();
    }
    return 0;
}
