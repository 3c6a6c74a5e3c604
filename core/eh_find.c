/* Finds the loaded module that holds an address, and its readable segments: eh_frame.h. Any thread.
 *
 * From glibc 2.35 on _dl_find_object answers without a lock. That matters beyond speed: fork does
 * not reset the lock of dl_iterate_phdr, so a child forked while another thread holds it would hang
 * at its first look. */
#include "core/eh_frame.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include "core/compat.h"

/* glibc's struct dl_find_object; our own words, since the headers may be older than the system */
struct found {
    unsigned long long flags;
    void *map_start, *map_end;
    struct link_map *map;
    void *eh_frame_hdr;
    unsigned long long reserved[8];
};
typedef int find_object_fn(void *pc, struct found *out);

/* Written once, before the first look. */
static find_object_fn *find_object;

void gt_module_prepare(void)
{
    static int done;
    /* relaxed: looking twice does no harm */
    if (__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
        return;
    find_object = (find_object_fn *)dlvsym(RTLD_DEFAULT, "_dl_find_object", "GLIBC_2.35");
}

/* Takes the readable segments and the unwind data's place from the program headers. */
static int take(struct gt_eh_module *m, uintptr_t base, const ElfW(Phdr) * ph, size_t n,
                uintptr_t pc)
{
    int inside = 0;

    m->start = UINTPTR_MAX;
    m->hdr = NULL;
    m->spans = 0;
    for (size_t i = 0; i < n; i++) {
        uintptr_t lo = base + ph[i].p_vaddr;
        uintptr_t hi = lo + ph[i].p_filesz;
        if (ph[i].p_type == PT_GNU_EH_FRAME)
            m->hdr = (const unsigned char *)lo;
        if (ph[i].p_type != PT_LOAD || hi < lo)
            continue;
        if (lo < m->start)
            m->start = lo;
        if (pc >= lo && pc < lo + ph[i].p_memsz)
            inside = 1;
        if ((ph[i].p_flags & PF_R) && m->spans < GT_MODULE_SPANS)
            m->span[m->spans++] =
                (struct gt_span){(const unsigned char *)lo, (const unsigned char *)hi};
    }
    return inside && m->hdr ? 0 : -ENOENT;
}

struct look {
    uintptr_t pc;
    struct gt_eh_module *m;
    int found; /* 1 or -ENOENT once the module was seen, 0 before */
};

static int each(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct look *l = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type == PT_LOAD && l->pc - (info->dlpi_addr + ph->p_vaddr) < ph->p_memsz) {
            int r = take(l->m, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum, l->pc);
            l->found = r ? r : 1;
            return 1;
        }
    }
    return 0;
}

/* The program headers where the loader's answer gives only the module: behind the ELF header, which
 * is the first thing mapped. Whole in the first page, or we ask the slow way. */
static int by_header(const struct found *f, uintptr_t pc, struct gt_eh_module *m)
{
    const ElfW(Ehdr) *e = f->map_start;
    const size_t page = 4096;

    if ((uintptr_t)f->map_end - (uintptr_t)f->map_start < page ||
        memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_phentsize != sizeof(ElfW(Phdr)) ||
        e->e_phoff > page || e->e_phnum > (page - e->e_phoff) / sizeof(ElfW(Phdr)) ||
        e->e_phoff % sizeof(uint64_t))
        return -EINVAL;
    const ElfW(Phdr) *ph = (const void *)((const char *)e + e->e_phoff);
    if (take(m, f->map->l_addr, ph, e->e_phnum, pc) || m->start / page != (uintptr_t)e / page)
        return -EINVAL;
    m->hdr = f->eh_frame_hdr;
    return 0;
}

int gt_module_find(uintptr_t pc, struct gt_eh_module *m)
{
    struct found f;

    if (find_object) {
        if (find_object((void *)pc, &f) != 0 || !f.eh_frame_hdr)
            return -ENOENT;
        if (by_header(&f, pc, m) == 0)
            return 0;
    }
    struct look l = {.pc = pc, .m = m};
    dl_iterate_phdr(each, &l);
    return l.found == 1 ? 0 : -ENOENT;
}

int gt_module_may_hold(uintptr_t pc)
{
    struct found f;
    return !find_object || find_object((void *)pc, &f) == 0;
}

static int first(struct dl_phdr_info *info, size_t size, void *arg)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *(uint64_t *)arg = info->dlpi_subs;
    return 1;
}

uint64_t gt_module_unloads(void)
{
    uint64_t n = 0;
    dl_iterate_phdr(first, &n);
    return n;
}
