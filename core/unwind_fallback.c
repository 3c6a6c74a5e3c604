/* Stacks that the rules do not cover, by libunwind: unwind.h. Called by unwind.c.
 *
 * libunwind believes what it reads, so before each of its steps we look whether that step would
 * leave the stack. The types and names of its interface are our own words for its C ABI, which has
 * been the same since 1.1. */
#include "core/unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include "core/core.h"
#include "core/compat.h"
#include "core/rules.h"
#include "core/sys.h"

#ifdef __x86_64__
#define NAME(what) "_ULx86_64_" what
#define FLUSH "_Ux86_64_flush_cache"
enum { REG_IP = 16, REG_SP = 7, REG_FP = 6 };
#else
#define NAME(what) "_ULaarch64_" what
#define FLUSH "_Uaarch64_flush_cache"
enum { REG_IP = 30, REG_SP = 31, REG_FP = 29 };
#endif

/* What libunwind 1.6 takes of the stack was 3.2 KiB the first time and 1.8 KiB later; twice that
 * and more must be left. */
enum { ROOM = 8 << 10 };

/* What is read of a signal frame: the machine context, without vector registers. */
enum { SIGNAL_FRAME = 1024 };

static struct {
    int (*init_local)(void *cursor, void *context);
    int (*step)(void *cursor);
    int (*get_reg)(void *cursor, int reg, uint64_t *value);
    int (*is_signal_frame)(void *cursor);
    void (*flush_cache)(void *space, uint64_t lo, uint64_t hi);
    void **local_space;
} unw;
static atomic_int ready; /* release, after unw was filled */
static atomic_int tried;
_Atomic int gt_unwind_wanted;

int gt_unwind_open(void)
{
    if (atomic_load_explicit(&ready, memory_order_acquire))
        return 0;
    atomic_store_explicit(&tried, 1, memory_order_relaxed);
    void *lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return -ENOENT;
    unw.init_local = (int (*)(void *, void *))dlsym(lib, NAME("init_local"));
    unw.step = (int (*)(void *))dlsym(lib, NAME("step"));
    unw.get_reg = (int (*)(void *, int, uint64_t *))dlsym(lib, NAME("get_reg"));
    unw.is_signal_frame = (int (*)(void *))dlsym(lib, NAME("is_signal_frame"));
    unw.flush_cache = (void (*)(void *, uint64_t, uint64_t))dlsym(lib, FLUSH);
    unw.local_space = dlsym(lib, NAME("local_addr_space"));
    if (!unw.init_local || !unw.step || !unw.get_reg || !unw.is_signal_frame || !unw.flush_cache ||
        !unw.local_space)
        return -ENOENT; /* left loaded: what runs on unloading is not ours to know */
    atomic_store_explicit(&ready, 1, memory_order_release);
    return 0;
}

/* libunwind keeps rules of its own and does not notice an unload; the seed tells of one. */
static void flush_if_stale(void)
{
    static uint64_t flushed_for;
    uint64_t seed = gt_rules_seed();

    if (__atomic_load_n(&flushed_for, __ATOMIC_ACQUIRE) == seed)
        return;
    unw.flush_cache(*unw.local_space, 0, 0);
    __atomic_store_n(&flushed_for, seed, __ATOMIC_RELEASE);
}

static int regs(struct gt_stack *s, struct gt_regs *r)
{
    return unw.get_reg(s->cursor, REG_IP, &r->pc) == 0 &&
           unw.get_reg(s->cursor, REG_SP, &r->sp) == 0;
}

/* Is there room for libunwind below this frame? An alternate signal stack may lie in a larger
 * mapping, so the kernel is asked. */
static int has_room(struct gt_stack *s)
{
    uint64_t here = (uint64_t)__builtin_frame_address(0), lo;
    stack_t alt;

    if (!gt_where_stack(s, here))
        return 0;
    lo = s->stacks[0].lo;
    if (gt_sys(SYS_sigaltstack, 0, (long)&alt, 0, 0, 0, 0) == 0 && (alt.ss_flags & SS_ONSTACK) &&
        (uint64_t)alt.ss_sp > lo)
        lo = (uint64_t)alt.ss_sp;
    return here - lo >= ROOM;
}

/* May libunwind step out of this frame? `exact`: pc is not a return address, but was interrupted.
 */
