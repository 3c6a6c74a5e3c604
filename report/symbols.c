/* See symbols.h. The files come from symbols_files.c, the table of functions is symbols_table.c. */
#include "report/symbols.h"
#include "report/mem.h"
#include "report/symbols_inner.h"
#include "report/symbols_name.h"
#include "report/symbols_plt.h"
#include "report/symbols_xz.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Compressed; real ones have up to some MiB. */
#define MAX_DEBUGDATA (64u << 20)

static void add_mini(struct gt_symbols *s, struct gt_elf *from)
{
    const Elf64_Shdr *section = gt_elf_section(from, ".gnu_debugdata");
    uint8_t *packed = gt_elf_contents(from, section, MAX_DEBUGDATA);
    size_t n;
    if (!packed)
        return;
    s->mini_bytes = gt_symbols_unxz(packed, section->sh_size, &n);
    free(packed);
    if (s->mini_bytes && !gt_elf_open_memory(&s->mini, s->mini_bytes, n))
        gt_symbol_table_add(&s->table, &s->mini, from->base - s->mini.base);
}

struct gt_symbols *gt_symbols_open(const struct gt_symbols_of *of,
                                   const struct gt_symbols_folders *folders)
{
    struct gt_symbols *s = gt_mem_new(1, sizeof *s);
    struct gt_symbols_files *f = &s->files;
    s->mini.fd = -1;
    gt_symbols_files_open(f, of, folders);
    if (f->has_module || f->has_debug)
        gt_symbol_table_code(&s->table, f->has_module ? &f->module : &f->debug);
    if (f->has_module) {
        gt_symbol_table_add(&s->table, &f->module, 0);
        add_mini(s, &f->module);
    }
    /* a module that was moved (prelink) after its debug file was made */
    if (f->has_debug)
        gt_symbol_table_add(&s->table, &f->debug,
                            f->has_module ? f->module.base - f->debug.base : 0);
    return s;
}

void gt_symbols_free(struct gt_symbols *s)
{
    if (!s)
        return;
    gt_lines_free(s->lines);
    free(s->plts);
    gt_symbol_table_free(&s->table);
    gt_elf_close(&s->mini);
    gt_symbols_files_close(&s->files);
    free(s->mini_bytes);
    free(s);
}

const char *gt_symbols_why(const struct gt_symbols *s)
{
    return s->files.why;
}

/* Stubs are rarely seen: only when a signal came in one. */
static const char *plt_at(struct gt_symbols *s, uint64_t address, uint64_t *start)
{
    struct gt_symbols_plt found = {0};
    char *linkage, *name, *stub;
    if (!s->files.has_module)
        return NULL;
    linkage = gt_symbols_plt(&s->files.module, address, &found.start);
    if (!linkage)
        return NULL;
    *start = found.start;
    for (size_t i = 0; i < s->plt_count; i++)
        if (s->plts[i].start == found.start) {
            free(linkage);
            return s->plts[i].name;
        }
    name = gt_symbols_name(linkage);
    stub = gt_mem_format("%s@plt", name);
    found.name = gt_symbol_table_keep(&s->table, stub);
    free(stub);
    free(name);
    free(linkage);
    gt_mem_grow(&s->plts, &s->plt_room, s->plt_count, sizeof *s->plts);
    s->plts[s->plt_count++] = found;
    return found.name;
}

void gt_symbols_want(struct gt_symbols *s, uint64_t address, int exact)
{
    gt_symbol_table_want(&s->table, exact ? address : address - 1);
}

int gt_symbols_at(struct gt_symbols *s, uint64_t address, int exact, struct gt_symbol *out)
{
    uint64_t at = exact ? address : address - 1;
    const char *name = gt_symbol_table_at(&s->table, at, &out->start);
    if (!name)
        name = plt_at(s, at, &out->start);
    if (!name)
        return -ENOENT;
    out->name = name;
    return 0;
}
