/* What a program links to call ITT, in little: finds the collector in INTEL_LIBITTNOTIFY64, opens
 * it, hands it the list of its function pointers. Until then (and for ever, without a collector)
 * the pointers are NULL and calls do nothing. Domains and strings can be made before: structs of
 * the program's own. The types are ours (preload/abi/itt.h); that they are the real ones is shown
 * by tests/e2e/test_itt.py with ittapi from PyPI and PyTorch.
 *
 * --expect prints the lines that tests/apps/nvtx_basic.c explains. */
#ifndef ITT_CLIENT_H
#define ITT_CLIENT_H

#include "client.h"

#include "../../preload/abi/itt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name)
#define CALL(name, result, parameters)                                                             \
    static result(*itt_##name) parameters __attribute__((unused));
#include "../../preload/hooks/itt.def"
#undef CALL

/* A function that no collector has to have, and one whose own version stays when none has it. */
static void (*itt_suppress_push)(unsigned) __attribute__((unused));
static void own_thread_ignore(void) {}
static void (*itt_thread_ignore)(void) = own_thread_ignore;

#define CALL(name, result, parameters) {"__itt_" #name, (void **)&itt_##name, NULL, NULL, 1},
static struct gt_itt_call itt_list[] = {
#include "../../preload/hooks/itt.def"
    {"__itt_suppress_push", (void **)&itt_suppress_push, NULL, NULL, 1},
    {"__itt_thread_ignore", (void **)&itt_thread_ignore, (void *)own_thread_ignore,
     (void *)own_thread_ignore, 1},
    {NULL, NULL, NULL, NULL, 0},
};
#undef CALL
#undef EXPORT

/* Calls where there is a collector. IN: of a domain, which may be switched off. */
#define ITT(name, ...)                                                                             \
    do {                                                                                           \
        if (itt_##name)                                                                            \
            itt_##name(__VA_ARGS__);                                                               \
    } while (0)
#define IN(name, d, ...)                                                                           \
    do {                                                                                           \
        if ((d) && (d)->flags && itt_##name)                                                       \
            itt_##name(d, ##__VA_ARGS__);                                                          \
    } while (0)
#define GET(name, ...) (itt_##name ? itt_##name(__VA_ARGS__) : 0)

static const struct gt_itt_id no_id __attribute__((unused));
static struct gt_itt_global itt_global __attribute__((unused)) = {
    .magic = GT_ITT_MAGIC,
    .version_major = 3,
    .version_minor = 25,
    .version_build = 20240101,
    .api_list = itt_list,
};

/* The name of the collector, NULL if there is none. */
static __attribute__((unused)) const char *itt_start(void)
{
    const char *path = getenv("INTEL_LIBITTNOTIFY64");
    void *lib = path ? dlopen(path, RTLD_LAZY) : NULL;
    void (*init)(struct gt_itt_global *, int);

    if (!lib)
        return NULL;
    *(void **)&init = dlsym(lib, "__itt_api_init");
    if (init)
        init(&itt_global, -1);
    itt_global.api_initialized = 1;
    return path;
}

static __attribute__((unused)) struct gt_itt_id id_of(unsigned long long n)
{
    return (struct gt_itt_id){n, 0, 0};
}

/* begin and end a task named by a text */
static __attribute__((unused)) void begin(const struct gt_itt_domain *d, const char *name)
{
    IN(task_begin, d, no_id, no_id, GET(string_handle_create, name));
}

static __attribute__((unused)) void end(const struct gt_itt_domain *d)
{
    IN(task_end, d);
}

#endif
