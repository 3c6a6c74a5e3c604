/* See symbols_table.h: how a table is made. Looking things up: symbols_look.c. */
#include "report/symbols_table.h"
#include "report/mem.h"
#include <stdlib.h>
#include <string.h>

#define MAX_SYMBOLS (1u << 24)
#define CHUNK 4096u /* symbols that are read at a time: 96 KiB */
#define PER_BUCKET 8u
#define MAX_BUCKETS (1u << 16)
#define KEEP_NAMES (1u << 20) /* bytes of names that are read at once */
#define NAMES (1u << 16)      /* bytes of a piece; longer than any name */
#define MAX_ADDRESS (UINT64_C(1) << 48)

static int by_start(const void *a, const void *b)
{
    const struct gt_code_span *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

void gt_symbol_table_code(struct gt_symbol_table *t, const struct gt_elf *e)
{
    t->code = gt_mem_new(e->section_count, sizeof *t->code);
    for (uint32_t i = 1; i < e->section_count; i++) {
        const Elf64_Shdr *s = &e->sections[i];
        if (!(s->sh_flags & SHF_EXECINSTR) || !(s->sh_flags & SHF_ALLOC) || !s->sh_size ||
            s->sh_addr >= MAX_ADDRESS || s->sh_size > MAX_ADDRESS - s->sh_addr)
            continue;
        t->code[t->code_count++] = (struct gt_code_span){s->sh_addr, s->sh_addr + s->sh_size};
    }
    qsort(t->code, t->code_count, sizeof *t->code, by_start);
}

uint64_t gt_symbol_table_section_end(const struct gt_symbol_table *t, uint64_t address)
{
    size_t low = 0, high = t->code_count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (t->code[mid].start <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low && address < t->code[low - 1].end ? t->code[low - 1].end : 0;
}

void gt_symbol_table_add(struct gt_symbol_table *t, struct gt_elf *e, uint64_t shift)
{
    for (uint32_t i = 1; i < e->section_count; i++) {
        const Elf64_Shdr *s = &e->sections[i], *n;
        if ((s->sh_type != SHT_SYMTAB && s->sh_type != SHT_DYNSYM) || s->sh_link == 0 ||
            s->sh_link >= e->section_count || t->source_count == GT_SYMBOL_SOURCES ||
            s->sh_offset > e->size || s->sh_size > e->size - s->sh_offset)
            continue;
        n = &e->sections[s->sh_link];
        if (n->sh_type != SHT_STRTAB || n->sh_offset > e->size ||
            n->sh_size > e->size - n->sh_offset)
            continue;
        t->sources[t->source_count++] =
            (struct gt_symbol_source){.elf = e,
                                      .symbols = s,
                                      .shift = shift,
                                      .whole = s->sh_type == SHT_SYMTAB,
                                      .names = n->sh_offset,
                                      .names_bytes = n->sh_size,
                                      .text = gt_elf_contents(e, n, KEEP_NAMES)};
    }
}

static size_t bucket_of(const struct gt_symbol_table *t, uint64_t address)
{
    return (size_t)((address - t->code[0].start) >> t->bits);
}

/* A function, or a label in code, becomes an entry: 1. `last` is the code section of the symbol
 * before. */
static int take(const struct gt_symbol_table *t, unsigned source, const Elf64_Sym *s,
                struct gt_code_span *last, struct gt_symbol_entry *to)
{
    const struct gt_symbol_source *from = &t->sources[source];
    unsigned type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);
    uint64_t start = s->st_value + from->shift;
    if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
        s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS || s->st_shndx == SHN_COMMON ||
        !s->st_name || start >= MAX_ADDRESS)
        return 0;
    if (start < last->start || start >= last->end) {
        last->end = gt_symbol_table_section_end(t, start);
        last->start = last->end ? start : 0;
        if (!last->end)
            return 0;
    }
    *to = (struct gt_symbol_entry){.start = start,
                                   .source = source,
                                   .bind = bind == STB_WEAK    ? 1
                                           : bind == STB_LOCAL ? 2
                                                               : 0,
                                   .open = !s->st_size,
                                   .size =
                                       s->st_size > UINT32_MAX ? UINT32_MAX : (uint32_t)s->st_size,
                                   .name = s->st_name};
    return 1;
}

