/* A program that opens libroctx64.so.4 itself, and one that does not know that a plugin of it
 * annotates. Exit 1: something differs from the library alone. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int plugged(const char *folder)
{
    char path[4200];
    int level = -9, popped;
    unsigned calls = 0;
    int (*plugin)(int *, unsigned *);
    void *lib;

    snprintf(path, sizeof(path), "%s/roctxplugin.so", folder);
    lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    plugin = (int (*)(int *, unsigned *))dlsym(lib, "plugin");
    popped = plugin(&level, &calls);
    printf("plugin %d %d %u\n", level, popped, calls);
    return 0;
}

static int opened(int plugin_first)
{
    void *lib = dlopen("libroctx64.so.4", RTLD_NOW | RTLD_LOCAL);
    int (*push)(const char *), (*pop)(void);
    uint64_t (*start)(const char *);
    void (*stop)(uint64_t);
    unsigned (*calls)(void);

    if (!lib) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    push = (int (*)(const char *))dlsym(lib, "roctxRangePushA");
    pop = (int (*)(void))dlsym(lib, "roctxRangePop");
    start = (uint64_t(*)(const char *))dlsym(lib, "roctxRangeStartA");
    stop = (void (*)(uint64_t))dlsym(lib, "roctxRangeStop");
    calls = (unsigned (*)(void))dlsym(lib, "roctxStubCalls");
    for (int i = 0; i < 6; i++) {
        printf("push %d", push("opened"));
        printf(" pop %d\n", pop());
    }
    printf("id %d\n", (int)start("opened async"));
    stop(1);
    printf("%u calls\n", calls());
    /* in neither */
    if (dlsym(lib, "roctxNothing") || !dlerror())
        return 1;
    dlclose(lib);
    if (plugin_first) { /* which has it still */
        push("closed");
        pop();
    }
    return 0;
}

int main(int argc, char **argv)
{
    char folder[4096];
    int plugin_first = argc > 1 && strcmp(argv[1], "plugin-first") == 0, bad = 0;

    snprintf(folder, sizeof(folder), "%s", argv[0]);
    *strrchr(folder, '/') = 0;
    if (plugin_first)
        bad |= plugged(folder) || opened(1);
    else
        bad |= opened(0);
    puts(bad ? "wrong" : "done");
    return bad;
}
