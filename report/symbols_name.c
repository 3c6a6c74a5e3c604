/* See symbols_name.h. By libiberty, which knows Itanium C++ and both manglings of Rust.
 *
 * A short name can stand for a text of any length, since its parts may refer to each other. So the
 * text is taken by a callback, which jumps out when there is enough. Nothing is on the heap then,
 * but for names with punycode, where a few bytes are lost. D is left alone: its demangler has no
 * such limit. */
#include "report/symbols_name.h"
#include "report/mem.h"
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stddef.h>
#include <string.h>

struct text {
    jmp_buf full;
    size_t used;
    char at[GT_NAME_MAX + 4];
};

static void add(const char *s, size_t n, void *arg)
{
    struct text *t = arg;
    size_t room = GT_NAME_MAX - 3 - t->used;
    if (!n)
        return;
    if (n > room) {
        memcpy(t->at + t->used, s, room);
        memcpy(t->at + t->used + room, "...", 3);
        t->used += room + 3;
        longjmp(t->full, 1);
    }
    memcpy(t->at + t->used, s, n);
    t->used += n;
}

static int rust(const char *s, struct text *t)
{
    t->used = 0;
    return rust_demangle_callback(s, DMGL_PARAMS | DMGL_ANSI, add, t);
}

static int cxx(const char *s, struct text *t)
{
    /* its own limit refuses names over 1024 bytes, and libtorch has such; with ours it recurses no
     * deeper than they are long */
    t->used = 0;
    return cplus_demangle_v3_callback(s, DMGL_PARAMS | DMGL_ANSI | DMGL_NO_RECURSE_LIMIT, add, t);
}

/* 1: t has the text. Rust's older names are C++'s with a hash as the last part. */
static int demangle(const char *s, struct text *t)
{
    if (setjmp(t->full))
        return 1;
    if ((s[1] == 'R' || strstr(s, "17h")) && rust(s, t))
        return 1;
    return s[1] == 'Z' && cxx(s, t);
}

char *gt_symbols_name(const char *linkage)
{
    struct text t;
    char plain[GT_NAME_MAX + 1];
    size_t n = strnlen(linkage, GT_NAME_MAX + 1);
    const char *version = n ? memchr(linkage + 1, '@', n - 1) : NULL;
    if (version)
        n = (size_t)(version - linkage);
    if (n > GT_NAME_MAX) {
        memcpy(plain, linkage, GT_NAME_MAX - 3);
        memcpy(plain + GT_NAME_MAX - 3, "...", 3);
        return gt_mem_copy(plain, GT_NAME_MAX);
    }
    memcpy(plain, linkage, n);
    plain[n] = 0;
    if (n > 2 && plain[0] == '_' && (plain[1] == 'Z' || plain[1] == 'R') && demangle(plain, &t))
        return gt_mem_copy(t.at, t.used);
    return gt_mem_copy(plain, n);
}
