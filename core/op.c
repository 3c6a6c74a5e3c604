/* PyTorch's operators: their frames, their memory, and what PyTorch's profiler calls duplicates. It
 * takes out an event that is the only child of its parent and has its name: the parent keeps its
 * own time, shapes, scope and FLOPs, the child's children become the parent's. That is known only
 * when the parent ends, so an ended child that may be one is held in the parent's frame: counted as
 * soon as the parent has a second child, merged into the parent when that ends first.
 *
 * gt_op_push and gt_op_pop are hot (core/hot.h is their model); the rest is called by frames.c.
 * Runs on the program's threads. */
#include <errno.h>
#include <string.h>
#include "core/hot.h"
#include "core/op_elsewhere.h"
#include "core/op_forward.h"
#include "core/session.h"
#include "core/stacks.h"
#include "core/window.h"

/* The scope is part of who a node is: one name may be an operator and the user's own. */
#define TAG(scope) GT_TAG(GT_SOURCE_TORCH, 0, scope)
#define GROUP GT_TAG_GROUP(TAG(0))

/* ---- what frames.c asks ---- */

void gt_op_has_kid(struct gt_thread *t, struct gt_frame *below)
{
    if (below->held.record)
        gt_count_held(t, &below->held);
    below->kids++;
}

void gt_op_take_held(struct gt_thread *t, struct gt_frame *f)
{
    const struct gt_held held = f->held;
    if (!held.record)
        return;
    gt_hot_add64(&t->slot->seq, 1);
    atomic_thread_fence(memory_order_release);
    struct gt_link *link = held.link;
    struct gt_op_stats *s = gt_tree_op(link->node);
    f->kid_ticks -= held.self_ticks;
    for (int k = 0; k < GT_MEMORY_KINDS; k++) {
        f->kid_memory[k] -= held.self_memory[k];
        f->self_memory[k] += held.self_memory[k];
    }
    if (s) {
        s->dup_count++;
        s->dup_ticks += held.ticks;
        s->dup_self_ticks += held.self_ticks;
    }
    __atomic_store_n(&f->held.record, 0, __ATOMIC_RELEASE);
    gt_hot_add64(&t->slot->seq, 1);
}

GT_HOT int has_memory(const struct gt_frame *f)
{
    return (f->self_memory[0] | f->self_memory[1] | f->kid_memory[0] | f->kid_memory[1]) != 0;
}

static void add_memory(struct gt_node *n, const int64_t *all, const int64_t *self)
{
    struct gt_op_stats *s = gt_tree_op(n);
    for (int k = 0; s && k < GT_MEMORY_KINDS; k++) {
        s->memory[k] += all[k];
        s->self_memory[k] += self[k];
    }
}

void gt_op_memory_out(struct gt_link *link, const struct gt_frame *f, struct gt_frame *parent)
{
    int64_t all[GT_MEMORY_KINDS];
    if (!has_memory(f))
        return;
    for (int k = 0; k < GT_MEMORY_KINDS; k++) {
        all[k] = f->self_memory[k] + f->kid_memory[k];
        if (parent)
            parent->kid_memory[k] += all[k];
    }
    if (link)
        add_memory(link->node, all, f->self_memory);
}

/* Folded names are equal though the names were not. */
GT_HOT int is_same_name(const struct gt_frame *f, const struct gt_frame *parent)
{
    const struct gt_link *c = f->link, *p = parent->link;
    return c->text == p->text && !c->node->flags;
}

int gt_op_may_hold(const struct gt_frame *f, const struct gt_frame *parent)
{
    return parent->kids == 1 && is_same_name(f, parent);
}

void gt_op_hold(struct gt_frame *parent, const struct gt_frame *f, uint64_t ticks,
                uint64_t self_ticks)
{
    struct gt_held *h = &parent->held;
    h->link = f->link;
    h->ticks = ticks;
    h->self_ticks = self_ticks;
    h->flops = f->flops;
    for (int k = 0; k < GT_MEMORY_KINDS; k++) {
        h->memory[k] = f->self_memory[k] + f->kid_memory[k];
        h->self_memory[k] = f->self_memory[k];
    }
    h->count = 0;
    /* a reader of a killed process leaves out the frame itself as soon as it sees this */
    __atomic_store_n(&h->record, f->record, __ATOMIC_RELEASE);
}

/* ---- push ---- */

static int text_is(gt_ref ref, const char *s)
{
    return s ? ref && strcmp(gt_session_text(ref), s) == 0 : !ref;
}

GT_HOT int is_op(const struct gt_link *c, gt_tag tag, const struct gt_op *op,
                 struct gt_stack_ids stack)
{
    if (c->tag != tag || c->node->python != stack.python || c->node->stack != stack.native)
        return 0;
    if (likely(!op->shapes && !op->overload))
        return gt_hot_same(c, op->name);
    return !c->node->flags && strcmp(c->text, op->name) == 0 &&
           text_is(c->node->shapes, op->shapes) && text_is(c->node->overload, op->overload);
}

