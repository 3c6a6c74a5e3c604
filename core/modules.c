/* See modules.h. */
#include "core/modules.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include "core/eh_frame.h"
#include "core/rules.h"
#include "core/session.h"
#include "core/strings.h"
#include "core/sys.h"

/* Ids beyond are not handed out. A program that loads so many has loaded most of them again and
 * again. */
enum { MOST = 65535 };

/* By id. Mapped when the first one goes. A program that loads and unloads for ever has a long list
 * of which hardly anything is there: who walks it leaves behind where those that are gone end. */
struct gone {
    uint8_t is[MOST + 1];
    gt_ref next[MOST + 1]; /* of the first that was not gone behind it, when last looked; 0: none */
};
static _Atomic(void *) gone_table;
static _Atomic uint32_t gone_count; /* release, after the table was written */
static _Atomic uint64_t checked;    /* the seed at which was looked last */

static const struct gt_module *first_module(void)
{
    gt_ref ref = atomic_load_explicit(&gt_session.header->modules, memory_order_acquire);
    return ref ? gt_session_at(ref) : NULL;
}

static int is_gone(uint32_t id)
{
    const struct gone *table = atomic_load_explicit(&gone_table, memory_order_acquire);
    return table && __atomic_load_n(&table->is[id], __ATOMIC_RELAXED);
}

/* The next one that is not gone. What is behind a module only ever goes, so a place that was left
 * behind stays right. */
static const struct gt_module *next_live(const struct gt_module *m)
{
    struct gone *table = atomic_load_explicit(&gone_table, memory_order_acquire);
    uint32_t from = m->id;
    gt_ref ref = m->next, kept;
    if (!table)
        return ref ? gt_session_at(ref) : NULL;
    if ((kept = __atomic_load_n(&table->next[from], __ATOMIC_RELAXED)))
        ref = kept;
    while (ref && (m = gt_session_at(ref), is_gone(m->id))) {
        kept = __atomic_load_n(&table->next[m->id], __ATOMIC_RELAXED);
        ref = kept ? kept : m->next;
    }
    if (ref)
        __atomic_store_n(&table->next[from], ref, __ATOMIC_RELAXED);
    return ref ? gt_session_at(ref) : NULL;
}

/* `m` itself, or the next one. */
static const struct gt_module *live(const struct gt_module *m)
{
    return m && is_gone(m->id) ? next_live(m) : m;
}

static uint32_t find(const struct gt_module *m, uint64_t address)
{
    for (m = live(m); m; m = next_live(m))
        if (address >= m->start && address < m->end)
            return m->id;
    return 0;
}

/* ---- what the loader says ---- */

struct look {
    uint64_t address;
    int found;
    const char *name;
    struct gt_module m;
};

static int holds(const struct dl_phdr_info *info, uint64_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type == PT_LOAD && address - (info->dlpi_addr + ph->p_vaddr) < ph->p_memsz)
            return 1;
    }
    return 0;
}

static void mappings(const struct dl_phdr_info *info, struct gt_module *m)
{
    const uint64_t page = getauxval(AT_PAGESZ) - 1;
    m->bias = info->dlpi_addr;
    m->start = UINT64_MAX;
    m->end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uint64_t lo = (info->dlpi_addr + ph->p_vaddr) & ~page,
                 hi = (info->dlpi_addr + ph->p_vaddr + ph->p_memsz + page) & ~page;
        if (ph->p_type != PT_LOAD)
            continue;
        m->start = lo < m->start ? lo : m->start;
        m->end = hi > m->end ? hi : m->end;
    }
}

/* The words of a note segment lie in memory as far as a readable PT_LOAD says so. */
static int is_readable(const struct dl_phdr_info *info, uint64_t vaddr, uint64_t bytes)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type == PT_LOAD && ph->p_flags & PF_R && vaddr >= ph->p_vaddr &&
            vaddr - ph->p_vaddr <= ph->p_filesz && bytes <= ph->p_filesz - (vaddr - ph->p_vaddr))
            return 1;
    }
    return 0;
}

