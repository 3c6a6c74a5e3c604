/* Walking and reuse: unwind.h. The two conditions that make reuse sound:
 *   - a kept slot is read only after all slots inside it were found unchanged. By induction the
 *     frames up to there are the same ones at the same place, so that the slot is one of this very
 *     stack now, whatever happened to the stack in between;
 *   - the kept frames were found by rules of the same seed, none of them by libunwind.
 * The frame pointer is compared only where a rule further out goes by it: optimised code uses it
 * for whatever it likes. */
#include "core/unwind.h"

#include <string.h>
#include "core/core.h"
#include "core/rules.h"

/* Other functions' frames are read: the sanitizers have opinions on that. */
#define READS_STACK __attribute__((no_sanitize("address", "thread", "alignment")))

int gt_stack_init(struct gt_stack *s, uint32_t limit, const struct gt_trie_memory *memory)
{
    s->limit = limit < 1 ? 1 : limit > GT_STACK_DEPTH ? GT_STACK_DEPTH : limit;
    gt_stack_reset(s);
    return gt_trie_init(&s->trie, memory);
}

void gt_stack_reset(struct gt_stack *s)
{
    s->count = 0;
    s->inherited = s->stacks[0];
    memset(s->stacks, 0, sizeof s->stacks);
    memset(s->code, 0, sizeof s->code);
}

/* Innermost first, and not one word beyond the first difference. Returns how many of the slots are
 * left from that one on outwards, itself included; 0: all are unchanged. */
static inline READS_STACK uint32_t changed(const struct gt_stack *s, uint32_t slots)
{
    const struct gt_kept_slot *p = s->slots + slots;
    for (; slots >= 4;
         slots -= 4, p -= 4) { /* half of what an unchanged stack costs is this loop */
        if (unlikely(*p[-1].at != p[-1].value))
            return slots;
        if (unlikely(*p[-2].at != p[-2].value))
            return slots - 1;
        if (unlikely(*p[-3].at != p[-3].value))
            return slots - 2;
        if (unlikely(*p[-4].at != p[-4].value))
            return slots - 3;
    }
    for (; slots && *p[-1].at == p[-1].value; slots--)
        p--;
    return slots;
}

static inline int same_frame(const struct gt_kept *f, uint64_t pc, uint64_t sp, uint64_t fp)
{
    return f->sp == sp && f->pc == pc && !((f->fp ^ fp) & f->fp_mask);
}

/* A return address without its authentication code. */
static inline uint64_t plain(uint64_t ra, uint64_t rule)
{
#ifdef __aarch64__
    if (unlikely(rule & GT_RULE_SIGNED)) {
        register uint64_t x30 __asm__("x30") = ra;
        __asm__("hint #7" : "+r"(x30)); /* xpaclri */
        return x30;
    }
#else
    (void)rule;
#endif
    return ra;
}

enum ending {
    MET,       /* a kept frame */
    WHOLE,     /* the outermost frame */
    DEEP,      /* the limit */
    UNCOVERED, /* the last step's frame has no rule */
    BROKEN,    /* the last step's frame would lie outside of the stack */
    NOWHERE,   /* sp is in no stack */
};

struct walk {
    uint32_t steps;
    uint32_t met; /* kept frames that are still there, outermost first */
};

/* The kernel's frame as a signal handler's return finds it at the stack pointer: which words of it
 * hold the interrupted registers. */
#ifdef __x86_64__
enum { UC_FP = 15, UC_SP = 20, UC_PC = 21, UC_LR = UC_PC /* none */, UC_WORDS = 64 };
#else
enum { UC_FP = 68, UC_LR = 69, UC_SP = 70, UC_PC = 71, UC_WORDS = 80 };
#endif

/* Where a walk is: a frame's return address and the registers after that return. */
struct at {
    uint64_t pc, sp, fp;
    uint64_t lr; /* of an interrupted instruction */
};

/* The caller of a signal handler's frame: what the signal interrupted. 0: the frame does not lie in
 * the stack, or what it says makes no sense. */
static READS_STACK int step_signal(struct gt_stack *s, struct at *at)
{
    const uint64_t *uc = (const uint64_t *)at->sp;

    if ((s->stacks[0].hi - at->sp) / 8 < UC_WORDS || !uc[UC_PC] || GT_NO_ADDRESS(uc[UC_PC]) ||
        !gt_where_stack(s, uc[UC_SP]))
        return 0;
    *at = (struct at){uc[UC_PC] | GT_TRIE_EXACT, uc[UC_SP], uc[UC_FP], uc[UC_LR]};
    return 1;
}

