/* See symbols_plt.h. A stub jumps to what an entry of .got holds; the relocation of that entry has
 * the name. Which entry it is is read from the stub's instructions, so that the order in which a
 * linker writes them does not matter. */
#include "report/symbols_plt.h"
#include <stdlib.h>
#include <string.h>

#define MAX_RELOCATIONS (1u << 28) /* bytes */
#define MAX_NAME 4096u

static uint32_t word(const uint8_t *p)
{
    uint32_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* The address of the .got entry that `stub`, `n` bytes at `at`, jumps by; 0: none. */
static uint64_t x86_target(const uint8_t *stub, size_t n, uint64_t at)
{
    for (size_t i = 0; i + 6 <= n; i++)
        if (stub[i] == 0xff && stub[i + 1] == 0x25) /* jmp *disp(%rip) */
            return at + i + 6 + (uint64_t)(int64_t)(int32_t)word(stub + i + 2);
    return 0;
}

static uint64_t arm_target(const uint8_t *stub, size_t n, uint64_t at)
{
    for (size_t i = 0; i + 8 <= n; i += 4) {
        uint32_t adrp = word(stub + i), ldr = word(stub + i + 4);
        if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
            continue; /* adrp x16, page; ldr x17, [x16, #offset] */
        int64_t page = (int64_t)((adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3));
        page = (page ^ 0x100000) - 0x100000;
        return ((at + i) & ~UINT64_C(0xfff)) + ((uint64_t)page << 12) + (ldr >> 10 & 0xfff) * 8;
    }
    return 0;
}

static char *symbol_name(struct gt_elf *e, const Elf64_Shdr *relocations, uint64_t index)
{
    const Elf64_Shdr *symbols, *names;
    char text[MAX_NAME];
    Elf64_Sym s;
    uint64_t n;
    if (!index || relocations->sh_link >= e->section_count)
        return NULL;
    symbols = &e->sections[relocations->sh_link];
    if (index >= symbols->sh_size / sizeof s || symbols->sh_link >= e->section_count ||
        gt_elf_read(e, symbols->sh_offset + index * sizeof s, &s, sizeof s))
        return NULL;
    names = &e->sections[symbols->sh_link];
    if (s.st_name >= names->sh_size)
        return NULL;
    n = names->sh_size - s.st_name < sizeof text - 1 ? names->sh_size - s.st_name : sizeof text - 1;
    if (gt_elf_read(e, names->sh_offset + s.st_name, text, (size_t)n))
        return NULL;
    text[n] = 0;
    return *text ? strdup(text) : NULL;
}

static char *relocation_at(struct gt_elf *e, const char *section, uint64_t slot)
{
    const Elf64_Shdr *s = gt_elf_section(e, section);
    Elf64_Rela *r = s && s->sh_type == SHT_RELA ? gt_elf_contents(e, s, MAX_RELOCATIONS) : NULL;
    char *name = NULL;
    for (uint64_t i = 0; r && i < s->sh_size / sizeof *r; i++)
        if (r[i].r_offset == slot && ELF64_R_SYM(r[i].r_info)) {
            name = symbol_name(e, s, ELF64_R_SYM(r[i].r_info));
            break;
        }
    free(r);
    return name;
}

char *gt_symbols_plt(struct gt_elf *e, uint64_t address, uint64_t *start)
{
    uint8_t stub[16];
    uint64_t slot, first = 0, step;
    char *name;
    const Elf64_Shdr *s = NULL;
    for (uint32_t i = 1; i < e->section_count && !s; i++) {
        const Elf64_Shdr *c = &e->sections[i];
        if (c->sh_flags & SHF_EXECINSTR && c->sh_type == SHT_PROGBITS && address >= c->sh_addr &&
            address - c->sh_addr < c->sh_size && !strncmp(gt_elf_section_name(e, c), ".plt", 4))
            s = c;
    }
    if (!s)
        return NULL;
    step = s->sh_entsize == 8 || s->sh_entsize == 16 ? s->sh_entsize : 16;
    /* on aarch64 the first entry of .plt is twice as long, and no function's */
    if (e->machine == EM_AARCH64 && !strcmp(gt_elf_section_name(e, s), ".plt"))
        first = 32, step = 16;
    if (address - s->sh_addr < first)
        return NULL;
    *start = address - (address - s->sh_addr - first) % step;
    if (gt_elf_read(e, s->sh_offset + (*start - s->sh_addr), stub, (size_t)step))
        return NULL;
    if (e->machine == EM_X86_64)
        slot = x86_target(stub, (size_t)step, *start);
    else
        slot = e->machine == EM_AARCH64 ? arm_target(stub, (size_t)step, *start) : 0;
    if (!slot)
        return NULL;
    name = relocation_at(e, ".rela.plt", slot);
    return name ? name : relocation_at(e, ".rela.dyn", slot);
}
