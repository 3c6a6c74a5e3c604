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

/* The place of what starts there, or where it would be. */
static size_t extra_place(const struct gt_symbols *s, uint64_t start)
{
    size_t low = 0, high = s->extra_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->extras[mid].start < start)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* What starts there; *is_new: it was not there before. */
static struct gt_symbols_extra *extra(struct gt_symbols *s, uint64_t start, int *is_new)
{
    size_t i = extra_place(s, start);
    *is_new = i == s->extra_count || s->extras[i].start != start;
    if (*is_new) {
        gt_mem_grow(&s->extras, &s->extra_room, s->extra_count, sizeof *s->extras);
        memmove(&s->extras[i + 1], &s->extras[i], (s->extra_count++ - i) * sizeof *s->extras);
        s->extras[i] = (struct gt_symbols_extra){.start = start};
    }
    return &s->extras[i];
}

/* Takes the name, which it frees. */
static const char *keep(struct gt_symbols *s, char *name)
{
    const char *kept = gt_symbol_table_keep(&s->table, name);
    free(name);
    return kept;
}

/* Stubs are rarely seen: only when a signal came in one. */
static const char *plt_at(struct gt_symbols *s, uint64_t address, uint64_t *start)
{
    struct gt_symbols_extra *stub;
    char *linkage, *name;
    int is_new;
    if (!(linkage = gt_symbols_plt(&s->files.module, address, start)))
        return NULL;
    stub = extra(s, *start, &is_new);
    if (is_new) {
        name = gt_symbols_name(linkage);
        stub->name = keep(s, gt_mem_format("%s@plt", name));
        free(name);
    }
    free(linkage);
    return stub->name;
}

/* The piece of code around `address`, which has no symbol; NULL: there is none. */
static struct gt_symbols_extra *piece_at(struct gt_symbols *s, uint64_t address)
{
    struct gt_symbols_extra *piece;
    uint64_t start, end;
    int is_new;
    s->cold.elf = &s->files.module;
    if (!gt_symbol_table_section_end(&s->table, address) ||
        !gt_symbols_piece(&s->cold, address, &start, &end))
        return NULL;
    piece = extra(s, start, &is_new);
    if (is_new)
        piece->owner = gt_symbols_owner(&s->cold, start, end);
    return piece;
}

static const char *cold_at(struct gt_symbols *s, uint64_t address, uint64_t *start)
{
    struct gt_symbols_extra *piece = piece_at(s, address);
    const char *name;
    uint64_t of;
    if (!piece)
        return NULL;
    *start = piece->start;
    if (!piece->owner || piece->name)
        return piece->name;
    name = gt_symbol_table_at(&s->table, piece->owner, &of);
    if (!name || of != piece->owner)
        piece->owner = 0;
    else /* as the demangler writes the symbol that a whole file has */
        piece->name =
            keep(s, gt_mem_format(strchr(name, '(') ? "%s [clone .cold]" : "%s.cold", name));
    return piece->name;
}

/* The functions that cold parts belong to are wanted too: all at once, for a pass over the symbols
 * of a large file costs as much as thousands of names. */
static void make(struct gt_symbols *s)
{
    uint64_t start;
    gt_symbol_table_make(&s->table);
    if (!s->files.has_module)
        return;
    for (size_t i = 0; i < s->table.wanted_count; i++)
        if (!gt_symbol_table_has(&s->table, s->table.wanted[i]) &&
            !plt_at(s, s->table.wanted[i], &start))
            piece_at(s, s->table.wanted[i]);
    for (size_t i = 0; i < s->extra_count; i++)
        if (s->extras[i].owner)
            gt_symbol_table_want(&s->table, s->extras[i].owner);
    if (!s->table.made)
        gt_symbol_table_make(&s->table);
}

void gt_symbols_want(struct gt_symbols *s, uint64_t address, int exact)
{
    gt_symbol_table_want(&s->table, exact ? address : address - 1);
}

int gt_symbols_at(struct gt_symbols *s, uint64_t address, int exact, struct gt_symbol *out)
{
    uint64_t at = exact ? address : address - 1;
    const char *name;
    if (!s->table.made)
        make(s);
    name = gt_symbol_table_at(&s->table, at, &out->start);
    if (!name && s->files.has_module && !(name = plt_at(s, at, &out->start)))
        name = cold_at(s, at, &out->start);
    if (!name)
        return -ENOENT;
    out->name = name;
    return 0;
}