static __attribute__((no_sanitize("address", "thread", "alignment"))) int
may_step(struct gt_stack *s, const struct gt_regs *r, int exact)
{
    uint64_t rule, base = r->sp, hi;

    if (!gt_where_stack(s, r->sp))
        return 0;
    hi = s->stacks[0].hi;
    gt_rules_find(r->pc + (uint64_t)exact, gt_rules_seed(), &rule);
    if (GT_RULE_KIND(rule) == GT_RULE_UNKNOWN && GT_RULE_BASE(rule)) {
        uint64_t size = GT_RULE_SIZE(rule);
        if (unw.get_reg(s->cursor, (int)GT_RULE_BASE(rule) - 1, &base) ||
            base - r->sp > hi - r->sp || size > hi - base)
            return 0;
        rule = GT_RULE_UNKNOWN;
        base = r->sp;
    }
    if (rule == GT_RULE_END)
        return 1;
    if (rule == GT_RULE_BAD)
        return 0;
    if (rule == GT_RULE_UNKNOWN)
        return gt_where_code(s, r->pc) &&
               (unw.is_signal_frame(s->cursor) <= 0 || hi - r->sp >= SIGNAL_FRAME);
    if (rule == GT_RULE_SIGNAL)
        return hi - r->sp >= SIGNAL_FRAME;
    if ((rule & GT_RULE_FROM_FP || GT_RULE_KIND(rule) == GT_RULE_REALIGNED) &&
        (unw.get_reg(s->cursor, REG_FP, &base) || base - r->sp > hi - r->sp))
        return 0;
    if (!(rule & GT_RULE_SPECIAL))
        return base + GT_RULE_CFA(rule) <= hi;
    if (GT_RULE_KIND(rule) == GT_RULE_LEAF)
        return 1;
    /* realigned */
    uint64_t at = base - GT_RULE_FP(rule);
    return at - r->sp <= hi - r->sp - 8 && *(const uint64_t *)at - r->sp - 8 <= hi - r->sp - 8;
}

/* The steps, from the cursor that the caller's frame has made. */
static __attribute__((noinline)) uint32_t follow(struct gt_stack *s, const struct gt_regs *at,
                                                 uint32_t *bottom)
{
    struct gt_regs r;
    uint32_t n = 0;
    int started = 0, exact = 0, more = 1;

    *bottom = GT_TRIE_CUT;
    /* our own frames come first: far fewer than this */
    for (int i = 0; i < GT_STACK_DEPTH + 64 && more >= 0 && regs(s, &r); i++) {
        if (more == 0 || !r.pc) {
            *bottom = GT_TRIE_ROOT;
            break;
        }
        if (GT_NO_ADDRESS(r.pc))
            break;
        started |= r.pc == at->pc && r.sp == at->sp;
        if (!started && r.sp > at->sp)
            break;
        if (started && n == s->limit) {
            *bottom = GT_TRIE_TRUNCATED;
            break;
        }
        if (started)
            s->steps[n++].pc = r.pc | (exact ? GT_TRIE_EXACT : 0);
        if (started && !may_step(s, &r, exact)) {
            /* where there is no unwind data it guesses, and a guess that is no code is no frame */
            if (n > 1 && !gt_where_code(s, r.pc))
                n--;
            break;
        }
        exact = unw.is_signal_frame(s->cursor) > 0;
        more = unw.step(s->cursor);
    }
    return n;
}

uint32_t gt_unwind_fallback(struct gt_stack *s, const struct gt_regs *at, uint32_t *bottom)
{
    if (!atomic_load_explicit(&ready, memory_order_acquire)) {
        if (!atomic_load_explicit(&tried, memory_order_relaxed))
            atomic_store_explicit(&gt_unwind_wanted, 1, memory_order_relaxed);
        return 0;
    }
    if (!has_room(s) || !gt_where_stack(s, at->sp) || !gt_where_again(s, at->sp, at->sp))
        return 0;
    s->count = 0; /* the cursor takes the kept frames' place */
    s->fallbacks++;
    int saved = errno;
    flush_if_stale();
    if (getcontext(&s->context) || unw.init_local(s->cursor, &s->context))
        return 0;
    /* this frame is where the cursor begins: it must live on while the cursor does */
    uint32_t n = follow(s, at, bottom);
    errno = saved;
    return n;
}