#ifdef __aarch64__
/* Is `pc` where signal handlers return to? There is no unwind data for it. */
static READS_STACK int is_sigreturn(struct gt_stack *s, uint64_t pc)
{
    const uint32_t *code = (const uint32_t *)pc;

    return pc % 4 == 0 && gt_where_code(s, pc) && s->code[0].hi - pc >= 8 &&
           code[0] == 0xd2801168 /* mov x8, #139 */ && code[1] == 0xd4000001 /* svc #0 */;
}

static int step_leaf(struct gt_stack *s, uint64_t rule, struct at *at)
{
    uint64_t size = GT_RULE_FP(rule);

    if (!(at->pc & GT_TRIE_EXACT) || size > s->stacks[0].hi - at->sp)
        return 0;
    *at = (struct at){plain(at->lr, rule), at->sp + size, at->fp, 0};
    return 1;
}
#endif

/* A word of the stack has led further than frames as a rule are long. A smaller stack may lie now
 * where this one was looked up, with nothing behind it: it is looked up again, once in a walk. */
enum { FAR = 4096 };
static __attribute__((noinline)) int still_there(struct gt_stack *s, uint64_t sp, uint64_t to)
{
    return s->again || gt_where_again(s, sp, to);
}

/* The caller of a function that aligned its stack. */
static READS_STACK int step_realigned(struct gt_stack *s, uint64_t rule, struct at *at)
{
    uint64_t where = at->fp - GT_RULE_FP(rule), hi = s->stacks[0].hi, sp = at->sp, cfa;

    if (at->fp - sp > FAR) {
        if (!still_there(s, sp, at->fp))
            return 0;
        hi = s->stacks[0].hi;
    }
    if (where - sp > hi - sp || at->fp - sp > hi - sp || hi - at->fp < 16)
        return 0;
    cfa = *(const uint64_t *)where;
    if (cfa - sp > FAR) {
        if (!still_there(s, sp, cfa))
            return 0;
        hi = s->stacks[0].hi;
    }
    if (cfa - at->fp < 16 || cfa - at->fp > hi - at->fp)
        return 0;
    *at = (struct at){*(const uint64_t *)(cfa - 8), cfa, *(const uint64_t *)at->fp, 0};
    return 1;
}

/* The caller of a frame with a special rule. MET: there it is. */
static enum ending step_special(struct gt_stack *s, uint64_t *rule, struct at *at)
{
    if (*rule == GT_RULE_END)
        return WHOLE;
    if (*rule == GT_RULE_BAD)
        return BROKEN;
#ifdef __aarch64__
    if (GT_RULE_KIND(*rule) == GT_RULE_UNKNOWN && is_sigreturn(s, at->pc))
        *rule = GT_RULE_SIGNAL;
    if (GT_RULE_KIND(*rule) == GT_RULE_LEAF)
        return step_leaf(s, *rule, at) ? MET : UNCOVERED;
#endif
    if (GT_RULE_KIND(*rule) == GT_RULE_UNKNOWN)
        return UNCOVERED;
    if (*rule == GT_RULE_SIGNAL)
        return step_signal(s, at) ? MET : BROKEN;
    return step_realigned(s, *rule, at) ? MET : BROKEN;
}

/* Walks inwards out, until it meets one of the outermost `met` kept frames that is unchanged. */
static READS_STACK enum ending walk(struct gt_stack *s, const struct gt_regs *from, uint64_t seed,
                                    struct walk *w)
{
    struct at at = {from->pc, from->sp, from->fp, 0};
    const struct gt_kept *kept = &s->frames[w->met];
    struct gt_stack_step *step = s->steps, *last = step + s->limit;
    struct gt_rule *r;
    uint64_t value, hi;
    enum ending e;

