/* What nm says of the files that tests/symbols/make has built, for the suites of symbols. */
#ifndef GT_SYMBOL_FILES_H
#define GT_SYMBOL_FILES_H

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "report/elf_file.h"
#include "report/symbols.h"

#define NAMES_MAX 8192

struct nm_line {
    uint64_t start, size;
    char type;
    char *linkage, *name; /* demangled by nm */
};

struct nm {
    struct nm_line lines[NAMES_MAX];
    int count, all;
};

static inline const char *symbol_folder(void)
{
    static char path[4096];
    const char *build = getenv("GT_TEST_BUILD");
    ssize_t n;
    char *slash;
    if (build) {
        snprintf(path, sizeof path, "%s/symbols", build);
        return path;
    }
    /* the suite is in BUILD/tests */
    n = readlink("/proc/self/exe", path, sizeof path - 16);
    ck_assert_int_gt(n, 0);
    path[n] = 0;
    for (int i = 0; i < 2; i++)
        if ((slash = strrchr(path, '/')))
            *slash = 0;
    strcat(path, "/symbols");
    return path;
}

static inline const char *symbol_file(const char *name)
{
    static char paths[256][4200];
    static int next;
    char *to = paths[next++ % 256];
    snprintf(to, sizeof paths[0], "%s/%s", symbol_folder(), name);
    return to;
}

/* Files of the folder itself: whole ones. */
static inline int symbol_files(char (*paths)[512], int max)
{
    DIR *d = opendir(symbol_folder());
    struct dirent *e;
    int n = 0;
    while (d && (e = readdir(d)) && n < max) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot && (!strcmp(dot, ".so") || !strcmp(dot, ".pie") || !strcmp(dot, ".exe")))
            snprintf(paths[n++], sizeof paths[0], "%s", symbol_file(e->d_name));
    }
    if (d)
        closedir(d);
    return n;
}

static inline void nm_run(struct nm *to, const char *options, const char *path, int demangled)
{
    char command[8192], line[65536];
    FILE *f;
    int n = 0;
    snprintf(command, sizeof command, "LC_ALL=C nm %s '%s'", options, path);
    f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        unsigned long long start, size = 0;
        char type;
        int at = 0;
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%llx %llx %c %n", &start, &size, &type, &at) < 3 || !at) {
            size = 0;
            if (sscanf(line, "%llx %c %n", &start, &type, &at) < 2 || !at)
                continue;
        }
        ck_assert_int_lt(n, NAMES_MAX);
        if (demangled) {
            ck_assert_uint_eq(to->lines[n].start, start);
            to->lines[n].name = strdup(line + at);
        } else {
            to->lines[n] = (struct nm_line){.start = start, .size = size, .type = type};
            to->lines[n].linkage = strdup(line + at);
        }
        n++;
    }
    ck_assert_int_eq(pclose(f), 0);
    ck_assert(!demangled || n == to->count);
    to->count = n;
}

static inline void nm_free(struct nm *nm)
{
    for (int i = 0; i < nm->all; i++) {
        free(nm->lines[i].linkage);
        free(nm->lines[i].name);
    }
    *nm = (struct nm){.count = 0};
}

/* Functions and labels in code, in front of all else. The caller frees with nm_free. */
static inline void nm_read(struct nm *to, const char *path)
{
    struct nm_line swap;
    int n = 0;
    nm_free(to);
    nm_run(to, "-pS", path, 0);
    nm_run(to, "-pSC", path, 1);
    for (int i = 0; i < to->count; i++) {
        struct nm_line *l = &to->lines[i];
        if (strchr("tTwWi", l->type) && strncmp(l->linkage, ".annobin", 8) &&
            strncmp(l->linkage, ".L", 2) && l->linkage[0] != '$') {
            swap = to->lines[n];
            to->lines[n++] = *l;
            *l = swap;
        }
    }
    ck_assert_int_gt(n, 0);
    to->all = to->count;
    to->count = n;
}

/* The module as it would be recorded, of the file that lies there now. */
static inline struct gt_symbols_of symbols_of(const char *path)
{
    static uint8_t ids[64][GT_BUILD_ID_MAX];
    static int next;
    struct gt_symbols_of of = {.path = path, .build_id = ids[next % 64]};
    struct gt_elf e;
    ck_assert_int_eq(gt_elf_open(&e, path), 0);
    memcpy(ids[next++ % 64], e.build_id, sizeof ids[0]);
    of.build_id_bytes = e.build_id_bytes;
    gt_elf_close(&e);
    return of;
}

static inline uint64_t nm_start(const struct nm *nm, const char *linkage)
{
    for (int i = 0; i < nm->count; i++)
        if (!strcmp(nm->lines[i].linkage, linkage))
            return nm->lines[i].start;
    ck_abort_msg("nm does not know %s", linkage);
    return 0;
}

#endif