static uint32_t build_id_in(const char *p, uint64_t bytes, uint64_t align, uint8_t *id)
{
    while (bytes >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *n = (const void *)p;
        uint64_t name = (n->n_namesz + align - 1) & ~(align - 1),
                 size = (n->n_descsz + align - 1) & ~(align - 1);
        p += sizeof *n;
        bytes -= sizeof *n;
        if (name > bytes || n->n_descsz > bytes - name)
            return 0;
        if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && memcmp(p, "GNU", 4) == 0 &&
            n->n_descsz <= GT_BUILD_ID_MAX) {
            memcpy(id, p + name, n->n_descsz);
            return n->n_descsz;
        }
        if (size > bytes - name)
            return 0;
        p += name + size;
        bytes -= name + size;
    }
    return 0;
}

static void build_id(const struct dl_phdr_info *info, struct gt_module *m)
{
    for (int i = 0; i < info->dlpi_phnum && !m->build_id_bytes; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type == PT_NOTE && ph->p_vaddr % 4 == 0 &&
            is_readable(info, ph->p_vaddr, ph->p_filesz))
            m->build_id_bytes = build_id_in((const char *)(info->dlpi_addr + ph->p_vaddr),
                                            ph->p_filesz, ph->p_align == 8 ? 8 : 4, m->build_id);
    }
}

static int each(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct look *l = arg;
    (void)size;
    if (!holds(info, l->address))
        return 0;
    mappings(info, &l->m);
    build_id(info, &l->m);
    l->name = info->dlpi_name ? info->dlpi_name : "";
    l->found = 1;
    return 1;
}

/* ---- names ---- */

static int is_vdso(const struct gt_module *m)
{
    uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
    return vdso && vdso >= m->start && vdso < m->end;
}

/* A relative name was meant from the folder of that time, which we hope is this one still. Too
 * large for a signal handler's stack, so there is one for all: who comes while it is in use has the
 * name as it is. */
