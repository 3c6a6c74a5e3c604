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
/* A module has one or two cold parts in its stacks. */
#define MAX_PASSES 64u

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
    free(s->extras);
    gt_symbols_cold_free(&s->cold);
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

enum gt_no_names gt_symbols_no_names(const struct gt_symbols *s)
{
    return s->files.has_module || s->files.has_debug ? GT_NAMES_STRIPPED : s->files.missing;
}

static const struct gt_symbols_extra *extra(const struct gt_symbols *s, uint64_t start)
{
    for (size_t i = 0; i < s->extra_count; i++)
        if (s->extras[i].start == start)
            return &s->extras[i];
    return NULL;
}

/* Takes the name, which it frees; NULL: there is none. */
static const char *add_extra(struct gt_symbols *s, uint64_t start, char *name)
{
    const char *kept = name ? gt_symbol_table_keep(&s->table, name) : NULL;
    free(name);
    gt_mem_grow(&s->extras, &s->extra_room, s->extra_count, sizeof *s->extras);
    s->extras[s->extra_count++] = (struct gt_symbols_extra){start, kept};
    return kept;
}

/* Stubs are rarely seen: only when a signal came in one. */
static const char *plt_at(struct gt_symbols *s, uint64_t address, uint64_t *start)
{
    const struct gt_symbols_extra *known;
    char *linkage, *name, *stub = NULL;
    if (!(linkage = gt_symbols_plt(&s->files.module, address, start)))
        return NULL;
    known = extra(s, *start);
    if (!known) {
        name = gt_symbols_name(linkage);
        stub = gt_mem_format("%s@plt", name);
        free(name);
    }
    free(linkage);
    return known ? known->name : add_extra(s, *start, stub);
}

static const char *cold_at(struct gt_symbols *s, uint64_t address, uint64_t *start)
{
    const struct gt_symbols_extra *known;
    const char *name = NULL;
    uint64_t owner, of = 0;
    s->cold.elf = &s->files.module;
    if (!gt_symbol_table_section_end(&s->table, address) ||
        !gt_symbols_cold(&s->cold, address, start, &owner))
        return NULL;
    if ((known = extra(s, *start)))
        return known->name;
    if (s->passes++ < MAX_PASSES)
        name = gt_symbol_table_at(&s->table, owner, &of);
    if (!name || of != owner)
        return add_extra(s, *start, NULL);
    /* as the demangler writes the symbol that a whole file has */
    return add_extra(s, *start,
                     gt_mem_format(strchr(name, '(') ? "%s [clone .cold]" : "%s.cold", name));
}

void gt_symbols_want(struct gt_symbols *s, uint64_t address, int exact)
{
    gt_symbol_table_want(&s->table, exact ? address : address - 1);
}

int gt_symbols_at(struct gt_symbols *s, uint64_t address, int exact, struct gt_symbol *out)
{
    uint64_t at = exact ? address : address - 1;
    const char *name = gt_symbol_table_at(&s->table, at, &out->start);
    if (!name && s->files.has_module && !(name = plt_at(s, at, &out->start)))
        name = cold_at(s, at, &out->start);
    if (!name)
        return -ENOENT;
    out->name = name;
    return 0;
}
