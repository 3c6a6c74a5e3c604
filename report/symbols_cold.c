/* See symbols_cold.h. */
#include "report/symbols_cold.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TABLE (1u << 26)
#define MAX_CODE (1u << 20)
#define MAX_LOOKED (1u << 26) /* for one module */
#define MAX_OWNERS 64u
#define MAX_JUMPS 4096u /* Debian's Python 3.14 has 217 */
/* .eh_frame_hdr: version, encodings, pointer to .eh_frame, count; then pairs, by the first */
#define HEADER 12u
#define PAIR 8u

static int32_t word(const uint8_t *p)
{
    int32_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* As every linker writes it: all is 4 bytes, pairs are relative to the section. */
static int read_table(struct gt_symbols_cold *c)
{
    static const uint8_t head[] = {1, 0x1b, 0x03, 0x3b};
    const Elf64_Shdr *s = gt_elf_section(c->elf, ".eh_frame_hdr");
    if (c->read)
        return c->table != NULL;
    c->read = 1;
    c->frames = gt_elf_section(c->elf, ".eh_frame");
    if (c->elf->machine != EM_X86_64 || !s || !c->frames || s->sh_size < HEADER ||
        !(c->table = gt_elf_contents(c->elf, s, MAX_TABLE)))
        return 0;
    c->at = s->sh_addr;
    c->count = (uint32_t)word(c->table + 8);
    if (!memcmp(c->table, head, sizeof head) && c->count <= (s->sh_size - HEADER) / PAIR)
        return 1;
    free(c->table);
    c->table = NULL;
    return 0;
}

static uint64_t nth(const struct gt_symbols_cold *c, uint32_t i, unsigned part)
{
    return c->at + (uint64_t)(int64_t)word(c->table + HEADER + PAIR * (size_t)i + part);
}

static int read_at(struct gt_elf *e, const Elf64_Shdr *s, uint64_t address, void *to, size_t n)
{
    if (address < s->sh_addr || address - s->sh_addr >= s->sh_size ||
        n > s->sh_size - (address - s->sh_addr))
        return -EIO;
    return gt_elf_read(e, s->sh_offset + (address - s->sh_addr), to, n);
}

static int read_code(struct gt_elf *e, uint64_t address, void *to, size_t n)
{
    for (uint32_t i = 1; i < e->section_count; i++)
        if (e->sections[i].sh_flags & SHF_EXECINSTR && e->sections[i].sh_type != SHT_NOBITS &&
            !read_at(e, &e->sections[i], address, to, n))
            return 0;
    return -EIO;
}

/* The piece around the address: 0, or -1. */
static int piece(const struct gt_symbols_cold *c, uint64_t address, uint64_t *start, uint64_t *end)
{
    uint32_t low = 0, high = c->count;
    uint8_t entry[16]; /* length, CIE, start relative to itself, size */
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (nth(c, mid, 0) <= address)
            low = mid + 1;
        else
            high = mid;
    }
    if (!low)
        return -1;
    *start = nth(c, low - 1, 0);
    uint64_t at = nth(c, low - 1, 4);
    if (read_at(c->elf, c->frames, at, entry, sizeof entry) ||
        at + 8 + (uint64_t)(int64_t)word(entry + 8) != *start)
        return -1;
    *end = *start + (uint32_t)word(entry + 12);
    return address < *end ? 0 : -1;
}

/* Where the jump at p, if it is one with a distance of 4 bytes, goes to; 0. */
static uint64_t target(const uint8_t *p, uint64_t bytes, uint64_t at)
{
    if (bytes >= 5 && p[0] == 0xe9)
        return at + 5 + (uint64_t)(int64_t)word(p + 1);
    if (bytes >= 6 && p[0] == 0x0f && (p[1] & 0xf0) == 0x80)
        return at + 6 + (uint64_t)(int64_t)word(p + 2);
    return 0;
}

/* Bytes within other instructions look like jumps too: the function that most go to; 0. */
static uint64_t most_jumped(const struct gt_symbols_cold *c, const uint8_t *code, uint64_t start,
                            uint64_t end)
{
    struct {
        uint64_t start;
        unsigned jumps;
    } owners[MAX_OWNERS] = {0};
    unsigned all = 0, n = 0, best = 0;
    for (uint64_t at = start; at < end && all < MAX_JUMPS; at++) {
        uint64_t to = target(code + (at - start), end - at, at), from, until;
        unsigned i = 0;
        if (!to || (to >= start && to < end) || piece(c, to, &from, &until) || to == from)
            continue;
        all++;
        while (i < n && owners[i].start != from)
            i++;
        if (i == MAX_OWNERS)
            continue;
        owners[i].start = from;
        owners[i].jumps++;
        n += i == n;
        best = owners[i].jumps > owners[best].jumps ? i : best;
    }
    return n && owners[best].jumps > all / 2 ? owners[best].start : 0;
}

int gt_symbols_piece(struct gt_symbols_cold *c, uint64_t address, uint64_t *start, uint64_t *end)
{
    return read_table(c) && !piece(c, address, start, end);
}

uint64_t gt_symbols_owner(struct gt_symbols_cold *c, uint64_t start, uint64_t end)
{
    uint64_t owner = 0;
    uint8_t *code;
    if (end - start > MAX_CODE || c->looked > MAX_LOOKED)
        return 0;
    c->looked += end - start;
    code = malloc(end - start);
    if (code && !read_code(c->elf, start, code, end - start))
        owner = most_jumped(c, code, start, end);
    free(code);
    return owner;
}

void gt_symbols_cold_free(struct gt_symbols_cold *c)
{
    free(c->table);
}
