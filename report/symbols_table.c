/* See symbols_table.h: how a table is made. Looking things up: symbols_look.c. */
#include "report/symbols_table.h"
#include "report/mem.h"
#include <stdlib.h>
#include <string.h>

#define MAX_SYMBOLS (1u << 24)
#define CHUNK 4096u /* symbols that are read at a time: 96 KiB */
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

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void gt_symbol_table_want(struct gt_symbol_table *t, uint64_t address)
{
    gt_mem_grow(&t->wanted, &t->wanted_room, t->wanted_count, sizeof *t->wanted);
    t->wanted[t->wanted_count++] = address;
    t->made = 0;
}

/* Sorts what is wanted, each once, and counts how many lie before each bucket. */
static void index_wanted(struct gt_symbol_table *t)
{
    size_t n = 0;
    t->range = 0;
    for (size_t i = 0; i < t->code_count; i++)
        if (t->code[i].end - t->code[0].start > t->range)
            t->range = t->code[i].end - t->code[0].start;
    qsort(t->wanted, t->wanted_count, sizeof *t->wanted, by_value);
    for (size_t i = 0; i < t->wanted_count; i++)
        if (!n || t->wanted[i] != t->wanted[n - 1])
            t->wanted[n++] = t->wanted[i];
    t->wanted_count = n;
    for (t->bits = 0; t->range >> t->bits >= MAX_BUCKETS || t->range >> t->bits > 2 * n;)
        t->bits++;
    size_t buckets = (size_t)(t->range >> t->bits) + 1;
    t->first = gt_mem_resize(t->first, buckets + 1, sizeof *t->first);
    for (size_t b = 0, i = 0; b <= buckets; b++) {
        while (i < n && t->wanted[i] < t->code[0].start + ((uint64_t)b << t->bits))
            i++;
        t->first[b] = (uint32_t)i;
    }
    free(t->parts);
    t->parts = gt_mem_new(n, sizeof *t->parts);
    free(t->answers);
    t->answers = gt_mem_new(n, sizeof *t->answers);
}

/* The first wanted address at or behind `start`, which lies in the range of the code. */
static size_t wanted_from(const struct gt_symbol_table *t, uint64_t start)
{
    size_t bucket = (size_t)((start - t->code[0].start) >> t->bits);
    size_t low = t->first[bucket], high = t->first[bucket + 1];
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (t->wanted[mid] < start)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* A function, or a label in code, becomes an entry if it may be the answer for a wanted address.
 * `last` is the code section of the symbol before. */
static void take(struct gt_symbol_table *t, unsigned source, const Elf64_Sym *s,
                 struct gt_code_span *last)
{
    const unsigned types = 1u << STT_FUNC | 1u << STT_GNU_IFUNC | 1u << STT_NOTYPE;
    const struct gt_symbol_source *from = &t->sources[source];
    unsigned bind = ELF64_ST_BIND(s->st_info);
    uint64_t start = s->st_value + from->shift;
    if (!(types >> ELF64_ST_TYPE(s->st_info) & 1) || s->st_shndx == SHN_UNDEF ||
        s->st_shndx == SHN_ABS || s->st_shndx == SHN_COMMON || !s->st_name ||
        start - t->code[0].start >= t->range)
        return;
    if (start < last->start || start >= last->end) {
        last->end = gt_symbol_table_section_end(t, start);
        last->start = last->end ? start : 0;
        if (!last->end)
            return;
    }
    size_t i = wanted_from(t, start);
    if (i == t->wanted_count)
        return;
    if (s->st_size) {
        if (t->parts[i] < start)
            t->parts[i] = start;
        if (t->wanted[i] - start >= s->st_size)
            return;
    } else if (t->wanted[i] >= (from->whole ? last->end : start + 1)) {
        return;
    }
    gt_mem_grow(&t->entries, &t->room, t->count, sizeof *t->entries);
    t->entries[t->count++] = (struct gt_symbol_entry){
        .start = start,
        .source = source,
        .bind = bind == STB_WEAK    ? 1
                : bind == STB_LOCAL ? 2
                                    : 0,
        .open = !s->st_size,
        .size = s->st_size > UINT32_MAX ? UINT32_MAX : (uint32_t)s->st_size,
        .name = s->st_name};
}

static void collect(struct gt_symbol_table *t)
{
    Elf64_Sym *chunk = gt_mem_resize(NULL, CHUNK, sizeof *chunk);
    for (unsigned k = 0; k < t->source_count; k++) {
        struct gt_symbol_source *s = &t->sources[k];
        struct gt_code_span last = {0, 0};
        uint64_t count = s->symbols->sh_size / sizeof *chunk;
        for (uint64_t i = 0; i < count && i < MAX_SYMBOLS; i += CHUNK) {
            size_t some = count - i < CHUNK ? (size_t)(count - i) : CHUNK;
            if (gt_elf_read(s->elf, s->symbols->sh_offset + i * sizeof *chunk, chunk,
                            some * sizeof *chunk))
                break;
            for (size_t m = 0; m < some; m++)
                take(t, k, &chunk[m], &last);
        }
    }
    free(chunk);
}

/* Of labels without a size those that a function with one parts from all that is wanted are no
 * answer. There may be very many. */
static void drop_parted(struct gt_symbol_table *t)
{
    size_t n = 0;
    for (size_t i = 1; i < t->wanted_count; i++)
        if (t->parts[i] < t->parts[i - 1])
            t->parts[i] = t->parts[i - 1];
    for (size_t i = 0; i < t->count; i++) {
        uint64_t start = t->entries[i].start;
        if (!t->entries[i].open || t->parts[wanted_from(t, start)] < start)
            t->entries[n++] = t->entries[i];
    }
    t->count = n;
}

void gt_symbol_table_make(struct gt_symbol_table *t)
{
    uint64_t reach = 0;
    t->made = 1;
    t->count = 0;
    if (!t->code_count || !t->wanted_count)
        return;
    index_wanted(t);
    collect(t);
    drop_parted(t);
    gt_symbol_table_sort(t);
    free(t->names);
    t->names = gt_mem_new(t->count, sizeof *t->names);
    t->reach = gt_mem_resize(t->reach, t->count + 1, sizeof *t->reach);
    for (size_t i = 0; i < t->count; i++) {
        uint64_t end = gt_symbol_table_end(t, &t->entries[i]);
        t->reach[i] = reach;
        reach = end > reach ? end : reach;
    }
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
    free(t->reach);
    free(t->entries);
    free(t->parts);
    free(t->answers);
    free(t->first);
    free(t->wanted);
    free(t->code);
    *t = (struct gt_symbol_table){0};
}