/* Where an operator is called from. */
struct called {
    struct gt_stack_ids ids;
    uint32_t forward; /* for its frame: see there */
};

/* What the innermost operator has, counted or not: what is called by it in Python is in it too. */
static uint32_t forward_below(const struct gt_thread *t)
{
    uint32_t depth = atomic_load_explicit(&t->slot->depth, memory_order_relaxed);
    while (depth-- > 0) {
        const struct gt_frame *f = gt_frame_at(t, depth);
        if ((f->group & GT_GROUP_MASK) == GROUP)
            return f->forward;
    }
    return 0;
}

/* Operators of the backward pass have the stack of the forward operator that made their node, and
 * so have those that they call. Where it is not known they have their own, like all others. */
GT_HOT struct called called_from(struct gt_thread *t, const struct gt_op *op,
                                 const struct gt_regs *at)
{
    struct called c = {{0, 0}, 0};
    if (unlikely(!gt_stack_asked(GT_STACK_EITHER)))
        return c;
    int numbered = op->thread && op->sequence >= 0;
    if (unlikely(op->scope == GT_SCOPE_BACKWARD))
        c.forward = numbered ? gt_op_forward_get(t, op->thread, op->sequence) : 0;
    else
        c.forward = t->top->group == GT_GROUP_OP ? t->top->forward
                    : t->top->group              ? forward_below(t)
                                                 : 0;
    if (unlikely(c.forward))
        c.ids = gt_op_forward_ids(t, c.forward);
    else
        c.ids = gt_stacks_of(t, at, GT_STACK_EITHER, TAG(op->scope), op->name);
    uint32_t id = c.ids.python ? c.ids.python : c.ids.native;
    if (op->scope == GT_SCOPE_FUNCTION && numbered && id)
        gt_op_forward_put(t, op->thread, op->sequence, id);
    return c;
}

/* The thread is in hand: the slow path of everything unusual. Where it is called from is known
 * already, or to be found from `at`. */
static GT_COLD int push_slowly(struct gt_thread *t, const struct gt_op *op, struct called called,
                               const struct gt_regs *at)
{
    const struct gt_attr a = {
        .name = op->name, .shapes = op->shapes, .overload = op->overload, .scope = op->scope};
    int saved = errno;
    enum gt_step step = gt_window_step(t, TAG(op->scope), op->name);
    int silent = step == GT_STEP_OUT || gt_is_paused();
    struct gt_link *c = NULL;
    t->slot->silent += (uint64_t)silent;
    if (!silent) {
        if (at)
            called = called_from(t, op, at);
        c = gt_tree_child_at(t, t->cur, TAG(op->scope), &a, called.ids);
    } else {
        called.forward = forward_below(t);
    }
    int level = gt_frame_push(t, c ? c : t->cur, GROUP, op->token, !c);
    if (level >= 0)
        t->top->forward = called.forward;
    if (level >= 0 && c)
        t->top->flops = op->flops;
    if (step)
        gt_window_step_open(t, step, level);
    errno = saved;
    gt_leave(t);
    return level < 0 ? -1 : 0;
}

int gt_op_push(const struct gt_op *given)
{
    const struct gt_regs at = GT_REGS_OF_CALLER();
    struct called called = {{0, 0}, 0};
    struct gt_op op = *given;
    struct gt_thread *t = gt_enter();
    if (unlikely(!t)) {
        if (!(t = gt_enter_slow()))
            return -1;
        if (atomic_load_explicit(&gt_op_ends, memory_order_relaxed))
            gt_op_collect_ends(t);
        return push_slowly(t, &op, called, &at);
    }
    if (unlikely(atomic_load_explicit(&gt_op_ends, memory_order_relaxed)))
        gt_op_collect_ends(t);
    if (op.shapes && (!*op.shapes || !gt_config.record_shapes))
        op.shapes = NULL;
    if (op.overload && !*op.overload)
        op.overload = NULL;
    gt_tag tag = TAG(op.scope);
    called = called_from(t, &op, &at);
    struct gt_link *parent = t->cur, *last = parent->last, *c = last->after;
    if (!is_op(c, tag, &op, called.ids) && !is_op(c = last, tag, &op, called.ids))
        return push_slowly(t, &op, called, NULL);
    struct gt_frame *below = t->top, *f = below + 1;
    if (unlikely(below == t->limit))
        return push_slowly(t, &op, called, NULL);
    if (likely(below->group == GT_GROUP_OP)) {
        if (unlikely(below->held.record))
            gt_count_held(t, &below->held);
        below->kids++;
    } else if (unlikely(below->group)) { /* another source's: see there */
        return push_slowly(t, &op, called, NULL);
    }
    parent->last = c;
    f->kid_ticks = 0;
    f->link = c;
    f->token = op.token;
    f->record = c->record;
    f->group = GT_GROUP_OP;
    f->level = 0;
    f->flops = op.flops;
    f->forward = called.forward; /* the rest is 0 above the top */
    t->top = f;
    t->cur = c;
    t->ops++;
    f->t0 = gt_clock_now();
    gt_hot_add32(&t->slot->depth, 1);
    gt_leave(t);
    return 0;
}

