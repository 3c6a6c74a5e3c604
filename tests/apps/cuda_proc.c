/* Ways to the driver that are not by name, on the stub: what cuGetProcAddress hands out (`proc`),
 * the driver closed and opened again at another place (`reload`), no driver at all (`absent`),
 * calls after the end (`late`). Prints which function the driver saw, the same with us and without
 * us. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "stub/cuda_stub.h"

typedef unsigned proc2_fn(const char *, void **, int, uint64_t, int *);
typedef unsigned proc1_fn(const char *, void **, int, uint64_t);

static struct stub_seen *seen;

static void *open_driver(void)
{
    void *h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (h)
        seen = ((stub_seen_fn *)dlsym(h, "stub_driver_seen"))();
    return h;
}

static uintptr_t scratch[64];

static void call(const char *what, void *fn)
{
    uintptr_t s = (uintptr_t)scratch;
    unsigned r, before = seen->calls;

    r = ((slot_fn *)fn)(s, s, s, 1, s, s, s, s, s, s, s, s, s, s, s, s);
    printf("%s: %s, call %u, gave %u\n", what, seen->calls == before ? "nothing" : seen->name,
           seen->calls, r);
}

static int proc(void)
{
    static const struct {
        const char *symbol;
        int version;
        uint64_t flags;
    } asked[] = {
        {"cuMemAlloc", 2000, 0},           {"cuMemAlloc", 3010, 0},
        {"cuMemAlloc", 3020, 0},           {"cuMemAlloc", 13000, 2},
        {"cuMemAlloc", 14000, 0},          {"cuMemAlloc", 1000, 0},
        {"cuMemFree", 14000, 0},           {"cuMemcpyHtoD", 3020, 2},
        {"cuMemcpyHtoD", 7000, 2},         {"cuMemcpyHtoD", 7000, 0},
        {"cuMemcpyHtoD", 7000, 1},         {"cuLaunchKernel", 6000, 2},
        {"cuLaunchKernel", 12000, 2},      {"cuLaunchKernel", 12000, 0},
        {"cuGraphLaunch", 12000, 2},       {"cuCtxGetFlags", 12000, 0},
        {"cuStreamWaitValue32", 11060, 2}, {"cuStreamWaitValue32", 11070, 2},
        {"cuStreamWaitValue32", 11070, 0}, {"cuMemAlloc_v2", 12000, 0},
        {"cuNothing", 12000, 0},           {"cuda", 12000, 0},
    };
    void *h = open_driver(), *pfn = scratch;
    proc2_fn *two = (proc2_fn *)dlsym(h, "cuGetProcAddress_v2");
    proc1_fn *one = (proc1_fn *)dlsym(h, "cuGetProcAddress");
    int status = 7;
    unsigned r;

    /* the runtime's first question */
    r = two("", &pfn, 0, 0, NULL);
    printf("empty: %u, %s\n", r, pfn ? "something" : "NULL");
    r = two(NULL, &pfn, 12000, 0, NULL);
    printf("no name: %u\n", r);
    r = two("cuInit", NULL, 12000, 0, &status);
    printf("no place: %u\n", r);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char what[64];

        snprintf(what, sizeof what, "%s %d %d", asked[i].symbol, asked[i].version,
                 (int)asked[i].flags);
        pfn = scratch;
        r = two(asked[i].symbol, &pfn, asked[i].version, asked[i].flags, i % 2 ? &status : NULL);
        if (r == 0)
            call(what, pfn);
        else
            printf("%s: %u, %s, status %d\n", what, r, pfn ? "something" : "NULL", status);
        if (one(asked[i].symbol, &pfn, asked[i].version, asked[i].flags) == 0)
            call("  the old way", pfn);
    }
    /* it hands out itself, with 4 arguments and with 5 */
    if (two("cuGetProcAddress", &pfn, 11030, 0, NULL) == 0 &&
        ((proc1_fn *)pfn)("cuEventRecord", &pfn, 12000, 2) == 0)
        call("by 4", pfn);
    if (two("cuGetProcAddress", &pfn, 12000, 0, NULL) == 0 &&
        ((proc2_fn *)pfn)("cuEventRecord", &pfn, 12000, 0, &status) == 0)
        call("by 5", pfn);
    return 0;
}

static int reload(void)
{
    uintptr_t before = 0;

    for (int i = 0; i < 4; i++) {
        void *h = open_driver(), *pfn = NULL;
        struct link_map *map = NULL;

        dlinfo(h, RTLD_DI_LINKMAP, &map);
        printf("%s place\n", map->l_addr == before ? "the same" : "another");
        before = map->l_addr;
        call("dlsym", dlsym(h, "cuLaunchKernel"));
        if (((proc2_fn *)dlsym(h, "cuGetProcAddress_v2"))("cuMemFree", &pfn, 12000, 0, NULL) == 0)
            call("cuGetProcAddress", pfn);
        /* not asked for by name in this life */
        if (i < 2)
            call("dlsym", dlsym(h, "cuCtxSynchronize"));
        dlclose(h);
        printf("%s\n", dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) ? "still there" : "gone");
        /* nothing may come to the same place again */
        if (i % 2 == 0)
            mmap((void *)before, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                 -1, 0);
    }
    return 0;
}

