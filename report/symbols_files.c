/* See symbols_files.h. */
#include "report/symbols_files.h"
#include "report/mem.h"
#include <errno.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_DEBUG "/usr/lib/debug"
#define MAX_LINK_NAME 4096u

struct search {
    struct gt_symbols_files *files;
    const struct gt_symbols_of *of;
    const struct gt_symbols_folders *folders;
    char *id;      /* the recorded build-id in hex; NULL: none */
    char *refused; /* the first file of another build, and why */
    char *name;    /* of .gnu_debuglink */
    uint32_t crc;
};

char *gt_symbols_hex(const uint8_t *bytes, size_t n)
{
    char *to = gt_mem_new(2 * n + 1, 1);
    for (size_t i = 0; i < n; i++)
        snprintf(to + 2 * i, 3, "%02x", bytes[i]);
    return to;
}

static int same_build(const struct search *s, const struct gt_elf *e)
{
    size_t n = s->of->build_id ? s->of->build_id_bytes : 0;
    return n == e->build_id_bytes && (!n || !memcmp(s->of->build_id, e->build_id, n));
}

static void refuse(struct search *s, const struct gt_elf *e, const char *what)
{
    char *its = gt_symbols_hex(e->build_id, e->build_id_bytes);
    if (!s->refused)
        s->refused = gt_mem_format("%s: %s: its build-id is %s, recorded was %s", e->path, what,
                                   *its ? its : "missing", s->id ? s->id : "none");
    free(its);
}

static enum gt_no_names reason(int rc)
{
    if (rc == -ENOENT || rc == -ENOTDIR)
        return GT_NAMES_GONE;
    return rc == -ENOEXEC ? GT_NAMES_NOT_ELF : rc ? GT_NAMES_UNREADABLE : GT_NAMES_REPLACED;
}

/* Takes `path`, which it frees, as the module if it is the one. `here`: it should be. */
static int try_module(struct search *s, char *path, int here)
{
    struct gt_symbols_files *f = s->files;
    int rc = gt_elf_open(&f->module, path);
    if (!strcmp(path, s->of->path))
        f->missing = reason(rc);
    if (!rc) {
        f->has_module = same_build(s, &f->module);
        if (!f->has_module && here)
            refuse(s, &f->module, "another build of the module");
    }
    if (!f->has_module)
        gt_elf_close(&f->module);
    free(path);
    return f->has_module;
}

/* The checksum of .gnu_debuglink, for files without a build-id. */
static int same_crc(struct gt_elf *e, uint32_t crc)
{
    uint8_t *piece = gt_mem_resize(NULL, 1, 1u << 16);
    uint32_t sum = 0;
    uint64_t at = 0;
    while (at < e->size) {
        size_t n = e->size - at < 1u << 16 ? (size_t)(e->size - at) : 1u << 16;
        if (gt_elf_read(e, at, piece, n))
            break;
        sum = lzma_crc32(piece, n, sum);
        at += n;
    }
    free(piece);
    return at == e->size && sum == crc;
}

/* Likewise for the debug file. The module itself is none. */
static int try_debug(struct search *s, char *path)
{
    struct gt_symbols_files *f = s->files;
    struct gt_elf *e = &f->debug;
    if (!gt_elf_open(e, path) &&
        !(f->has_module && e->inode == f->module.inode && e->device == f->module.device)) {
        if (s->id || e->build_id_bytes)
            f->has_debug = same_build(s, e);
        else
            f->has_debug = s->name && same_crc(e, s->crc);
        if (!f->has_debug)
            refuse(s, e, "a debug file of another build");
    }
    if (!f->has_debug)
        gt_elf_close(e);
    free(path);
    return f->has_debug;
}

/* A file that was deleted, or lies where we don't see it, as long as its process runs. */
static int try_process(struct search *s)
{
    const struct gt_symbols_of *of = s->of;
    char line[PATH_MAX + 128];
    FILE *maps;
    char *path;
    if (!of->pid)
        return 0;
    if (try_module(s, gt_mem_format("/proc/%u/root%s", of->pid, of->path), 0))
        return 1;
    path = gt_mem_format("/proc/%u/maps", of->pid);
    maps = fopen(path, "re");
    free(path);
    while (maps && !s->files->has_module && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from >= of->start && from < of->end)
            try_module(s, gt_mem_format("/proc/%u/map_files/%lx-%lx", of->pid, from, to), 0);
    }
    if (maps)
        fclose(maps);
    /* those are for the privileged, this is not; any file is the one that has no build-id */
    return s->files->has_module ||
           (s->id && try_module(s, gt_mem_format("/proc/%u/exe", of->pid), 0));
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static size_t folder_count(const struct search *s)
{
    return s->folders ? s->folders->count : 0;
}

static const char *folder(const struct search *s, size_t i)
{
    return i < folder_count(s) ? s->folders->at[i] : SYSTEM_DEBUG;
}

/* A descriptor or memory of the program: the same path is something else of ours. */
static int is_own(const char *path)
{
    return !strncmp(path, "/proc/self/", 11) || !strncmp(path, "/proc/thread-self/", 18) ||
           !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/memfd:", 7) ||
           !strncmp(path, "anon_inode:", 11) || strstr(path, "!/");
}

