/* The parts of the maze (tests/stack) that were built, loaded. */
#ifndef MAZE_PARTS_H
#define MAZE_PARTS_H

#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/stack/maze.h"

struct maze_steps {
    maze_step *steps[1000];
    unsigned count;
};

/* Names of the files, sorted by nothing. Returns how many. */
static inline int maze_files(char (*paths)[512], int max)
{
    const char *build = getenv("GT_TEST_BUILD");
    char folder[256];
    struct dirent *e;
    int n = 0;

    snprintf(folder, sizeof folder, "%s/stack", build ? build : "build");
    DIR *d = opendir(folder);
    ck_assert_msg(d != NULL, "%s is missing", folder);
    while ((e = readdir(d)) && n < max) {
        size_t len = strlen(e->d_name);
        if (strncmp(e->d_name, "maze-", 5) == 0 && strcmp(e->d_name + len - 3, ".so") == 0)
            snprintf(paths[n++], sizeof *paths, "%s/%s", folder, e->d_name);
    }
    closedir(d);
    ck_assert_int_ge(n, 1);
    return n;
}

/* Adds one part's steps; returns its handle. */
static inline void *maze_load(const char *path, struct maze_steps *to)
{
    maze_step *const *(*part)(void);
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    ck_assert_msg(lib != NULL, "%s", dlerror());
    *(void **)&part = dlsym(lib, "maze_part");
    for (maze_step *const *p = part(); *p; p++)
        to->steps[to->count++] = *p;
    return lib;
}

#endif
