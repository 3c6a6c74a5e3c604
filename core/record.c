/* Recording: the calls of record.h that are not start/end ranges. The hot path itself is in hot.h;
 * here are its instances, its ways out, and what is not hot. */
#include "core/record.h"
#include <errno.h>
#include "core/hot.h"
#include "core/stacks.h"
#include "core/window.h"

/* ---- push ---- */

static void add_to_node(struct gt_node *n, const struct gt_attr *a)
{
    n->bytes += a->bytes;
    n->flops += a->flops;
    if (unlikely(a->has_value))
        gt_tree_value(n, a->value);
}

/* A push with the thread in hand that is not the expected one. Its stack, or where it is to be
 * taken from. */
static GT_COLD int push_new(struct gt_thread *t, gt_tag tag, const struct gt_attr *a,
                            struct gt_stack_ids stack, const struct gt_regs *at)
{
    int saved = errno;
    uint32_t group = GT_TAG_GROUP(tag);
    enum gt_step step = gt_window_step(t, tag, a->name);
    int level;
    if (step == GT_STEP_OUT || gt_is_paused()) {
        t->slot->silent++;
        level = gt_frame_push(t, t->cur, group, a->token, 1);
    } else {
        if (at)
            stack = gt_stacks_of(t, at, a->stack, tag, a->name);
        struct gt_link *c = gt_tree_child_at(t, t->cur, tag, a, stack);
        if (c)
            add_to_node(c->node, a);
        level = gt_frame_push(t, c ? c : t->cur, group, a->token, !c);
    }
    if (step)
        gt_window_step_open(t, step, level);
    errno = saved;
    gt_leave(t);
    return level;
}

/* A call of the same name, from the same place, and no more to it than that. */
GT_HOT int is_expected(const struct gt_link *c, gt_tag tag, const char *name,
                       struct gt_stack_ids stack)
{
    return c->tag == tag && gt_hot_same(c, name) && c->node->stack == stack.native &&
           c->node->python == stack.python;
}

int gt_push_attr(gt_tag tag, const struct gt_attr *a)
{
    const struct gt_regs at = GT_REGS_OF_CALLER();
    struct gt_stack_ids stack = {0, 0};
    struct gt_thread *t = gt_enter();
    if (unlikely(!t)) {
        if (!(t = gt_enter_slow()))
            return -1;
        return push_new(t, tag, a, stack, &at);
    }
    stack = gt_stacks_of(t, &at, a->stack, tag, a->name);
    struct gt_link *last = t->cur->last, *c = last->after;
    if ((!is_expected(c, tag, a->name, stack) && !is_expected(c = last, tag, a->name, stack)) ||
        a->token | (uintptr_t)a->shapes | (uintptr_t)a->overload)
        return push_new(t, tag, a, stack, NULL);
    add_to_node(c->node, a);
    return gt_hot_open(t, c, tag, 0, 0);
}

GT_COLD int gt_push_name(gt_tag tag, const char *name)
{
    const struct gt_attr a = {.name = name, .scope = GT_SCOPE_USER, .stack = GT_STACK_RANGE};
    return gt_push_attr(tag, &a);
}

GT_COLD int gt_push_frame_slowly(struct gt_thread *t, struct gt_link *c, gt_tag tag)
{
    int saved = errno, level = gt_frame_push(t, c, GT_TAG_GROUP(tag), 0, 0);
    errno = saved;
    gt_leave(t);
    return level;
}

/* Also where ranges have stacks (gt_pause_apply): their node is more than their name. */
GT_COLD int gt_push_other_clock(gt_tag tag, const char *name, gt_push_miss *miss)
{
    if (gt_stack_asked(GT_STACK_RANGE))
        return miss(tag, name);
    struct gt_thread *t = gt_enter();
    return t ? gt_hot_push_in(t, tag, name, miss, 0) : miss(tag, name);
}

int gt_push(gt_tag tag, const char *name)
{
    return gt_hot_push(tag, name, gt_push_name);
}

/* ---- pop ---- */

GT_COLD int gt_pop_slowly(struct gt_thread *t, uint32_t group, uint64_t token, uint64_t now)
{
    int saved = errno, level;
    if (!t) {
        if (!(t = gt_enter_slow()))
            return -1;
        now = gt_clock_now();
    }
    level = gt_frame_pop(t, group, token, now);
    errno = saved;
    gt_leave(t);
    return level;
}

GT_COLD int gt_pop_wrap(struct gt_thread *t, int level)
{
    gt_ring_wrap(t);
    gt_leave(t);
    return level;
}

GT_COLD int gt_pop_other_clock(uint32_t group)
{
    struct gt_thread *t = gt_enter();
    return t ? gt_hot_pop_in(t, group, gt_clock_now()) : gt_pop_slowly(NULL, group, 0, 0);
}

int gt_pop(uint32_t group)
{
    return gt_hot_pop(group);
}

int gt_pop_token(uint32_t group, uint64_t token)
{
    struct gt_thread *t = gt_enter();
    return gt_pop_slowly(t, group, token, t ? gt_clock_now() : 0);
}

/* ---- calls of an API: nearly all below ranges of others, hardly ever above one another ---- */

/* Not the expected one. A call right below another of its API is part of what that one does, whose
 * stack it shares. `t` NULL: the door was shut. */
