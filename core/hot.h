/* The hot path: pushing and popping ranges. Inlined into record.c and into the sources whose calls
 * are as short as ours. Runs on the program's threads, thousands of times a millisecond; `make
 * bench` counts its instructions. What keeps it short:
 *   - what is unusual leaves by a tail call, so no registers are saved;
 *   - one comparison of generations tells fork, pause, end, nesting and another clock from the
 * usual;
 *   - names are compared eight bytes at a time;
 *   - min, max and the ring's end are the only branches that are not checks. */
#ifndef GT_HOT_H
#define GT_HOT_H

#include <string.h>
#include "core/clock.h"
#include "core/thread.h"

#define GT_HOT static inline __attribute__((always_inline))

/* ---- record.c, the ways out ---- */

typedef int gt_push_miss(gt_tag tag, const char *name);
gt_push_miss gt_push_name; /* the plain one: makes the node if need be */
int gt_push_other_clock(gt_tag tag, const char *name, gt_push_miss *miss);
int gt_push_frame_slowly(struct gt_thread *t, struct gt_link *c, gt_tag tag);
int gt_pop_other_clock(uint32_t group);
/* t may be NULL: the door was shut, and `now` is not looked at. The clock is only read behind the
 * door: a handler that records in between would end after its parent, and a process that may not
 * read the TSC never comes so far. */
int gt_pop_slowly(struct gt_thread *t, uint32_t group, uint64_t token, uint64_t now);
int gt_pop_wrap(struct gt_thread *t, int level);

/* ---- names ---- */

/* Is the link's key this text? "No" may be wrong (then the slow path finds the node), "yes" never
 * is: a text that lies so near the end of a page that eight bytes at a time might reach the next
 * one is not looked at, nor one that begins with a page, which takes NULL out too. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
GT_HOT int gt_hot_same(const struct gt_link *c, const char *s)
{
    return s && c->fits >= 0 && strcmp(c->text, s) == 0;
}
#else
GT_HOT uint64_t gt_hot_word(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

GT_HOT int gt_hot_same(const struct gt_link *c, const char *s)
{
    const char *t = c->text;
    if (unlikely((int32_t)(((uintptr_t)s - 1) & 4095) > c->fits))
        return 0;
    for (uint32_t whole = c->whole; unlikely(whole); whole -= 8, s += 8, t += 8)
        if (gt_hot_word(s) != gt_hot_word(t))
            return 0;
    return (gt_hot_word(s) ^ gt_hot_word(t)) << c->shift == 0;
}
#endif

GT_HOT uint64_t gt_hot_clock(int tsc)
{
#if defined(__x86_64__) && !defined(GT_TEST_CLOCK)
    if (tsc)
        return __builtin_ia32_rdtsc();
#endif
    (void)tsc;
    return gt_clock_now();
}

/* ---- what readers of the file see ---- */

/* Adds to a word that only this thread writes: one instruction where the machine has it. The
 * release fence orders everything before it for a reader. The words are _Atomic for everybody else.
 */
GT_HOT void gt_hot_add32(_Atomic uint32_t *word, uint32_t n)
{
    atomic_thread_fence(memory_order_release);
    *(uint32_t *)(void *)word += n;
    atomic_signal_fence(memory_order_seq_cst);
}

GT_HOT void gt_hot_add64(_Atomic uint64_t *word, uint64_t n)
{
    atomic_thread_fence(memory_order_release);
    *(uint64_t *)(void *)word += n;
    atomic_signal_fence(memory_order_seq_cst);
}

/* ---- push and pop ---- */

/* Opens a range of the node c below t->cur with the thread in hand. Constants: `tsc`, the clock it
 * is compiled for, and `call`, 1 for a call of an API (gt_push_call): its level over ranges of
 * others is 0, without a search. */
GT_HOT int gt_hot_open(struct gt_thread *t, struct gt_link *c, gt_tag tag, int tsc, int call)
{
    t->cur->last = c;
    struct gt_frame *below = t->top, *f = below + 1;
    uint32_t group = c->group, level = 0;
    if (unlikely(below == t->limit))
        return gt_push_frame_slowly(t, c, tag);
    if (likely(below->group == group))
        level = below->level + 1;
    else if (unlikely(below->group && !call)) /* of another group: the level must be searched */
        return gt_push_frame_slowly(t, c, tag);
    f->kid_ticks = 0;
    f->link = c;
    memcpy(&f->record, &c->record, sizeof f->record + sizeof f->group); /* and the group */
    f->level = level; /* token and flags are 0 above the top */
    t->top = f;
    t->cur = c;
    f->t0 = gt_hot_clock(tsc); /* last: our own work is not in the range */
    gt_hot_add32(&t->slot->depth, 1);
    gt_leave(t);
    return (int)level;
}

