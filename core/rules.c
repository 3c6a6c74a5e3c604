/* The table of rules: rules.h. Called by unwind.c, on the program's threads. */
#include "core/rules.h"

#include <errno.h>
#include <string.h>
#include "core/eh_frame.h"

struct gt_rules gt_rules;

/* Places to look at from the hashed one on: two cache lines. */
enum { PROBES = 4 };

int gt_rules_init(unsigned bits, void *(*alloc)(size_t))
{
    size_t n = (size_t)1 << bits;
    struct gt_rule *table = alloc((n + PROBES) * sizeof *table);

    if (!table)
        return -ENOMEM;
    for (size_t i = 0; i < n + PROBES; i++)
        __atomic_store_n(&table[i].caller, &table[i], __ATOMIC_RELAXED);
    gt_module_prepare();
    __atomic_store_n(&gt_rules.unloads, gt_module_unloads(), __ATOMIC_RELAXED);
    __atomic_store_n(&gt_rules.shift, 64 - bits, __ATOMIC_RELAXED);
    __atomic_store_n(&gt_rules.table, table, __ATOMIC_RELEASE);
    gt_rules_forget();
    return 0;
}

void gt_rules_forget(void)
{
    /* odd multiples: no two of 2^64 seeds are equal, and they differ in all bits */
    __atomic_fetch_add(&gt_rules.seed, GT_RULES_MIX, __ATOMIC_RELAXED);
}

int gt_rules_look(void)
{
    uint64_t now = gt_module_unloads();
    if (__atomic_load_n(&gt_rules.unloads, __ATOMIC_ACQUIRE) == now)
        return 0;
    gt_rules_forget(); /* first: who sees the new count must see the new seed */
    __atomic_store_n(&gt_rules.unloads, now, __ATOMIC_RELEASE);
    return 1;
}

/* Has the loader taken modules away? Asked when a module is met for the first time since the last
 * change: one that lies where another lay is always such a one. */
static void look_for_unloads(const struct gt_eh_module *m)
{
    static uint64_t seen[256]; /* by hash, the last module met; relaxed: asking twice is harmless */
    uint64_t who = m->start ^ (uint64_t)(uintptr_t)m->hdr << 16 ^ gt_rules_seed();
    uint64_t *place = &seen[who * GT_RULES_MIX >> 56];

    if (__atomic_load_n(place, __ATOMIC_RELAXED) == who)
        return;
    if (!gt_rules_look())
        __atomic_store_n(place, who, __ATOMIC_RELAXED);
}

/* Is `pc` where signal handlers return to? Unwind data may say so of anything; what we read then is
 * the kernel's frame, so its system call must be there. */
static int is_sigreturn(const struct gt_eh_module *m, uint64_t pc)
{
#ifdef __x86_64__
    static const unsigned char code[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 5}; /* rt_sigreturn */
    const unsigned char *p = (const unsigned char *)(uintptr_t)pc;

    for (int i = 0; i < m->spans; i++)
        if (p >= m->span[i].lo && p < m->span[i].hi)
            return (size_t)(m->span[i].hi - p) >= sizeof code && !memcmp(p, code, sizeof code);
#else
    (void)m, (void)pc;
#endif
    return 0;
}

/* 0: no module is there. */
static uint64_t learn(uint64_t pc)
{
    struct gt_eh_module m;
    struct gt_cfi c;

    if (gt_module_find(pc - 1, &m))
        return 0;
    look_for_unloads(&m);
    gt_cfi_find(&m, pc - 1, &c);
    if (c.kind == GT_CFI_END)
        return GT_RULE_END;
    if (c.signal && is_sigreturn(&m, pc))
        return GT_RULE_SIGNAL;
    if (c.kind == GT_CFI_BAD)
        return GT_RULE_BAD;
    if (c.kind != GT_CFI_SIMPLE)
        return GT_RULE_UNKNOWN | (uint64_t)c.base << 42 |
               (uint64_t)(c.cfa_off < GT_RULE_SIZE_MAX ? c.cfa_off : GT_RULE_SIZE_MAX) << 47;
    if (c.leaf)
        return GT_RULE_LEAF | (uint64_t)c.cfa_off << 42 | (c.ra_signed ? GT_RULE_SIGNED : 0);
    if (c.realigned)
        return GT_RULE_REALIGNED | (uint64_t)c.cfa_off << 42;
    return (uint64_t)c.cfa_off | (uint64_t)c.ra_off << 21 | (uint64_t)c.fp_off << 42 |
           (c.from_fp ? GT_RULE_FROM_FP : 0) | (c.ra_signed ? GT_RULE_SIGNED : 0);
}

struct gt_rule *gt_rules_find_slowly(uint64_t pc, uint64_t seed, uint64_t *value)
{
    struct gt_rule *r = gt_rules_place(pc), *to = NULL;

    for (int i = 0; i < PROBES; i++) {
        if (gt_rule_is(&r[i], pc, seed, value))
            return &r[i];
        if (!to && !*value)
            to = &r[i];
    }
    int saved = errno;
    *value = learn(pc);
    errno = saved;
    if (!*value) {
        /* code made at run time: not kept, since a module may be loaded there any time */
        static struct gt_rule nowhere = {.caller = &nowhere};
        *value = GT_RULE_UNKNOWN;
        return &nowhere;
    }
    if (!to) /* full here: one of them goes, another one for each address */
        to = &r[pc % PROBES];
    __atomic_store_n(&to->check, pc ^ *value ^ seed, __ATOMIC_RELAXED);
    __atomic_store_n(&to->value, *value, __ATOMIC_RELAXED);
    __atomic_fetch_add(&gt_rules.learned, 1, __ATOMIC_RELAXED);
    return to;
}
