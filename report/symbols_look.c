/* See symbols_table.h: the function at an address.
 *
 * It is the nearest one that starts at or before the address and reaches it; functions may lie
 * within others. Of several with the same start the first by: global, weak, local; then the
 * shortest name, so that foo comes before __GI_foo; then by the alphabet. */
#include "report/symbols_name.h"
#include "report/symbols_table.h"
#include <stdlib.h>
#include <string.h>

/* Real files have up to 10 names at an address; linkers that fold equal code make thousands. */
#define MAX_ALIASES 64u
/* Functions within others, a few deep. Hostile files have more. */
#define MAX_STEPS 1024u

static int before(const struct gt_symbol_entry *a, const struct gt_symbol_entry *b)
{
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->open != b->open)
        return a->open ? 1 : -1;
    if (a->bind != b->bind)
        return a->bind < b->bind ? -1 : 1;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    return a->name < b->name ? -1 : a->name > b->name;
}

static int compare(const void *a, const void *b)
{
    return before(a, b);
}

static void sort(struct gt_symbol_entry *e, size_t n)
{
    if (n > 64) {
        qsort(e, n, sizeof *e, compare);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        struct gt_symbol_entry x = e[i];
        size_t k = i;
        for (; k && before(&x, &e[k - 1]) < 0; k--)
            e[k] = e[k - 1];
        e[k] = x;
    }
}

/* Names that tools put into code and no programmer: of kinds of data (aarch64), of annotations,
 * local labels. */
static int is_noise(const char *name)
{
    if (name[0] == '$' && strchr("xdat", name[1] ? name[1] : '-') && (!name[2] || name[2] == '.'))
        return 1;
    return !*name || !strncmp(name, ".L", 2) || !strncmp(name, ".annobin", 8);
}

/* The linker's name, cut at what fits. 0: it can't be read. */
static int read_name(struct gt_symbol_table *t, const struct gt_symbol_entry *e,
                     char to[GT_NAME_MAX + 2])
{
    struct gt_symbol_source *s = &t->sources[e->source];
    size_t used = 0, most = GT_NAME_MAX + 1;
    if (e->name >= s->names_bytes)
        return 0;
    if (s->names_bytes - e->name < most)
        most = (size_t)(s->names_bytes - e->name);
    if (s->text) {
        used = strnlen(s->text + e->name, most);
        memcpy(to, s->text + e->name, used);
    }
    /* most names are within the first piece */
    for (size_t piece = 512; !s->text && used < most; piece *= 8) {
        size_t n = piece < most - used ? piece : most - used, len;
        if (gt_elf_read(s->elf, s->names + e->name + used, to + used, n))
            return 0;
        len = strnlen(to + used, n);
        used += len;
        if (len < n)
            break;
    }
    to[used] = 0;
    return !is_noise(to);
}

static int reaches(const struct gt_symbol_table *t, const struct gt_symbol_entry *e,
                   uint64_t address)
{
    if (e->open && t->sources[e->source].whole)
        return address < gt_symbol_table_section_end(t, e->start);
    return address < (uint64_t)e->start + (e->size ? e->size : 1);
}

/* The best of entries `from` to `to` - 1, which have one start; `to` if none is one. `name` is its
 * linker's name, unless it has been found before. */
static size_t pick(struct gt_symbol_table *t, size_t from, size_t to, uint64_t address,
                   char name[GT_NAME_MAX + 2])
{
    char other[GT_NAME_MAX + 2];
    size_t best = to, length = 0;
    int equal = 1; /* the same is the best for each address that any of them reaches */
    for (size_t i = from; i < to && i - from < MAX_ALIASES; i++) {
        const struct gt_symbol_entry *e = &t->entries[i];
        if (e->chosen && reaches(t, e, address))
            return i;
        equal &= e->size == t->entries[from].size;
    }
    for (size_t i = from; i < to && i - from < MAX_ALIASES; i++) {
        const struct gt_symbol_entry *e = &t->entries[i];
        size_t n;
        if (best < to && (e->bind != t->entries[best].bind || e->open != t->entries[best].open))
            break;
        /* a label is no end of a function that has one */
        if (e->open && !t->entries[from].open)
            break;
        if (!reaches(t, e, address) || !read_name(t, e, other))
            continue;
        n = strlen(other);
        if (best < to && (n > length || (n == length && strcmp(other, name) >= 0)))
            continue;
        memcpy(name, other, n + 1);
        best = i;
        length = n;
    }
    if (best < to)
        t->entries[best].chosen = (unsigned)equal & 1;
    return best;
}

/* How many entries of a sorted bucket start at or before the address. */
static uint32_t not_behind(const struct gt_symbol_entry *e, uint32_t n, uint64_t address)
{
    uint32_t low = 0;
    while (low < n) {
        uint32_t mid = (low + n) / 2;
        if (e[mid].start <= address)
            low = mid + 1;
        else
            n = mid;
    }
    return low;
}

static const char *name_of(struct gt_symbol_table *t, size_t i, const char *linkage,
                           uint64_t *start)
{
    if (!t->names[i]) {
        char *name = gt_symbols_name(linkage);
        t->names[i] = gt_symbol_table_keep(t, name);
        free(name);
    }
    *start = t->entries[i].start;
    return t->names[i];
}

const char *gt_symbol_table_at(struct gt_symbol_table *t, uint64_t address, uint64_t *start)
{
    char linkage[GT_NAME_MAX + 2];
    unsigned steps = 0;
    int nearest = 1;
    if (!t->count || !gt_symbol_table_section_end(t, address))
        return NULL;
    for (size_t at = (size_t)((address - t->code[0].start) >> t->bits);; at--) {
        struct gt_symbol_bucket *b = &t->buckets[at];
        struct gt_symbol_entry *e = t->entries + b->first;
        if (!b->sorted)
            sort(e, b->count);
        b->sorted = 1;
        for (uint32_t to = not_behind(e, b->count, address), from; to; to = from) {
            uint64_t same = e[to - 1].start;
            from = same ? not_behind(e, to - 1, same - 1) : 0;
            if (nearest || !e[from].open) {
                size_t found = pick(t, b->first + from, b->first + to, address, linkage);
                if (found < b->first + to)
                    return name_of(t, found, linkage, start);
            }
            /* a label without a proper name does not part what is around it */
            nearest &= e[from].open;
            if (++steps == MAX_STEPS || (!nearest && b->own <= address && b->reach <= address))
                return NULL;
        }
        if (!at || (!nearest && b->reach <= address))
            return NULL;
        /* over the empty ones */
        while (at > 1 && !t->buckets[at - 1].count)
            at--;
    }
}
