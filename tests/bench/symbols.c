/* What it costs to name 10,000 addresses of a file: its symbol table opened and read, names
 * demangled; against dladdr, where the file can be loaded. For scripts/bench: for each file prints
 * `FILE NAMED SPREAD_US NEAR_US DLADDR_US`: addresses over all of the code, so that nearly each is
 * another function; in 1,000 places, as the frames of a program are; DLADDR_US of the first kind, 0
 * where there is none. CPU time, of the kernel too. */
#include "report/elf_file.h"
#include "report/symbols.h"
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT 10000

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t addresses[COUNT];
static uint64_t symbol_bytes;

/* Evenly over the largest section with code, in an order that no cache likes. */
static int choose(const char *path, uint8_t *id, size_t *id_bytes)
{
    struct gt_elf e;
    const Elf64_Shdr *code = NULL;
    int rc = gt_elf_open(&e, path);
    for (uint32_t i = 0; !rc && i < e.section_count; i++) {
        const Elf64_Shdr *s = &e.sections[i];
        if (s->sh_flags & SHF_EXECINSTR && (!code || s->sh_size > code->sh_size))
            code = s;
        if (s->sh_type == SHT_SYMTAB || s->sh_type == SHT_DYNSYM)
            symbol_bytes += s->sh_size;
    }
    for (uint64_t i = 0; code && i < COUNT; i++)
        addresses[i] = code->sh_addr + code->sh_size / COUNT * (i * 7919 % COUNT) + 1;
    memcpy(id, e.build_id, e.build_id_bytes);
    *id_bytes = e.build_id_bytes;
    rc = code ? 0 : -1;
    gt_elf_close(&e);
    return rc;
}

/* Of a tenth of the addresses. Large libraries are left out: loading them runs their code, and
 * dladdr would take seconds. */
static double dladdr_us(const char *path)
{
    struct link_map *map = symbol_bytes >> 20 ? NULL : dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    Dl_info info;
    uint64_t t0 = now();
    if (!map)
        return 0;
    for (int i = 0; i < COUNT / 10; i++)
        dladdr((void *)(uintptr_t)(map->l_addr + addresses[i]), &info);
    return (double)(now() - t0) / 1e3 * 10;
}

/* Opening included. */
static double ours_us(const struct gt_symbols_of *of, int places, int *named)
{
    struct gt_symbol found;
    uint64_t t0 = now();
    struct gt_symbols *s = gt_symbols_open(of, NULL);
    *named = 0;
    for (int i = 0; i < COUNT; i++)
        gt_symbols_want(s, addresses[i % places] + (uint64_t)(i / places), 0);
    for (int i = 0; i < COUNT; i++)
        *named += !gt_symbols_at(s, addresses[i % places] + (uint64_t)(i / places), 0, &found);
    t0 = now() - t0;
    gt_symbols_free(s);
    return (double)t0 / 1e3;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        uint8_t id[GT_BUILD_ID_MAX];
        struct gt_symbols_of of = {.path = argv[i], .build_id = id};
        int named, unused;
        symbol_bytes = 0;
        if (choose(argv[i], id, &of.build_id_bytes))
            continue;
        double spread = ours_us(&of, COUNT, &named), near = ours_us(&of, COUNT / 10, &unused);
        printf("%s %d %.0f %.0f %.0f\n", argv[i], named, spread, near, dladdr_us(argv[i]));
    }
    return 0;
}
