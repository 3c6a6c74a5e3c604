/* A library that libtorch_cpu.so needs (with SIM_PLUGIN) and whose constructor looks something up,
 * as libGLX's does below Debian's PyTorch: in the middle of the dlopen that loads both, when
 * PyTorch's own constructors have not run. They must not run for that. */
#include <cstdio>
#include <dlfcn.h>

static struct early {
    early() { printf("plugin: %s\n", dlsym(RTLD_DEFAULT, "getenv") ? "found" : "lost"); }
} early;