static GT_COLD int push_call_slowly(struct gt_thread *t, gt_tag tag, const char *name,
                                    struct gt_stack_ids stack, const struct gt_regs *at)
{
    const struct gt_attr a = {.name = name, .scope = GT_SCOPE_FUNCTION, .stack = GT_STACK_BOTH};
    if (!t && !(t = gt_enter_slow()))
        return -1;
    return push_new(t, tag, &a, stack, at);
}

/* GPUTALLY_WITH_STACK=0, or not known yet. */
static __attribute__((noinline)) int push_call_plain(gt_tag tag, const char *name)
{
    const struct gt_regs at = GT_REGS_OF_CALLER();
    const struct gt_stack_ids none = {0, 0};
    struct gt_thread *t = gt_enter_if(&gt_fork.go_tsc);
    if (unlikely(!t))
        return push_call_slowly(gt_enter(), tag, name, none, &at);
    struct gt_link *last = t->cur->last, *c = last->after;
    if (likely((c->tag == tag && gt_hot_same(c, name)) ||
               ((c = last)->tag == tag && gt_hot_same(c, name))))
        return gt_hot_open(t, c, tag, 1, 1);
    return push_call_slowly(t, tag, name, none, NULL);
}

int gt_push_call(gt_tag tag, const char *name)
{
    uint32_t how = gt_stack_asked(GT_STACK_BOTH);
    if (unlikely(!how))
        return push_call_plain(tag, name);
    const struct gt_regs at = GT_REGS_OF_CALLER();
    struct gt_stack_ids stack = {0, 0};
    struct gt_thread *t = gt_enter();
    if (unlikely(!t))
        return push_call_slowly(NULL, tag, name, stack, &at);
    if (likely(t->top->group != GT_TAG_GROUP(tag))) {
        if (unlikely(how & GT_STACK_FILTERED))
            stack = gt_stacks_of(t, &at, GT_STACK_BOTH, tag, name);
        else
            stack = gt_stacks_get(t, &at, how);
    }
    struct gt_link *last = t->cur->last, *c = last->after;
    if (!is_expected(c, tag, name, stack) && !is_expected(c = last, tag, name, stack))
        return push_call_slowly(t, tag, name, stack, NULL);
    return gt_hot_open(t, c, tag, 0, 1);
}

static GT_COLD int pop_call_slowly(struct gt_thread *t, uint32_t group, uint64_t bytes,
                                   uint64_t flops, int failed)
{
    int saved = errno, level;
    if (!t && !(t = gt_enter()) && !(t = gt_enter_slow()))
        return -1;
    struct gt_node *n = gt_frame_node(t, group);
    if (n) {
        n->bytes += bytes;
        n->flops += flops;
        n->failed += (uint64_t)failed;
    }
    level = gt_frame_pop(t, group, 0, gt_clock_now());
    errno = saved;
    gt_leave(t);
    return level;
}

int gt_pop_call(uint32_t group, uint64_t bytes, int failed)
{
    struct gt_thread *t = gt_enter_if(&gt_fork.go_tsc);
    if (unlikely(!t || t->top->group != group))
        return pop_call_slowly(t, group, bytes, 0, failed);
    uint64_t now = gt_hot_clock(1);
    struct gt_node *n = t->cur->node;
    /* before the call counts: a killed process has as many failed calls as calls, at most */
    n->bytes += bytes;
    n->failed += (uint64_t)failed;
    return gt_hot_pop_in(t, group, now);
}

int gt_pop_product(uint32_t group, uint64_t flops, int failed)
{
    return pop_call_slowly(NULL, group, 0, flops, failed);
}

/* ---- what is no range ---- */

/* Counts one call without a duration. A mark lies where it was made; a counter is one for the whole
 * thread. */
static void count_instant(gt_tag tag, const struct gt_attr *a, enum gt_node_kind kind,
                          const struct gt_regs *at)
{
    int saved = errno;
    struct gt_thread *t = gt_enter();
    if (!t && !(t = gt_enter_slow()))
        return;
    if (gt_is_paused()) {
        t->slot->silent++;
    } else {
        struct gt_link *parent = kind == GT_KIND_MARK ? t->cur : t->root;
        struct gt_stack_ids stack = {0, 0};
        if (at)
            stack = gt_stacks_of(t, at, a->stack, tag, a->name);
        struct gt_link *c = gt_tree_child_at(t, parent, tag | GT_LINK_KIND(kind), a, stack);
        if (c && (a->has_value || kind == GT_KIND_COUNTER))
            gt_tree_value(c->node, a->value);
        if (c)
            gt_count_alone(t, c, 0, NULL);
        if (c && kind == GT_KIND_MARK)
            gt_ring_put(t, GT_RING_MARK, GT_RECORD_NODE(c->record), gt_clock_now(), 0);
    }
    gt_leave(t);
    errno = saved;
}

void gt_mark(gt_tag tag, const struct gt_attr *a)
{
    const struct gt_regs at = GT_REGS_OF_CALLER();
    count_instant(tag, a, GT_KIND_MARK, &at);
}

void gt_counter(gt_tag tag, const struct gt_attr *a)
{
    count_instant(tag, a, GT_KIND_COUNTER, NULL);
}
