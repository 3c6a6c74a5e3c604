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

static int compare(const void *pa, const void *pb)
{
    const struct gt_symbol_entry *a = pa, *b = pb;
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

void gt_symbol_table_sort(struct gt_symbol_table *t)
{
    if (t->count)
        qsort(t->entries, t->count, sizeof *t->entries, compare);
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

uint64_t gt_symbol_table_end(const struct gt_symbol_table *t, const struct gt_symbol_entry *e)
{
    if (e->open && t->sources[e->source].whole)
        return gt_symbol_table_section_end(t, e->start);
    return (uint64_t)e->start + (e->size ? e->size : 1);
}

/* The best of entries `from` to `to` - 1, which have one start; `to` if none is one. */
static size_t pick(struct gt_symbol_table *t, size_t from, size_t to, uint64_t address)
{
    char name[GT_NAME_MAX + 2], other[GT_NAME_MAX + 2];
    size_t best = to, length = 0;
    int equal = 1; /* the same is the best for each address that any of them reaches */
    for (size_t i = from; i < to && i - from < MAX_ALIASES; i++) {
        const struct gt_symbol_entry *e = &t->entries[i];
        if (e->chosen && address < gt_symbol_table_end(t, e))
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
        if (address >= gt_symbol_table_end(t, e) || !read_name(t, e, other))
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

/* How many entries start at or before the address. */
static size_t not_behind(const struct gt_symbol_table *t, uint64_t address)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (t->entries[mid].start <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Where it is among the wanted ones; wanted_count: nowhere. */
static size_t wanted_at(const struct gt_symbol_table *t, uint64_t address)
{
    size_t low = 0, high = t->wanted_count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (t->wanted[mid] < address)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->wanted_count && t->wanted[low] == address ? low : t->wanted_count;
}

static const char *name_of(struct gt_symbol_table *t, size_t i)
{
    char linkage[GT_NAME_MAX + 2], *name;
    if (!t->names[i] && read_name(t, &t->entries[i], linkage)) {
        name = gt_symbols_name(linkage);
        t->names[i] = gt_symbol_table_keep(t, name);
        free(name);
    }
    return t->names[i];
}

/* The entry for wanted[i]; t->count: there is none. */
static size_t find(struct gt_symbol_table *t, size_t i)
{
    uint64_t address = t->wanted[i];
    unsigned steps = 0;
    for (size_t to = not_behind(t, address), from; to; to = from) {
        for (from = to - 1; from && t->entries[from - 1].start == t->entries[from].start;)
            from--;
        /* a label without a size ends at the next function; but one without a proper name does not
         * part what is around it */
        if (!t->entries[from].open || t->parts[i] < t->entries[from].start) {
            size_t found = pick(t, from, to, address);
            if (found < to)
                return found;
        }
        if (++steps == MAX_STEPS || t->reach[from] <= address)
            break;
    }
    return t->count;
}

static size_t entry_at(struct gt_symbol_table *t, uint64_t address)
{
    size_t i;
    if (!gt_symbol_table_section_end(t, address))
        return t->count;
    if (!t->made)
        gt_symbol_table_make(t);
    if ((i = wanted_at(t, address)) == t->wanted_count) {
        gt_symbol_table_want(t, address);
        gt_symbol_table_make(t);
        i = wanted_at(t, address);
    }
    if (!t->answers[i])
        t->answers[i] = (uint32_t)find(t, i) + 1;
    return t->answers[i] - 1;
}

const char *gt_symbol_table_at(struct gt_symbol_table *t, uint64_t address, uint64_t *start)
{
    size_t i = entry_at(t, address);
    if (i == t->count)
        return NULL;
    *start = t->entries[i].start;
    return name_of(t, i);
}

int gt_symbol_table_has(struct gt_symbol_table *t, uint64_t address)
{
    return entry_at(t, address) < t->count;
}
