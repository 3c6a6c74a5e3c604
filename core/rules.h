/* What is known about return addresses: for each, how to get from the frame it returns to to that
 * frame's caller. Learned once from .eh_frame and kept in one table for the process.
 *
 * Any thread, lock-free; a rule may be overwritten at any time, by a race too, so an entry proves
 * itself: `check` is address ^ value ^ seed. A torn or stale one gives another address and is no
 * match. The seed changes when code may have been unloaded, which makes every rule stale at once.
 *
 * How an unload is noticed: whoever sees a dlclose end calls gt_rules_look. Beyond that, the
 * first rule of a module that was not seen before asks the loader how many modules are gone; so
 * a module that took another's place unnoticed is found out at its first new return address. */
#ifndef GT_RULES_H
#define GT_RULES_H

#include <stddef.h>
#include <stdint.h>

/* A rule's value. Distances are in bytes, multiples of 8, below 2 MiB; that leaves three bits each:
 *   bits 0..20:  CFA - base,  21..41: CFA - place of the return address,
 *   bits 42..63: CFA - place of the caller's frame pointer, 0 if it is still in the register */
#define GT_RULE_FROM_FP UINT64_C(1) /* the base is the frame pointer, else the stack pointer */
#define GT_RULE_SIGNED UINT64_C(2)  /* the return address carries an authentication code */
#define GT_RULE_SPECIAL UINT64_C(4) /* none of the above, but one of the next: */
#define GT_RULE_END (GT_RULE_SPECIAL | 8)      /* the outermost frame */
#define GT_RULE_UNKNOWN (GT_RULE_SPECIAL | 16) /* not simple, or no unwind data: for libunwind */
/* In one that is not simple: 1 + the register, by DWARF's number, that its CFA is told from, and by
 * how much, if that can be said; 0: not known. */
#define GT_RULE_BASE(value) ((value) >> 42 & 31)
#define GT_RULE_SIZE(value) ((value) >> 47)
#define GT_RULE_SIZE_MAX 0x1ffffu             /* and more */
#define GT_RULE_SIGNAL (GT_RULE_SPECIAL | 24) /* the caller is in the kernel's struct ucontext */
/* See struct gt_cfi; bits 42..63: frame pointer - place of the CFA. */
#define GT_RULE_REALIGNED (GT_RULE_SPECIAL | 32)
/* aarch64: both are in their registers; bits 42..63: CFA - stack pointer. Only of use where a
 * signal interrupted, since a call overwrites the return address's register. */
#define GT_RULE_LEAF (GT_RULE_SPECIAL | 40)
#define GT_RULE_BAD (GT_RULE_SPECIAL | 48) /* damaged unwind data: there is no way on */
#define GT_RULE_KIND(value) ((value)&0x3c)

#define GT_RULE_CFA(value) ((value)&0x1ffff8)
#define GT_RULE_FP(value) ((value) >> 42)
#ifdef __x86_64__
#define GT_RULE_RA(value) UINT64_C(8)
#else
#define GT_RULE_RA(value) ((value) >> 21 & 0x1ffff8)
#endif

/* Two a cache line. */
struct gt_rule {
    uint64_t check;         /* all three are read and written relaxed */
    uint64_t value;         /* 0: empty */
    struct gt_rule *caller; /* the rule met next, last time: a guess, never NULL */
    uint64_t unused;
};

struct gt_rules {
    struct gt_rule *table;
    uint64_t seed;
    uint64_t learned; /* how often .eh_frame was read, about: threads may lose a count */
    uint64_t unloads; /* the loader's count when it was last asked */
    unsigned shift;   /* the hash's upper bits are the place */
};
extern struct gt_rules gt_rules __attribute__((visibility("hidden")));

/* Makes room for 1 << `bits` rules, 32 bytes each, from `alloc` (zeroed memory that is never taken
 * back). 0 or -ENOMEM. Before the first capture; several threads may do it at once, each before its
 * own, if `alloc` gives all of them the same memory. */
int gt_rules_init(unsigned bits, void *(*alloc)(size_t bytes));

/* All rules become stale. Cheap. Called before and after code is unloaded. */
void gt_rules_forget(void);

/* Likewise if the loader has taken modules away since it was asked last: then 1, else 0. */
int gt_rules_look(void);

static inline uint64_t gt_rules_seed(void)
{
    return __atomic_load_n(&gt_rules.seed, __ATOMIC_RELAXED);
}

/* Is `r` the rule for `pc`? Then *value is what it says. */
static inline int gt_rule_is(const struct gt_rule *r, uint64_t pc, uint64_t seed, uint64_t *value)
{
    uint64_t v = __atomic_load_n(&r->value, __ATOMIC_RELAXED);
    *value = v;
    return (__atomic_load_n(&r->check, __ATOMIC_RELAXED) ^ v ^ seed) == pc;
}

/* The rest of gt_rules_find: looks further, and learns. */
struct gt_rule *gt_rules_find_slowly(uint64_t pc, uint64_t seed, uint64_t *value);

#define GT_RULES_MIX UINT64_C(0x9e3779b97f4a7c15)

/* Where the rule for `pc` is looked for first. Two threads may set the table up at once, with the
 * same values. */
static inline struct gt_rule *gt_rules_place(uint64_t pc)
{
    struct gt_rule *table = __atomic_load_n(&gt_rules.table, __ATOMIC_RELAXED);
    return &table[pc * GT_RULES_MIX >> __atomic_load_n(&gt_rules.shift, __ATOMIC_RELAXED)];
}

/* The rule for the return address `pc`, which tells of the instruction before it (so an address
 * that was interrupted is looked up as the next one); never NULL. If the loader's count has changed
 * meanwhile the seed has too: what was learned in this walk under the old one must be looked up
 * again. errno is kept. */
static inline struct gt_rule *gt_rules_find(uint64_t pc, uint64_t seed, uint64_t *value)
{
    struct gt_rule *r = gt_rules_place(pc);
    return gt_rule_is(r, pc, seed, value) ? r : gt_rules_find_slowly(pc, seed, value);
}

#endif