/* All functions of all tables, as they come, counted into their buckets. */
static struct gt_symbol_entry *collect(struct gt_symbol_table *t, uint64_t most)
{
    Elf64_Sym *chunk = gt_mem_resize(NULL, CHUNK, sizeof *chunk);
    struct gt_symbol_entry *all = gt_mem_resize(NULL, most + 1, sizeof *all);
    for (unsigned k = 0; k < t->source_count; k++) {
        struct gt_symbol_source *s = &t->sources[k];
        struct gt_code_span last = {0, 0};
        for (uint64_t i = 0; i < s->count; i += CHUNK) {
            size_t some = s->count - i < CHUNK ? (size_t)(s->count - i) : CHUNK;
            if (gt_elf_read(s->elf, s->symbols->sh_offset + i * sizeof *chunk, chunk,
                            some * sizeof *chunk))
                break;
            for (size_t m = 0; m < some; m++)
                if (take(t, k, &chunk[m], &last, &all[t->count])) {
                    t->buckets[bucket_of(t, all[t->count].start)].count++;
                    t->count++;
                }
        }
    }
    free(chunk);
    return all;
}

/* Puts them into their buckets. */
static void spread(struct gt_symbol_table *t, const struct gt_symbol_entry *all)
{
    uint32_t first = 0;
    uint64_t reach = 0;
    for (size_t i = 0; i < t->bucket_count; i++) {
        t->buckets[i].first = first;
        first += t->buckets[i].count;
        t->buckets[i].count = 0;
    }
    for (size_t i = 0; i < t->count; i++) {
        struct gt_symbol_bucket *b = &t->buckets[bucket_of(t, all[i].start)];
        uint64_t end = (uint64_t)all[i].start + (all[i].size ? all[i].size : 1);
        t->entries[b->first + b->count++] = all[i];
        b->own = end > b->own ? end : b->own;
    }
    for (size_t i = 0; i < t->bucket_count; i++) {
        t->buckets[i].reach = reach;
        reach = t->buckets[i].own > reach ? t->buckets[i].own : reach;
    }
}

void gt_symbol_table_build(struct gt_symbol_table *t)
{
    uint64_t range = 0, symbols = 0;
    struct gt_symbol_entry *all;
    if (!t->code_count)
        return;
    for (unsigned k = 0; k < t->source_count; k++) {
        struct gt_symbol_source *s = &t->sources[k];
        uint64_t n = s->symbols->sh_size / sizeof(Elf64_Sym);
        s->count = n < MAX_SYMBOLS ? n : MAX_SYMBOLS;
        symbols += s->count;
    }
    for (size_t i = 0; i < t->code_count; i++)
        if (t->code[i].end - t->code[0].start > range)
            range = t->code[i].end - t->code[0].start;
    while (range >> t->bits >= MAX_BUCKETS || range >> t->bits > symbols / PER_BUCKET)
        t->bits++;
    t->bucket_count = (size_t)(range >> t->bits) + 1;
    t->buckets = gt_mem_new(t->bucket_count, sizeof *t->buckets);
    all = collect(t, symbols);
    t->entries = gt_mem_new(t->count, sizeof *t->entries);
    t->names = gt_mem_new(t->count, sizeof *t->names);
    spread(t, all);
    free(all);
}

char *gt_symbol_table_keep(struct gt_symbol_table *t, const char *name)
{
    size_t n = strlen(name) + 1;
    struct gt_symbol_names *c = t->kept;
    if (!c || NAMES - c->used < n) {
        c = gt_mem_resize(NULL, 1, sizeof *c + NAMES);
        c->next = t->kept;
        c->used = 0;
        t->kept = c;
    }
    c->used += n;
    return memcpy(c->text + c->used - n, name, n);
}

void gt_symbol_table_free(struct gt_symbol_table *t)
{
    while (t->kept) {
        struct gt_symbol_names *next = t->kept->next;
        free(t->kept);
        t->kept = next;
    }
    for (unsigned k = 0; k < t->source_count; k++)
        free(t->sources[k].text);
    free(t->names);
    free(t->entries);
    free(t->buckets);
    free(t->code);
    *t = (struct gt_symbol_table){0};
}