static void find_module(struct search *s)
{
    const struct gt_symbols_of *of = s->of;
    s->files->missing = GT_NAMES_NO_FILE;
    /* not what is in the current folder: a path without a slash is no path (the vDSO) */
    if (!of->path || !strchr(of->path, '/'))
        return;
    if ((!is_own(of->path) && try_module(s, gt_mem_copy(of->path, strlen(of->path)), 1)) ||
        try_process(s))
        return;
    for (size_t i = 0; i < folder_count(s); i++) {
        const char *at = folder(s, i);
        if (s->id &&
            (try_module(s, gt_mem_format("%s/.build-id/%.2s/%s", at, s->id, s->id + 2), 1) ||
             try_module(s, gt_mem_format("%s/%s/executable", at, s->id), 1)))
            return;
        if (try_module(s, gt_mem_format("%s/%s", at, of->path), 1) ||
            try_module(s, gt_mem_format("%s/%s", at, base_name(of->path)), 1))
            return;
    }
}

/* The name and the checksum in .gnu_debuglink. */
static void read_link(struct search *s)
{
    struct gt_elf *e = &s->files->module;
    const Elf64_Shdr *section = gt_elf_section(e, ".gnu_debuglink");
    char *text = gt_elf_contents(e, section, MAX_LINK_NAME);
    size_t n, at;
    if (!text)
        return;
    n = strlen(text);
    at = (n + 4) & ~(size_t)3;
    /* the name alone: no file from another place */
    if (n && !strchr(text, '/') && at + sizeof s->crc <= section->sh_size) {
        memcpy(&s->crc, text + at, sizeof s->crc);
        s->name = gt_mem_copy(text, n);
    }
    free(text);
}

/* Where .gnu_debuglink says, for the module's folder by one of its names. */
static int try_link(struct search *s, const char *path)
{
    int n = (int)(base_name(path) - path);
    if (try_debug(s, gt_mem_format("%.*s%s", n, path, s->name)) ||
        try_debug(s, gt_mem_format("%.*s.debug/%s", n, path, s->name)))
        return 1;
    for (size_t i = 0; i <= folder_count(s); i++)
        if (try_debug(s, gt_mem_format("%s/%.*s%s", folder(s, i), n, path, s->name)))
            return 1;
    return 0;
}

static void find_debug(struct search *s)
{
    size_t n = folder_count(s);
    char *real;
    for (size_t i = 0; s->id && i <= n; i++)
        if (try_debug(
                s, gt_mem_format("%s/.build-id/%.2s/%s.debug", folder(s, i), s->id, s->id + 2)) ||
            try_debug(s, gt_mem_format("%s/%s/debuginfo", folder(s, i), s->id)))
            return;
    if (s->files->has_module)
        read_link(s);
    if (s->name) {
        const char *path = s->files->module.path;
        if (try_link(s, s->of->path))
            return;
        real = realpath(path, NULL);
        int found = real && strcmp(real, s->of->path) != 0 && try_link(s, real);
        free(real);
        for (size_t i = 0; !found && i < n; i++)
            found = try_debug(s, gt_mem_format("%s/%s", folder(s, i), s->name));
        if (found)
            return;
    }
    /* or the module as it was before it was stripped */
    for (size_t i = 0; s->of->path && i < n; i++)
        if (try_debug(s, gt_mem_format("%s/%s.debug", folder(s, i), base_name(s->of->path))) ||
            try_debug(s, gt_mem_format("%s/%s", folder(s, i), s->of->path)) ||
            try_debug(s, gt_mem_format("%s/%s", folder(s, i), base_name(s->of->path))))
            return;
}

/* The kernel's name of a program that was deleted while it ran has a word more: the name as it was,
 * by which another build may lie there now, and folders have it. NULL: there is none. The caller
 * frees. */
static char *before_deletion(const char *path)
{
    static const char mark[] = " (deleted)";
    size_t n = path ? strlen(path) : 0, more = sizeof mark - 1;
    if (n <= more || strcmp(path + n - more, mark) != 0 || !access(path, F_OK))
        return NULL;
    return gt_mem_copy(path, n - more);
}

void gt_symbols_files_open(struct gt_symbols_files *f, const struct gt_symbols_of *as,
                           const struct gt_symbols_folders *folders)
{
    struct gt_symbols_of undeleted = *as, *of = &undeleted;
    struct search s = {.files = f, .of = of, .folders = folders};
    char *path = before_deletion(as->path);
    of->path = path ? path : as->path;
    *f = (struct gt_symbols_files){.module.fd = -1, .debug.fd = -1};
    if (of->build_id && of->build_id_bytes)
        s.id = gt_symbols_hex(of->build_id, of->build_id_bytes);
    find_module(&s);
    if (f->has_module) {
        free(s.refused);
        s.refused = NULL;
    }
    if (f->has_module || s.id)
        find_debug(&s);
    if (!f->has_module && !f->has_debug && of->path && strchr(of->path, '/')) {
        if (s.refused)
            f->why = gt_mem_format("%s; no names or lines of it: give a folder with the "
                                   "recorded one by "
                                   "--debug-dir",
                                   s.refused);
        else
            f->why = gt_mem_format(
                "%s: not here, or no ELF file; no names or lines of it: give a folder "
                "with it by --debug-dir%s%s",
                of->path, s.id ? "; its build-id is " : "", s.id ? s.id : "");
    } else if (s.refused && f->has_module && !f->has_debug) {
        f->why = gt_mem_format("%s; not used: give a folder with the right one by --debug-dir",
                               s.refused);
    }
    free(path);
    free(s.id);
    free(s.name);
    free(s.refused);
}

void gt_symbols_files_close(struct gt_symbols_files *f)
{
    gt_elf_close(&f->module);
    gt_elf_close(&f->debug);
    free(f->why);
}
