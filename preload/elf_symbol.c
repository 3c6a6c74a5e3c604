/* Symbols of loaded libraries, by their GNU hash table. Called by torch.c and by the forwarders of
 * torch_memory.c and torch_window.c, on the program's threads. */
#include "elf_symbol.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>

/* ---- the library ---- */

struct search {
    const char *prefix;
    struct gt_elf *elf;
    uint64_t adds, subs;
    int found;
};

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
    struct search *s = data;
    const char *path = info->dlpi_name, *file = path ? strrchr(path, '/') : NULL;
    (void)size;

    s->adds = info->dlpi_adds;
    s->subs = info->dlpi_subs;
    if (!s->prefix)
        return 1;
    file = file ? file + 1 : path;
    if (!file || strncmp(file, s->prefix, strlen(s->prefix)) != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        s->elf->base = info->dlpi_addr;
        s->elf->dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        s->found = 1;
        return 1;
    }
    return 0;
}

int gt_elf_find(const char *prefix, struct gt_elf *elf, uint64_t *adds, uint64_t *subs)
{
    struct search s = {.prefix = prefix, .elf = elf};

    dl_iterate_phdr(look, &s);
    if (adds)
        *adds = s.adds;
    if (subs)
        *subs = s.subs;
    return s.found ? 0 : -ENOENT;
}

int gt_elf_unchanged(uint64_t adds, uint64_t subs)
{
    struct search s = {0};

    dl_iterate_phdr(look, &s);
    return s.adds == adds && s.subs == subs;
}

/* ---- the symbol ---- */

struct tables {
    const uint32_t *hash;
    const ElfW(Sym) * symbols;
    const char *strings;
};

/* glibc has replaced most addresses in there by absolute ones; others leave them as they are in the
 * file. */
static const void *address(const struct gt_elf *elf, ElfW(Addr) value)
{
    return (const void *)(value < elf->base ? value + elf->base : value);
}

static int read_dynamic(const struct gt_elf *elf, struct tables *t)
{
    for (const ElfW(Dyn) *d = elf->dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_GNU_HASH)
            t->hash = address(elf, d->d_un.d_ptr);
        else if (d->d_tag == DT_SYMTAB)
            t->symbols = address(elf, d->d_un.d_ptr);
        else if (d->d_tag == DT_STRTAB)
            t->strings = address(elf, d->d_un.d_ptr);
    }
    return t->hash && t->symbols && t->strings ? 0 : -ENOEXEC;
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t h = 5381;

    for (; *name; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}

void *gt_elf_symbol(const struct gt_elf *elf, const char *name)
{
    struct tables t = {0};
    uint32_t wanted = gnu_hash(name), n;

    if (read_dynamic(elf, &t))
        return NULL;
    /* four numbers, a Bloom filter of machine words, the buckets, one hash for each symbol from
     * `first` on; its lowest bit ends the bucket */
    uint32_t bucket_count = t.hash[0], first = t.hash[1], filter_words = t.hash[2];
    const uint32_t *buckets = t.hash + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *hashes = buckets + bucket_count;

    if (!bucket_count || (n = buckets[wanted % bucket_count]) < first)
        return NULL;
    for (;; n++) {
        uint32_t h = hashes[n - first];
        const ElfW(Sym) *s = &t.symbols[n];

        if ((h | 1) == (wanted | 1) && s->st_shndx != SHN_UNDEF &&
            ELF64_ST_TYPE(s->st_info) != STT_GNU_IFUNC && strcmp(t.strings + s->st_name, name) == 0)
            return (void *)(elf->base + s->st_value);
        if (h & 1)
            return NULL;
    }
}
