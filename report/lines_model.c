/* See lines.h. A module at a time, so that only one has its tables in memory. */
#include "report/lines.h"
#include "core/layout.h"
#include "report/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Modules without debug information are most of a system: told in one line, with some names. */
#define NAMED 4u

struct fill {
    struct gt_model *m;
    const struct gt_symbols_folders *folders;
    int lines;
    struct gt_list *by; /* for gt_stacks_replace */
    struct gt_symbols *symbols;
    char *told; /* the last warning: some are the same for all modules */
    unsigned without;
    char *names; /* of modules without debug information */
};

static size_t unhex(const char *hex, uint8_t to[GT_BUILD_ID_MAX])
{
    size_t n = 0;
    unsigned byte;
    int used;
    while (n < GT_BUILD_ID_MAX && sscanf(hex + 2 * n, "%2x%n", &byte, &used) == 1 && used == 2)
        to[n++] = (uint8_t)byte;
    return hex[2 * n] ? 0 : n;
}

static gt_text text(struct gt_model *m, const char *s)
{
    return s ? gt_model_textz(m, s) : 0;
}

static void fill_frame(struct fill *f, uint32_t id)
{
    struct gt_stack_frame old = f->m->frames[id];
    const struct gt_line *at;
    struct gt_symbol symbol;
    size_t n = f->lines ? gt_lines_at(f->symbols, old.offset, old.exact, &at) : 0;
    for (size_t i = 0; i < n; i++) {
        struct gt_stack_frame new = old;
        new.inlined = i + 1 < n;
        if (new.inlined || !old.function)
            new.function = text(f->m, at[i].function);
        new.file = text(f->m, at[i].file);
        new.line = at[i].line;
        gt_model_list(f->m, &f->by[id], gt_stacks_frame(f->m, &new));
    }
    if (!n && !old.function && !gt_symbols_at(f->symbols, old.offset, old.exact, &symbol)) {
        old.function = text(f->m, symbol.name);
        gt_model_list(f->m, &f->by[id], gt_stacks_frame(f->m, &old));
    }
}

static void tell(struct fill *f, const char *path)
{
    const char *why = gt_symbols_why(f->symbols);
    if (!why && f->lines)
        why = gt_lines_why(f->symbols);
    if (!why || (f->told && !strcmp(f->told, why)))
        return;
    if (why == gt_lines_why(f->symbols) && strstr(why, ": no debug information")) {
        const char *slash = strrchr(path, '/');
        char *more = gt_mem_format("%s%s%s", f->names ? f->names : "", f->names ? ", " : "",
                                   slash ? slash + 1 : path);
        if (f->without++ < NAMED) {
            free(f->names);
            f->names = more;
        } else {
            free(more);
        }
        return;
    }
    fprintf(stderr, "gputally: %s\n", why);
    free(f->told);
    f->told = gt_mem_copy(why, strlen(why));
}

static int wants(const struct fill *f, const struct gt_stack_frame *frame, size_t module)
{
    return frame->kind == GT_STACK_IS_NATIVE && frame->module == module + 1 && !frame->inlined &&
           !frame->file && (f->lines || !frame->function);
}

static void fill_module(struct fill *f, size_t module, size_t frames)
{
    const struct gt_stack_module *d = &f->m->modules[module];
    uint8_t id[GT_BUILD_ID_MAX];
    struct gt_symbols_of of = {.path = gt_model_string(f->m, d->path, NULL), .build_id = id};
    of.build_id_bytes = unhex(gt_model_string(f->m, d->build_id, NULL), id);
    for (size_t i = 0; i < frames; i++) {
        const struct gt_stack_frame *frame = &f->m->frames[i];
        if (!wants(f, frame, module))
            continue;
        if (!f->symbols)
            f->symbols = gt_symbols_open(&of, f->folders);
        gt_symbols_want(f->symbols, frame->offset, frame->exact);
    }
    for (size_t i = 0; f->symbols && i < frames; i++)
        if (wants(f, &f->m->frames[i], module))
            fill_frame(f, (uint32_t)i);
    if (f->symbols) {
        f->m->modules[module].no_names = (uint8_t)gt_symbols_no_names(f->symbols);
        tell(f, gt_model_string(f->m, d->path, NULL));
    }
    gt_symbols_free(f->symbols);
    f->symbols = NULL;
}

void gt_lines_fill(struct gt_model *m, const struct gt_symbols_folders *folders, int lines)
{
    size_t frames = m->frame_count;
    struct fill f = {.m = m, .folders = folders, .lines = lines};
    f.by = gt_mem_new(frames, sizeof *f.by);
    for (size_t i = 0; i < m->module_count; i++)
        fill_module(&f, i, frames);
    if (f.without)
        fprintf(stderr,
                "gputally: --lines: no debug information of %s%s: build with -g, install the "
                "packages with it, or name its folder by --debug-dir\n",
                f.names, f.without > NAMED ? ", ..." : "");
    gt_stacks_replace(m, f.by, frames);
    free(f.by);
    free(f.told);
    free(f.names);
}
