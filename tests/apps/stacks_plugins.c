/* Libraries that come and go while their calls are recorded: 4 threads load, call and unload two
 * libraries each in turn, which mostly get the same place and are the same but for their function's
 * name; 4 more threads record all the while. Prints how often each was called, and whether one has
 * ever taken another's place (of the first thread, alone, before the others start).
 *   stacks_plugins ROUNDS [alone] */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "gputally.h"
#include "stub/stacks_plug.h"

enum { CHURNERS = 4, WALKERS = 4 };
static int rounds;
static _Atomic int done;
static char folder[PATH_MAX];

static void call(void *name)
{
    gputally_range_push(name);
    gputally_range_pop();
}

/* Loads library number n, calls through it, unloads it. Returns where it was. */
static void *visit(int n, int depth)
{
    char path[PATH_MAX + 32], name[16];
    plug_enter *(*entry)(void);
    snprintf(path, sizeof path, "%s/libstacks_plug%d.so", folder, n);
    snprintf(name, sizeof name, "in plug_%d", n);
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    *(void **)&entry = dlsym(lib, "plug_entry");
    plug_enter *enter = entry();
    for (int i = 0; i < 5; i++)
        enter(call, name, depth);
    dlclose(lib);
    return (void *)enter;
}

static void *churn(void *arg)
{
    int first = *(int *)arg;
    for (int i = 0; i < rounds; i++)
        visit(first + i % 2, i % 3);
    return NULL;
}

static __attribute__((noipa)) void stay_inner(void)
{
    call("stays");
    __asm__ volatile("" ::: "memory");
}

static __attribute__((noipa)) void stay_outer(int depth)
{
    if (depth)
        stay_outer(depth - 1);
    else
        stay_inner();
    __asm__ volatile("" ::: "memory");
}

static void *walk(void *arg)
{
    long *calls = arg;
    for (; !done || *calls < 100; (*calls)++)
        stay_outer((int)(*calls % 7));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[CHURNERS + WALKERS];
    int first[CHURNERS] = {0, 2, 4, 6};
    long calls[WALKERS] = {0}, sum = 0;
    rounds = argc > 1 ? atoi(argv[1]) : 10;
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (n < 0)
        return 1;
    folder[n] = 0;
    *strrchr(folder, '/') = 0;

    int same = 0;
    for (int i = 0; i < rounds; i++)
        same += visit(0, 2) == visit(1, 2);
    printf("%s\n", same ? "another took the same place" : "never the same place");
    if (argc > 2)
        return 0;
    for (int i = 0; i < CHURNERS; i++)
        pthread_create(&t[i], NULL, churn, &first[i]);
    for (int i = 0; i < WALKERS; i++)
        pthread_create(&t[CHURNERS + i], NULL, walk, &calls[i]);
    for (int i = 0; i < CHURNERS; i++)
        pthread_join(t[i], NULL);
    done = 1;
    for (int i = 0; i < WALKERS; i++) {
        pthread_join(t[CHURNERS + i], NULL);
        sum += calls[i];
    }
    fprintf(stderr, "stays %ld\n", sum);
    return 0;
}