    w->steps = w->met = 0;
    s->again = 0;
    if (unlikely(at.sp - s->stacks[0].lo >= s->stacks[0].hi - s->stacks[0].lo) &&
        !gt_where_stack(s, at.sp))
        return NOWHERE;
    hi = s->stacks[0].hi;
    s->frames[0].sp = UINT64_MAX;
    r = gt_rules_find(at.pc, seed, &value);
    for (;; step++) {
        while (kept->sp < at.sp)
            kept--;
        if (same_frame(kept, at.pc, at.sp, at.fp)) {
            uint32_t left = changed(s, kept->slots);
            e = MET;
            if (!left) {
                w->met = (uint32_t)(kept - s->frames);
                break;
            }
            /* no frame that goes by this slot can be met: no slot is looked at twice */
            do
                kept--;
            while (kept > s->frames && kept->slots >= left);
        }
        step->pc = at.pc;
        step->sp = at.sp;
        step->fp = at.fp;
        step->rule = value;
        e = DEEP;
        if (unlikely(step == last))
            break;
        uint64_t base = at.sp;
        if (unlikely(value & (GT_RULE_FROM_FP | GT_RULE_SPECIAL))) {
            if (value & GT_RULE_SPECIAL) {
                e = step_special(s, &step->rule, &at);
                if (e != MET) {
                    step++;
                    break;
                }
                if (!at.pc) {
                    *++step = (struct gt_stack_step){.sp = at.sp};
                    e = WHOLE;
                    break;
                }
                hi = s->stacks[0].hi;
                /* an interrupted instruction has the rule of a return address behind it */
                r = gt_rules_find((at.pc & ~GT_TRIE_EXACT) + (at.pc >> 63), seed, &value);
                continue;
            }
            base = at.fp;
            if (unlikely(base - at.sp > FAR)) {
                e = BROKEN;
                if (!still_there(s, at.sp, base)) {
                    step++;
                    break;
                }
                hi = s->stacks[0].hi;
            }
        }
        uint64_t cfa = base + GT_RULE_CFA(value), saved = GT_RULE_FP(value);
        e = BROKEN;
        /* with a sane base cfa can't overflow, and all that was saved lies above base */
        if (unlikely(base - at.sp > hi - at.sp || cfa > hi)) {
            step++;
            break;
        }
        at.sp = cfa;
        at.pc = plain(*(const uint64_t *)(cfa - GT_RULE_RA(value)), value);
        if (saved)
            at.fp = *(const uint64_t *)(cfa - saved);
        struct gt_rule *next = __atomic_load_n(&r->caller, __ATOMIC_RELAXED);
        if (unlikely(!gt_rule_is(next, at.pc, seed, &value))) {
            e = WHOLE;
            if (!at.pc) {
                *++step = (struct gt_stack_step){.sp = cfa};
                break;
            }
            next = gt_rules_find(at.pc, seed, &value);
            __atomic_store_n(&r->caller, next, __ATOMIC_RELAXED);
        }
        r = next;
    }
    w->steps = (uint32_t)(step - s->steps);
    s->walked += w->steps;
    return e;
}

static READS_STACK struct gt_kept_slot slot_at(uint64_t at)
{
    return (struct gt_kept_slot){(const uint64_t *)at, *(const uint64_t *)at};
}

/* Adds the words that a step's caller was found by, and where the caller's begins is `cfa`. Those
 * that the place of others depends on come last, since they are verified first. */
static struct gt_kept_slot *add_slots(struct gt_kept_slot *to, const struct gt_stack_step *step,
                                      uint64_t cfa, uint64_t caller_mask)
{
    uint64_t rule = step->rule, saved = GT_RULE_FP(rule);

    if (rule == GT_RULE_SIGNAL) {
        if (caller_mask)
            *to++ = slot_at(step->sp + UC_FP * 8);
        if (UC_LR != UC_PC)
            *to++ = slot_at(step->sp + UC_LR * 8);
        *to++ = slot_at(step->sp + UC_SP * 8);
        *to++ = slot_at(step->sp + UC_PC * 8);
    } else if (GT_RULE_KIND(rule) == GT_RULE_REALIGNED) {
        if (caller_mask)
            *to++ = slot_at(step->fp);
        *to++ = slot_at(cfa - 8);
        *to++ = slot_at(step->fp - saved);
    } else if (rule != GT_RULE_END && GT_RULE_KIND(rule) != GT_RULE_LEAF) {
        if (saved && caller_mask)
            *to++ = slot_at(cfa - saved);
        *to++ = slot_at(cfa - GT_RULE_RA(rule));
    }
    return to;
}

/* Does the frame pointer matter to this rule or, where it comes through unchanged, further out? */
static inline uint64_t fp_mask(uint64_t rule, uint64_t caller_mask)
{
    if (unlikely(rule & (GT_RULE_SPECIAL | GT_RULE_FROM_FP))) {
        if (rule & GT_RULE_FROM_FP || GT_RULE_KIND(rule) == GT_RULE_REALIGNED)
            return ~UINT64_C(0);
        return GT_RULE_KIND(rule) == GT_RULE_LEAF ? caller_mask : 0;
    }
    return GT_RULE_FP(rule) ? 0 : caller_mask;
}