/* ---- pop ---- */

static GT_COLD void pop_slowly(struct gt_thread *t, uint64_t token, uint64_t now)
{
    int saved = errno;
    if (t->deep || gt_frame_has(t, GROUP, token))
        gt_frame_pop(t, GROUP, token, now);
    else if (gt_frame_has(t, GROUP, 0)) /* open over a fork: it lost its token */
        gt_frame_pop(t, GROUP, 0, now);
    else
        gt_op_ended_elsewhere(token, now);
    errno = saved;
    gt_leave(t);
}

void gt_op_pop(uint64_t token)
{
    struct gt_thread *t = gt_enter();
    if (unlikely(!t)) {
        t = gt_enter_slow();
        if (t)
            pop_slowly(t, token, gt_clock_now());
        return;
    }
    uint64_t now = gt_clock_now();
    struct gt_frame *f = t->top, *below = f - 1;
    if (unlikely(f->token != token || f->group != GT_GROUP_OP || f == t->base ||
                 (below->group != GT_GROUP_OP && below->group)))
        return pop_slowly(t, token, now);
    struct gt_frame *parent = below->group ? below : NULL;
    if (unlikely(f->held.record))
        gt_op_take_held(t, f);
    uint64_t t0 = f->t0, d = now - t0, kid = f->kid_ticks;
    if (unlikely(d > INT32_MAX || kid > d))
        return pop_slowly(t, token, now);
    struct gt_slot *slot = t->slot;
    struct gt_link *c = t->cur;
    struct gt_node *n = c->node;
    gt_hot_add64(&slot->seq, 1);
    atomic_thread_fence(memory_order_release); /* a live reader sees seq odd before what follows */
    uint64_t count = n->count + 1;
    __atomic_store_n(&f->kid_ticks, -count, __ATOMIC_RELEASE);
    below->kid_ticks += d;
    if (unlikely(parent && parent->kids == 1 && is_same_name(f, parent))) {
        gt_op_hold(parent, f, d, d - kid);
    } else {
        double squared = (double)(int64_t)d * (double)(int64_t)d;
        gt_op_memory_out(c, f, NULL);
        n->flops += f->flops;
        gt_hot_tally(n, d, d - kid, squared);
        __atomic_store_n(&n->count, count, __ATOMIC_RELEASE);
    }
    if (parent)
        gt_op_memory_out(NULL, f, parent);
    gt_hot_add32(&slot->depth, (uint32_t)-1);
    gt_hot_add64(&slot->seq, 1);
    t->top = below;
    t->cur = below->link;
    t->ops--;
    struct gt_record *after = gt_hot_ring(t, slot, t0, d, f->record);
    f->token = 0;
    f->kids = f->forward = 0;
    f->flops = 0;
    memset(f->self_memory, 0, sizeof f->self_memory + sizeof f->kid_memory);
    if (unlikely(after == t->ring_end))
        gt_ring_wrap(t);
    gt_leave(t);
}

/* ---- memory ---- */

/* The innermost range that counts is not an operator. */
static GT_COLD void memory_slowly(struct gt_thread *t, int64_t bytes, enum gt_memory_kind kind)
{
    int saved = errno, right = 1;
    struct gt_frame *op =
        gt_frame_op(t, atomic_load_explicit(&t->slot->depth, memory_order_relaxed), &right);
    int64_t all[GT_MEMORY_KINDS] = {0};
    all[kind] = bytes;
    if (op && right) {
        op->self_memory[kind] += bytes;
    } else if (gt_is_paused()) {
        ;
    } else if (op) { /* a range inside an operator */
        op->kid_memory[kind] += bytes;
        add_memory(t->cur->node, all, all);
    } else {
        const struct gt_attr a = {.name = "[memory]"};
        struct gt_link *c = gt_tree_child(t, t->cur, TAG(0), &a);
        if (c) {
            add_memory(c->node, all, all);
            gt_count_alone(t, c, 0, NULL);
        }
    }
    errno = saved;
}

void gt_op_memory(int64_t bytes, enum gt_memory_kind kind)
{
    struct gt_thread *t = gt_enter();
    if (unlikely(!t) && !(t = gt_enter_slow()))
        return;
    if (likely(t->top->group == GT_GROUP_OP))
        t->top->self_memory[kind] += bytes;
    else
        memory_slowly(t, bytes, kind);
    gt_leave(t);
}

/* ---- the same call seen twice ---- */

int gt_op_open(void)
{
    const struct gt_thread *t = gt_self;
    return t->ops && t->generation == gt_session.generation;
}

int gt_push_duplicate(gt_tag tag)
{
    int saved = errno;
    struct gt_thread *t = gt_enter();
    if (!t && !(t = gt_enter_slow()))
        return -1;
    t->slot->duplicates++;
    int level = gt_frame_push(t, t->cur, GT_TAG_GROUP(tag), 0, 1);
    errno = saved;
    gt_leave(t);
    return level;
}
