/* Plays the part of Kokkos' core for the clients that need no Kokkos: looks for a tool as a version
 * does (KOKKOS_VERSION 30100, 30600 or 40000), opens it, asks it for every function and calls what
 * it has. Without a tool every call does nothing. */
#ifndef KOKKOS_CLIENT_H
#define KOKKOS_CLIENT_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct space {
    char name[64];
};

static struct {
    void (*init_library)(int, uint64_t, uint32_t, void *);
    void (*finalize_library)(void);
    void (*parse_args)(int, char **);
    void (*print_help)(char *);
    void (*request_tool_settings)(uint32_t, bool[256]);
    void (*declare_metadata)(const char *, const char *);
    void (*begin_parallel_for)(const char *, uint32_t, uint64_t *);
    void (*begin_parallel_reduce)(const char *, uint32_t, uint64_t *);
    void (*begin_parallel_scan)(const char *, uint32_t, uint64_t *);
    void (*begin_fence)(const char *, uint32_t, uint64_t *);
    void (*end_parallel_for)(uint64_t);
    void (*end_parallel_reduce)(uint64_t);
    void (*end_parallel_scan)(uint64_t);
    void (*end_fence)(uint64_t);
    void (*push_profile_region)(const char *);
    void (*pop_profile_region)(void);
    void (*profile_event)(const char *);
    void (*create_profile_section)(const char *, uint32_t *);
    void (*start_profile_section)(uint32_t);
    void (*stop_profile_section)(uint32_t);
    void (*destroy_profile_section)(uint32_t);
    void (*allocate_data)(struct space, const char *, const void *, uint64_t);
    void (*deallocate_data)(struct space, const char *, const void *, uint64_t);
    void (*begin_deep_copy)(struct space, const char *, const void *, struct space, const char *,
                            const void *, uint64_t);
    void (*end_deep_copy)(void);
    void (*dual_view_sync)(const char *, const void *, bool);
    void (*dual_view_modify)(const char *, const void *, bool);
} tool;

/* Calls a function of the tool if it has it. */
#define KP(function, ...)                                                                          \
    do {                                                                                           \
        if (tool.function)                                                                         \
            tool.function(__VA_ARGS__);                                                            \
    } while (0)

static inline struct space in(const char *name)
{
    struct space s;

    memset(s.name, '?', sizeof(s.name)); /* Kokkos does not clear it either */
    strncpy(s.name, name, sizeof(s.name) - 1);
    return s;
}

static inline int open_tool(const char *libraries)
{
    char first[4096];
    void *lib;

    snprintf(first, sizeof(first), "%.*s", (int)strcspn(libraries, ";"), libraries);
    lib = dlopen(first, RTLD_NOW | RTLD_GLOBAL);
    if (!lib) {
        printf("Error: Unable to load KokkosP library: %s\n", dlerror());
        return -1;
    }
    dlerror();
#define LOOK_UP(function) *(void **)&tool.function = dlsym(lib, "kokkosp_" #function)
    LOOK_UP(init_library);
    if (tool.init_library && dlerror())
        puts("wrong: dlsym found it and left an error");
    LOOK_UP(finalize_library);
    LOOK_UP(parse_args);
    LOOK_UP(print_help);
    LOOK_UP(request_tool_settings);
    LOOK_UP(declare_metadata);
    LOOK_UP(begin_parallel_for);
    LOOK_UP(begin_parallel_reduce);
    LOOK_UP(begin_parallel_scan);
    LOOK_UP(begin_fence);
    LOOK_UP(end_parallel_for);
    LOOK_UP(end_parallel_reduce);
    LOOK_UP(end_parallel_scan);
    LOOK_UP(end_fence);
    LOOK_UP(push_profile_region);
    LOOK_UP(pop_profile_region);
    LOOK_UP(profile_event);
    LOOK_UP(create_profile_section);
    LOOK_UP(start_profile_section);
    LOOK_UP(stop_profile_section);
    LOOK_UP(destroy_profile_section);
    LOOK_UP(allocate_data);
    LOOK_UP(deallocate_data);
    LOOK_UP(begin_deep_copy);
    LOOK_UP(end_deep_copy);
    LOOK_UP(dual_view_sync);
    LOOK_UP(dual_view_modify);
    return 0;
}

/* What each version does, and what it prints or dies of, is Kokkos' own behaviour. */
static inline void kokkos_initialize(int argc, char **argv)
{
    const char *library = NULL, *old = getenv("KOKKOS_PROFILE_LIBRARY");
    static bool settings[256];
    uint64_t version = 20171029;

#if KOKKOS_VERSION >= 30300
    version = 20210623;
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--kokkos-tools-library=", 23) == 0)
            library = argv[i] + 23;
    if (old && library && strcmp(old, library) != 0) {
        puts("Error: expecting a match between --kokkos-tools-library and KOKKOS_PROFILE_LIBRARY");
        exit(3);
    }
#else
    (void)argc;
    (void)argv;
#endif
    if (old)
        library = old;
#if KOKKOS_VERSION >= 30700
    const char *libs = getenv("KOKKOS_TOOLS_LIBS");

    version = 20240906;
    if (old)
        puts("Warning: KOKKOS_PROFILE_LIBRARY is deprecated");
    if (old && libs && strcmp(old, libs) != 0) {
        puts("Error: KOKKOS_PROFILE_LIBRARY and KOKKOS_TOOLS_LIBS are both set and do not match");
        exit(3);
    }
    if (libs)
        library = libs;
#endif
    if (!library || !*library || open_tool(library) != 0)
        return;
    KP(init_library, 0, version, 0, NULL);
    memset(settings, 1, sizeof(settings));
    KP(request_tool_settings, 1, settings);
    if (tool.request_tool_settings && settings[0])
        puts("wrong: the tool wants a fence before each event");
    for (size_t i = 1; i < sizeof(settings); i++)
        if (!settings[i])
            puts("wrong: settings that are none were written");
    KP(parse_args, 1, argv);
}

static inline void kokkos_finalize(void)
{
    KP(finalize_library);
    memset(&tool, 0, sizeof(tool));
}

#endif