/* Puts the steps on top of the kept frames that were met. */
static READS_STACK uint32_t keep(struct gt_stack *s, const struct walk *w, uint32_t bottom)
{
    struct gt_kept *f = &s->frames[w->met];
    uint32_t node = w->met ? f->node : bottom;
    uint64_t mask = w->met ? f->fp_mask : 0, cfa = w->met ? f->sp : s->steps[w->steps].sp;
    struct gt_kept_slot *slot = s->slots + (w->met ? f->slots : 0);
    const struct gt_stack_step *step = &s->steps[w->steps];

    s->count = 0; /* in case the program leaves a signal handler by longjmp in between */
    for (; step > s->steps; mask = f->fp_mask, cfa = f->sp) {
        step--;
        f++;
        f->pc = step->pc;
        f->sp = step->sp;
        f->fp = step->fp;
        f->node = node = gt_trie_child(&s->trie, node, step->pc);
        if (likely(!(step->rule & GT_RULE_SPECIAL)) && !(mask && GT_RULE_FP(step->rule)))
            *slot++ = slot_at(cfa - GT_RULE_RA(step->rule));
        else
            slot = add_slots(slot, step, cfa, mask);
        f->slots = (uint32_t)(slot - s->slots);
        f->fp_mask = fp_mask(step->rule, mask);
    }
    s->count = (uint32_t)(f - s->frames);
    return node;
}

/* A stack that can't be kept: the steps' addresses, no more. */
static uint32_t enter_only(struct gt_stack *s, uint32_t n, uint32_t bottom)
{
    uint32_t node = bottom;

    s->count = 0;
    s->truncated += bottom == GT_TRIE_TRUNCATED;
    s->cut += bottom == GT_TRIE_CUT;
    while (n--)
        node = gt_trie_child(&s->trie, node, s->steps[n].pc);
    return node;
}

static uint32_t uncovered(struct gt_stack *s, const struct gt_regs *at, uint32_t steps)
{
    uint32_t bottom, n = 0;

    /* a smashed return address: libunwind would look what is there */
    if (!gt_where_code(s, s->steps[steps - 1].pc & ~GT_TRIE_EXACT))
        return enter_only(s, steps - 1, GT_TRIE_CUT);
    n = gt_unwind_fallback(s, at, &bottom);
    return n ? enter_only(s, n, bottom) : enter_only(s, steps, GT_TRIE_CUT);
}

static __attribute__((noinline)) uint32_t capture_slowly(struct gt_stack *s,
                                                         const struct gt_regs *at)
{
    s->news = 1;
    struct walk w = {0, 0};
    enum ending e = NOWHERE;
    uint64_t seed = gt_rules_seed();
    int again = 0;

    if (s->seed != seed)
        s->count = 0;
    w.met = s->whole_only ? 0 : s->count;
    for (int tries = 0;; tries++) {
        e = walk(s, at, seed, &w);
        uint64_t now = gt_rules_seed();
        if (now != seed && tries < 8) { /* something was unloaded: rules of before may be wrong */
            seed = now;
            w.met = s->count = 0;
        } else if (e == MET && w.met + w.steps > s->limit) {
            w.met = 0; /* deeper than the limit: a walk of its own tells where that is */
        } else if (e == BROKEN && !again && !(s->broken & (s->broken + 1))) {
            again = 1; /* a smaller stack may have lain here before; asked ever more rarely */
            gt_where_forget(s, at->sp);
            w.met = 0;
        } else {
            break;
        }
    }
    uint32_t node;
    if (s->seed != seed && s->trie.memory.unloaded)
        s->trie.memory.unloaded(&s->trie); /* before a node is looked for */
    s->seed = seed;
    s->whole_only = e == DEEP;
    switch (e) {
    case DEEP:
        s->truncated++;
        node = keep(s, &w, GT_TRIE_TRUNCATED);
        break;
    case UNCOVERED:
        node = uncovered(s, at, w.steps);
        break;
    case BROKEN:
        s->broken++;
        node = enter_only(s, w.steps, GT_TRIE_CUT);
        break;
    case NOWHERE:
        s->steps[0].pc = at->pc;
        node = enter_only(s, 1, GT_TRIE_CUT);
        break;
    default:
        node = keep(s, &w, GT_TRIE_ROOT);
    }
    return node;
}

uint32_t gt_stack_capture(struct gt_stack *s, const struct gt_regs *at)
{
    uint32_t top = s->count;

    if (likely(top && s->seed == gt_rules_seed())) {
        const struct gt_kept *f = &s->frames[top];
        if (likely(same_frame(f, at->pc, at->sp, at->fp) && !changed(s, f->slots))) {
            if (unlikely(s->whole_only)) {
                s->truncated++;
                s->news = 1;
            }
            return f->node;
        }
    }
    return capture_slowly(s, at);
}