extern unsigned cuInit(unsigned flags) __attribute__((weak));

static int absent(void)
{
    void *self = dlopen(NULL, RTLD_NOW);

    printf("default %s", dlsym(RTLD_DEFAULT, "cuInit") ? "found" : "none");
    printf(", error %s\n", dlerror() ? "told" : "not told");
    printf("program %s", dlsym(self, "cudaMalloc") ? "found" : "none");
    printf(", error %s\n", dlerror() ? "told" : "not told");
    printf("__cuda %s\n", dlsym(RTLD_DEFAULT, "__cudaLaunchKernel") ? "found" : "none");
    printf("other %s\n", dlsym(self, "cube") ? "found" : "none");
    dlerror();
    /* no library, yet whoever preloads us has the name: it says what CUDA says before cuInit */
    fprintf(stderr, "weak %d\n", cuInit ? (int)cuInit(0) : -1);
    return 0;
}

static slot_fn *freeing;

static void by_key(void *p)
{
    (void)p;
    call("thread's end", (void *)freeing);
}

static void *thread(void *p)
{
    pthread_key_t key;

    pthread_key_create(&key, by_key);
    pthread_setspecific(key, p);
    seen = ((stub_seen_fn *)dlsym(p, "stub_driver_seen"))();
    return NULL;
}

static void at_exit(void)
{
    call("atexit", (void *)freeing);
}

__attribute__((destructor)) static void end(void)
{
    if (freeing)
        call("destructor", (void *)freeing);
    fflush(stdout);
}

static int late(void)
{
    pthread_t t;
    void *h = open_driver();
    struct stub_seen *mine = seen;

    freeing = (slot_fn *)dlsym(h, "cuMemFree_v2");
    atexit(at_exit);
    pthread_create(&t, NULL, thread, h);
    pthread_join(t, NULL);
    seen = mine;
    call("main", (void *)freeing);
    return 3;
}

/* Opened and closed with its driver, which nobody else has: nothing is asked for by name. */
static int plugin(int mode)
{
    for (int i = 0; i < 3; i++) {
        void *h = dlopen("cudaplugin.so", RTLD_NOW | RTLD_LOCAL | mode), *d;
        unsigned (*launch)(void) = (unsigned (*)(void))dlsym(h, "plugin_launch");
        struct link_map *map = NULL;
        unsigned r = launch();

        d = open_driver();
        printf("plugin: %s, call %u, gave %u\n", seen->name, seen->calls, r);
        dlinfo(d, RTLD_DI_LINKMAP, &map);
        uintptr_t before = map->l_addr;
        dlclose(d);
        dlclose(h);
        printf("%s\n", dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) ? "still there" : "gone");
        mmap((void *)before, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
             0);
    }
    return 0;
}

static int old(void)
{
    void *h = open_driver(), *pfn;
    proc1_fn *one = (proc1_fn *)dlsym(h, "cuGetProcAddress");

    printf("second: %s", dlsym(h, "cuGetProcAddress_v2") ? "found" : "none");
    printf(", error %s\n", dlerror() ? "told" : "not told");
    if (one("cuMemAlloc", &pfn, 11030, 0) == 0)
        call("cuMemAlloc", pfn);
    if (one("cuGetProcAddress", &pfn, 11030, 0) == 0 &&
        ((proc1_fn *)pfn)("cuMemFree", &pfn, 11030, 2) == 0)
        call("cuMemFree", pfn);
    printf("newer: %u\n", one("cuLaunchKernelEx", &pfn, 11030, 0));
    printf("newer by name: %s\n", dlsym(h, "cuLaunchKernelEx") ? "found" : "none");
    call("by name", dlsym(h, "cuMemsetD8_v2"));
    return 0;
}

static int profiler(void)
{
    void *h = open_driver();
    void *start = dlsym(h, "cuProfilerStart"), *stop = dlsym(h, "cuProfilerStop");

    call("before", dlsym(h, "cuLaunchKernel"));
    call("start", start);
    call("first", dlsym(h, "cuMemFree_v2"));
    call("stop", stop);
    call("stop", stop);
    call("between", dlsym(h, "cuCtxSynchronize"));
    call("start", start);
    call("second", dlsym(h, "cuEventRecord"));
    return 0;
}

static int inside(void)
{
    void *h = open_driver();

    printf("the driver finds %s\n",
           ((unsigned (*)(void))dlsym(h, "stub_inside"))() ? "its own" : "another's");
    call("the program", dlsym(h, "cuCtxSynchronize"));
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "proc";

    return strcmp(mode, "proc") == 0       ? proc()
           : strcmp(mode, "reload") == 0   ? reload()
           : strcmp(mode, "late") == 0     ? late()
           : strcmp(mode, "plugin") == 0   ? plugin(0)
           : strcmp(mode, "deepbind") == 0 ? plugin(RTLD_DEEPBIND)
           : strcmp(mode, "old") == 0      ? old()
           : strcmp(mode, "inside") == 0   ? inside()
           : strcmp(mode, "profiler") == 0 ? profiler()
                                           : absent();
}