static __attribute__((noinline)) gt_ref absolute(const char *name)
{
    static atomic_flag busy = ATOMIC_FLAG_INIT;
    static char path[4096];
    const char *full = name;
    gt_ref ref = 0;
    if (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        return gt_strings_roomy(name, strlen(name), &ref) ? ref : 0;
    long n = gt_sys(SYS_getcwd, (long)path, sizeof path, 0, 0, 0, 0) - 1;
    size_t length = strlen(name);
    if (n > 0 && *path == '/' && (size_t)n + 1 + length < sizeof path) {
        path[n] = '/';
        memcpy(path + n + 1, name, length + 1);
        if (gt_sys(SYS_faccessat, AT_FDCWD, (long)path, F_OK, 0, 0, 0) == 0)
            full = path;
    }
    gt_strings_roomy(full, strlen(full), &ref);
    atomic_flag_clear_explicit(&busy, memory_order_release);
    return ref;
}

/* The loader has no name for the program, and a made-up one for the kernel's. */
static gt_ref path_of(const struct look *l)
{
    gt_ref ref = 0;
    const char *name = l->name;
    if (is_vdso(&l->m))
        name = "[vdso]";
    else if (!*name)
        return gt_session.header->exe;
    else if (*name != '/')
        return absolute(name);
    gt_strings_roomy(name, strlen(name), &ref);
    return ref;
}

/* ---- new ones ---- */

static __attribute__((noinline)) uint32_t add(uint64_t address)
{
    struct look l = {.address = address};
    const struct gt_module *newest = first_module();
    gt_ref ref;
    if (newest && newest->id >= MOST)
        return 0;
    dl_iterate_phdr(each, &l);
    struct gt_module *m = l.found ? gt_session_alloc_roomy(sizeof *m, &ref) : NULL;
    if (!m)
        return 0;
    *m = l.m;
    m->path = path_of(&l);
    if (!m->path)
        return 0;
    m->next = atomic_load_explicit(&gt_session.header->modules, memory_order_acquire);
    do {
        newest = m->next ? gt_session_at(m->next) : NULL;
        uint32_t there = find(newest, address); /* another thread was first? */
        if (there)
            return there;
        m->id = newest ? newest->id + 1 : 1;
        if (m->id > MOST)
            return 0;
        /* release: a reader that finds the module finds it complete */
    } while (!atomic_compare_exchange_weak_explicit(&gt_session.header->modules, &m->next, ref,
                                                    memory_order_acq_rel, memory_order_acquire));
    return m->id;
}

uint32_t gt_modules_of(uint64_t pc)
{
    if (pc & GT_TRIE_PYTHON)
        return 0;
    /* a call that never returns may be the last instruction of its module */
    uint64_t address = pc & GT_TRIE_EXACT ? pc & ~GT_TRIE_EXACT : pc - 1;
    uint32_t id = find(first_module(), address);
    if (id || !gt_module_may_hold(address))
        return id;
    return add(address);
}

/* ---- those that go ---- */

enum { BATCH = 64 };

struct presence {
    const struct gt_module *of[BATCH];
    uint64_t here; /* a bit for each */
    unsigned n;
};

static int is_same(const struct gt_module *m, const struct dl_phdr_info *info)
{
    struct gt_module now;
    const char *path = gt_session_text(m->path), *name = info->dlpi_name ? info->dlpi_name : "";
    size_t a = strlen(path), b = strlen(name);
    if (m->bias != info->dlpi_addr)
        return 0;
    mappings(info, &now);
    return now.start == m->start && now.end == m->end &&
           (!b || is_vdso(m) || (b <= a && strcmp(path + a - b, name) == 0));
}

static int mark(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct presence *p = arg;
    (void)size;
    for (unsigned i = 0; i < p->n; i++)
        if (is_same(p->of[i], info))
            p->here |= UINT64_C(1) << i;
    return 0;
}

static void set_gone(uint32_t id)
{
    struct gone *table = gt_sys_map_once(&gone_table, sizeof *table);
    if (!table)
        return;
    __atomic_store_n(&table->is[id], 1, __ATOMIC_RELAXED);
    atomic_fetch_add_explicit(&gone_count, 1, memory_order_release);
}

void gt_modules_check(void)
{
    uint64_t seed = gt_rules_seed();
    /* a fork's child has none of its own yet, and unmaps its parent's any time */
    if (atomic_load_explicit(&gt_fork.phase, memory_order_acquire) != GT_PHASE_OPEN ||
        atomic_load_explicit(&checked, memory_order_acquire) == seed)
        return;
    for (const struct gt_module *m = live(first_module()); m;) {
        struct presence p = {.n = 0};
        for (; m && p.n < BATCH; m = next_live(m))
            p.of[p.n++] = m;
        dl_iterate_phdr(mark, &p);
        for (unsigned i = 0; i < p.n; i++)
            if (!(p.here >> i & 1) && !is_gone(p.of[i]->id))
                set_gone(p.of[i]->id);
    }
    atomic_store_explicit(&checked, seed, memory_order_release);
}

static int in_gone(uint32_t module)
{
    return module && is_gone(module);
}

void gt_modules_forget(struct gt_trie *trie)
{
    gt_modules_check();
    uint32_t gone = atomic_load_explicit(&gone_count, memory_order_acquire);
    if (trie->gone == gone)
        return;
    trie->gone = gone;
    gt_trie_forget(trie, in_gone);
}

void gt_modules_reset(void)
{
    void *table = atomic_load_explicit(&gone_table, memory_order_relaxed);
    if (table && atomic_load_explicit(&gone_count, memory_order_relaxed))
        memset(table, 0, sizeof(struct gone));
    atomic_store_explicit(&gone_count, 0, memory_order_relaxed);
    atomic_store_explicit(&checked, 0, memory_order_relaxed);
}