GT_HOT int gt_hot_push_in(struct gt_thread *t, gt_tag tag, const char *name, gt_push_miss *miss,
                          int tsc)
{
    struct gt_link *parent = t->cur, *last = parent->last, *c = last->after;
    /* Programs go round in loops: the child that came after the last one came before? Or the last
     * one again? */
    if (unlikely(c->tag != tag || !gt_hot_same(c, name))) {
        c = last;
        if (c->tag != tag || !gt_hot_same(c, name)) {
            gt_leave(t);
            return miss(tag, name);
        }
    }
    return gt_hot_open(t, c, tag, tsc, 0);
}

GT_HOT int gt_hot_push(gt_tag tag, const char *name, gt_push_miss *miss)
{
    struct gt_thread *t = gt_enter_if(&gt_fork.go_tsc);
    if (unlikely(!t))
        return gt_push_other_clock(tag, name, miss);
    return gt_hot_push_in(t, tag, name, miss, 1);
}

/* One more call of a node but for its count, which the caller stores last. */
GT_HOT void gt_hot_tally(struct gt_node *n, uint64_t d, uint64_t self, double squared)
{
    n->self_ticks += self;
    n->total_ticks += d;
    n->sumsq_ticks += squared;
    if (d < n->min_ticks)
        n->min_ticks = d;
    if (d > n->max_ticks)
        n->max_ticks = d;
}

/* The call into the ring, which always has room for one. Returns where the next one goes. */
GT_HOT struct gt_record *gt_hot_ring(struct gt_thread *t, struct gt_slot *slot, uint64_t t0,
                                     uint64_t d, uint32_t record)
{
    struct gt_record *r = t->ring_next, *after = r + 1;
    r->t0 = t0;
    r->dur = (uint32_t)d;
    r->kind_node = record;
    t->ring_next = after;
    gt_hot_add64(&slot->ring_head, 1);
    return after;
}

GT_HOT int gt_hot_pop_in(struct gt_thread *t, uint32_t group, uint64_t now)
{
    struct gt_frame *f = t->top;
    uint64_t t0 = f->t0, d = now - t0, kid = f->kid_ticks;
    /* also: the clock went back; a duration for which the ring needs two records */
    if (unlikely(f->group != group || f == t->base || d > INT32_MAX || kid > d))
        return gt_pop_slowly(t, group, 0, now);
    struct gt_slot *slot = t->slot;
    struct gt_link *c = t->cur;
    struct gt_node *n = c->node;
    uint64_t count = n->count + 1;
    double squared = (double)(int64_t)d * (double)(int64_t)d;
    gt_hot_add64(&slot->seq, 1);
    atomic_thread_fence(memory_order_release); /* a live reader sees seq odd before what follows */
    __atomic_store_n(&f->kid_ticks, -count, __ATOMIC_RELEASE);
    gt_hot_tally(n, d, d - kid, squared);
    f[-1].kid_ticks += d;
    /* a reader of a killed process relies on this order: see GT_FRAME_CLOSING */
    __atomic_store_n(&n->count, count, __ATOMIC_RELEASE);
    gt_hot_add32(&slot->depth, (uint32_t)-1);
    gt_hot_add64(&slot->seq, 1);
    t->top = f - 1;
    t->cur = f[-1].link;
    struct gt_record *after = gt_hot_ring(t, slot, t0, d, f->record);
    int level = (int)f->level;
    if (unlikely(after == t->ring_end))
        return gt_pop_wrap(t, level);
    gt_leave(t);
    return level;
}

GT_HOT int gt_hot_pop(uint32_t group)
{
    struct gt_thread *t = gt_enter_if(&gt_fork.go_tsc);
    if (unlikely(!t))
        return gt_pop_other_clock(group); /* where the TSC may be forbidden: not read before here */
    uint64_t now = gt_hot_clock(1);
    return gt_hot_pop_in(t, group, now);
}

#endif
