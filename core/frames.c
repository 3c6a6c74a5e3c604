/* Open ranges, off the hot path: over a block's edge, out of order, silent ones, the end of a
 * thread. Runs on the owning thread. The hot path in record.c does the same for the usual case. */
#include <string.h>
#include "core/clock.h"
#include "core/session.h"
#include "core/thread.h"
#include "core/window.h"

struct gt_frame *gt_frame_at(const struct gt_thread *t, uint32_t i)
{
    struct gt_frame_block *b = gt_session_at(t->block_refs[i / GT_FRAMES_PER_BLOCK]);
    return &b->frames[i % GT_FRAMES_PER_BLOCK];
}

static uint32_t depth_of(const struct gt_thread *t)
{
    return atomic_load_explicit(&t->slot->depth, memory_order_relaxed);
}

/* Points top, base and limit at the frame that makes `depth` frames open. */
static void set_top(struct gt_thread *t, uint32_t depth)
{
    uint32_t block = depth ? (depth - 1) / GT_FRAMES_PER_BLOCK : 0;
    struct gt_frame *first = gt_frame_at(t, block * GT_FRAMES_PER_BLOCK);
    t->base = block ? first : NULL;
    t->limit = first + GT_FRAMES_PER_BLOCK - 1;
    t->top = first + depth - 1 - block * GT_FRAMES_PER_BLOCK;
    t->cur = t->top->link;
}

/* Number of open frames of `group` below frame number `depth`: the level of a new one. */
static uint32_t level_below(const struct gt_thread *t, uint32_t depth, uint32_t group)
{
    while (depth--) {
        const struct gt_frame *f = gt_frame_at(t, depth);
        if ((f->group & GT_GROUP_MASK) == group)
            return f->level + 1;
    }
    return 0;
}

struct gt_frame *gt_frame_op(const struct gt_thread *t, uint32_t depth, int *right_below)
{
    *right_below = 1;
    for (uint32_t i = t->ops ? depth : 0; i-- > 0;) {
        struct gt_frame *f = gt_frame_at(t, i);
        if (GT_GROUP_IS_OP(f->group))
            return f;
        *right_below &= (f->flags & GT_FRAME_SILENT) != 0;
    }
    return NULL;
}

int gt_frame_push(struct gt_thread *t, struct gt_link *link, uint32_t group, uint64_t token,
                  int silent)
{
    struct gt_slot *slot = t->slot;
    int right;
    uint32_t depth = depth_of(t), block = depth / GT_FRAMES_PER_BLOCK;
    if (depth >= GT_MAX_DEPTH || t->deep)
        goto too_deep;
    if (!t->block_refs[block]) {
        gt_ref ref;
        struct gt_frame_block *below = gt_session_at(t->block_refs[block - 1]);
        if (!gt_session_alloc(sizeof *below, &ref))
            goto too_deep;
        t->block_refs[block] = ref;
        below->next = ref; /* readers go there only when depth says so, which is stored later */
    }
    struct gt_frame *f = gt_frame_at(t, depth), *op;
    *f = (struct gt_frame){.token = token,
                           .link = link,
                           .record = link->record,
                           .group = group | (silent ? GT_GROUP_SILENT : 0) |
                                    (token ? GT_GROUP_TOKEN : 0),
                           .level = level_below(t, depth, group),
                           .flags = silent ? GT_FRAME_SILENT : 0};
    int level = (int)f->level;
    if (f->group == GT_GROUP_OP) {
        if ((op = gt_frame_op(t, depth, &right)))
            gt_op_has_kid(t, op);
        t->ops++;
    }
    f->t0 = gt_clock_now();
    atomic_store_explicit(&slot->depth, depth + 1, memory_order_release);
    set_top(t, depth + 1);
    return level;
too_deep:
    t->deep++;
    t->base = t->limit = t->top; /* both hot paths come here until it is 0 again */
    atomic_fetch_add_explicit(&gt_session.header->lost[GT_LOST_DEEP], 1, memory_order_relaxed);
    return -1;
}

void gt_ring_wrap(struct gt_thread *t)
{
    struct gt_slot *slot = t->slot;
    uint64_t seq = atomic_load_explicit(&slot->seq, memory_order_relaxed);
    t->ring_next = t->ring;
    if (t->ring == t->dummy && slot->ring_head & 0xfff)
        return; /* too short for a pair each time */
    struct gt_pair pair = gt_clock_pair();
    atomic_store_explicit(&slot->seq, seq + 1, memory_order_release);
    atomic_thread_fence(memory_order_release);
    slot->last = pair;
    atomic_store_explicit(&slot->seq, seq + 2, memory_order_release);
}

static void ring_add(struct gt_thread *t, struct gt_record r)
{
    *t->ring_next++ = r;
    /* release: a reader copies, then checks with the head what may have been overwritten */
    atomic_fetch_add_explicit(&t->slot->ring_head, 1, memory_order_release);
    if (t->ring_next == t->ring_end)
        gt_ring_wrap(t);
}

void gt_ring_put(struct gt_thread *t, enum gt_ring_kind kind, uint32_t node, uint64_t t0,
                 uint64_t duration)
{
    if ((int64_t)duration < 0) /* the clock went back: counted as 0 */
        duration = 0;
    int fits = duration < GT_RING_ESCAPE;
    ring_add(t, (struct gt_record){t0, fits ? (uint32_t)duration : GT_RING_ESCAPE,
                                   (uint32_t)kind << 28 | node});
    if (!fits)
        ring_add(t, (struct gt_record){duration, 0, (uint32_t)GT_RING_EXTENSION << 28 | node});
}

/* An update: a live reader sees seq odd before what follows. commit() ends it. */
static void begin(struct gt_slot *slot)
{
    uint64_t seq = atomic_load_explicit(&slot->seq, memory_order_relaxed);
    atomic_store_explicit(&slot->seq, seq + 1, memory_order_release);
    atomic_thread_fence(memory_order_release);
}

/* Adds one ended call to a node: begins the update (an odd seq) that commit() ends. What is ended
 * is a frame, or a start/end range, or neither. */
static void count(struct gt_thread *t, struct gt_link *link, uint64_t duration, uint64_t self,
                  struct gt_frame *frame, struct gt_async *ended)
{
    struct gt_slot *slot = t->slot;
    struct gt_node *n = link->node;
    double d;
    if ((int64_t)duration < 0) {
        duration = self = 0;
        slot->clamped++;
    } else if (self > duration) { /* negative, or the clock went back since the next one began */
        self = (int64_t)self < 0 ? 0 : duration;
        slot->clamped++;
    }
    d = (double)duration;
    slot->commit_node = GT_RECORD_NODE(link->record);
    slot->commit_count = frame ? 0 : n->count + 1;
    slot->commit_async = ended ? (gt_ref)(((const char *)ended - gt_session.base) / GT_ALIGN) : 0;
    begin(slot);
    if (frame)
        __atomic_store_n(&frame->kid_ticks, -(n->count + 1), __ATOMIC_RELEASE);
    if (ended)
        __atomic_store_n(&ended->state, GT_ASYNC_FREE, __ATOMIC_RELEASE);
    atomic_signal_fence(memory_order_seq_cst);
    if (frame) {
        n->flops += frame->flops;
        gt_op_memory_out(link, frame, NULL);
    }
    n->self_ticks += self;
    n->total_ticks += duration;
    n->sumsq_ticks += d * d;
    if (duration < n->min_ticks)
        n->min_ticks = duration;
    if (duration > n->max_ticks)
        n->max_ticks = duration;
    __atomic_store_n(&n->count, n->count + 1, __ATOMIC_RELEASE);
}

/* Ends the update that count() began, when the frame is out of the way too. */
static void commit(struct gt_slot *slot)
{
    uint64_t seq = atomic_load_explicit(&slot->seq, memory_order_relaxed);
    atomic_store_explicit(&slot->seq, seq + 1, memory_order_release);
    slot->commit_count = 0;
}

void gt_count_held(struct gt_thread *t, struct gt_held *held)
{
    struct gt_link *link = held->link;
    const struct gt_frame f = {.flops = held->flops,
                               .self_memory = {held->self_memory[0], held->self_memory[1]},
                               .kid_memory = {held->memory[0] - held->self_memory[0],
                                              held->memory[1] - held->self_memory[1]}};
    /* a reader of a killed process that finds so many calls leaves the held one out */
    __atomic_store_n(&held->count, link->node->count + 1, __ATOMIC_RELEASE);
    count(t, link, held->ticks, held->self_ticks, NULL, NULL);
    link->node->flops += f.flops;
    gt_op_memory_out(link, &f, NULL);
    commit(t->slot);
    __atomic_store_n(&held->record, 0, __ATOMIC_RELEASE);
}

void gt_count_alone(struct gt_thread *t, struct gt_link *link, uint64_t duration,
                    struct gt_async *ended)
{
    count(t, link, duration, 0, NULL, ended);
    commit(t->slot);
}

/* In place of count(): the operator may be a duplicate of the one below it. */
static void hold(struct gt_thread *t, struct gt_frame *f, struct gt_frame *op, uint64_t ticks,
                 uint64_t self)
{
    begin(t->slot);
    gt_op_hold(op, f, ticks, self);
}

/* What was counted stays open and never counts again. A reader of a killed process must not find it
 * neither closing nor silent, so in this order. */
static void make_silent(struct gt_frame *f)
{
    __atomic_store_n(&f->flags, f->flags | GT_FRAME_SILENT, __ATOMIC_RELEASE);
    __atomic_store_n(&f->kid_ticks, 0, __ATOMIC_RELEASE);
    f->group = (f->group & GT_GROUP_MASK) | GT_GROUP_SILENT | (f->token ? GT_GROUP_TOKEN : 0);
    f->kids = 0;
    f->flops = 0;
    memset(&f->held, 0, sizeof f->held);
    memset(f->self_memory, 0, sizeof f->self_memory);
    memset(f->kid_memory, 0, sizeof f->kid_memory);
}

/* Takes frame number i out, youngest or not, and counts it. At each moment the self time belongs to
 * the topmost open range. So a frame that leaves from below others was last on top when the next
 * one began (`mark`): that is where its self time ends, and the frame below it is charged only up
 * to there, since the ones above will charge it for theirs. Silent ones on top of it have no time
 * of their own: theirs is this frame's, and what their children had is charged here, not later.
 * With `keep` it stays, silent: its pop is still to come. */
static void close_frame(struct gt_thread *t, uint32_t i, uint64_t now, int keep)
{
    struct gt_slot *slot = t->slot;
    uint32_t depth = depth_of(t);
    struct gt_frame *f = gt_frame_at(t, i), *op = NULL;
    struct gt_frame *below = i ? gt_frame_at(t, i - 1) : gt_frame_at(t, 0) - 1;
    int above = 0, right_below = 0, silent = f->flags & GT_FRAME_SILENT;
    if (GT_GROUP_IS_OP(f->group)) {
        op = gt_frame_op(t, i, &right_below);
        gt_op_take_held(t, f);
        t->ops--;
    }
    const struct gt_frame gone = *f;
    uint64_t mark = now, kid_ticks = gone.kid_ticks;
    if (silent) {
        below->kid_ticks += gone.kid_ticks;
    } else {
        for (uint32_t k = i + 1; k < depth; k++) {
            struct gt_frame *next = gt_frame_at(t, k);
            if (!(next->flags & GT_FRAME_SILENT)) {
                mark = next->t0;
                above = 1;
                break;
            }
            kid_ticks += next->kid_ticks;
            next->kid_ticks = 0;
        }
        uint64_t ticks = now - gone.t0, self = mark - gone.t0 - kid_ticks;
        if (op && right_below && !above && gt_op_may_hold(&gone, op) && self <= ticks)
            hold(t, f, op, ticks, self);
        else
            count(t, gone.link, ticks, self, f, NULL);
        if (op)
            gt_op_memory_out(NULL, &gone, op);
        below->kid_ticks += (int64_t)(mark - gone.t0) > 0 ? mark - gone.t0 : 0;
    }
    if (keep) {
        make_silent(f);
    } else {
        for (uint32_t k = i + 1; k < depth; k++) {
            struct gt_frame *next = gt_frame_at(t, k);
            if (((next->group ^ gone.group) & GT_GROUP_MASK) == 0 && next->level)
                next->level--;
            *gt_frame_at(t, k - 1) = *next;
        }
        atomic_store_explicit(&slot->depth, depth - 1, memory_order_release);
    }
    if (!silent) {
        commit(slot);
        gt_ring_put(t, GT_RING_RANGE, GT_RECORD_NODE(gone.record), gone.t0, now - gone.t0);
        slot->overlapped += (uint64_t)above;
    }
    if (keep)
        return;
    /* the hot paths rely on what they do not set being 0 in every frame above the top */
    *gt_frame_at(t, depth - 1) = (struct gt_frame){0};
    set_top(t, depth - 1);
    if (gone.flags & GT_FRAME_STEP)
        gt_window_step_closed(t, gone.flags, now);
}

void gt_frame_close_async(struct gt_thread *t, uint32_t i, uint64_t now)
{
    struct gt_frame *f = gt_frame_at(t, i);
    if (f->flags & GT_FRAME_SILENT) { /* does not count, or has been counted */
        close_frame(t, i, now, 0);
        return;
    }
    struct gt_link *link = f->link;
    const struct gt_node *n = link->node;
    const struct gt_attr a = {.name = link->text,
                              .shapes = gt_session_text(n->shapes),
                              .overload = gt_session_text(n->overload),
                              .scope = n->scope};
    const struct gt_stack_ids stack = {n->stack, n->python};
    struct gt_link *async =
        gt_tree_child_at(t, t->root, link->tag | GT_LINK_KIND(GT_KIND_ASYNC), &a, stack);
    if (!async) /* a folded name is no longer the one that was judged */
        async = t->other;
    if (f->held.record)
        gt_count_held(t, &f->held);
    const struct gt_frame gone = *f;
    f->flags |= GT_FRAME_SILENT;
    f->group |= GT_GROUP_SILENT;
    t->ops--;
    close_frame(t, i, now, 0);
    async->node->flops += gone.flops;
    gt_op_memory_out(async, &gone, NULL);
    gt_count_alone(t, async, now - gone.t0, NULL);
}

int gt_frame_pop(struct gt_thread *t, uint32_t group, uint64_t token, uint64_t now)
{
    uint32_t depth = depth_of(t);
    if (t->deep) {
        if (--t->deep == 0)
            set_top(t, depth);
        return -1;
    }
    for (uint32_t i = depth; i-- > 0;) {
        const struct gt_frame *f = gt_frame_at(t, i);
        if ((f->group & GT_GROUP_MASK) == group && f->token == token) {
            int level = (int)f->level;
            close_frame(t, i, now, 0);
            return level;
        }
    }
    /* outside it may be of a range that a fork's child does not know: that was silent here */
    if (gt_window_open > 0)
        t->slot->unbalanced++;
    return -1;
}

struct gt_node *gt_frame_node(const struct gt_thread *t, uint32_t group)
{
    for (uint32_t i = t->deep ? 0 : depth_of(t); i-- > 0;) {
        const struct gt_frame *f = gt_frame_at(t, i);
        if ((f->group & GT_GROUP_MASK) == group && !f->token)
            return f->flags & GT_FRAME_SILENT ? NULL : ((struct gt_link *)f->link)->node;
    }
    return NULL;
}

int gt_frame_has(const struct gt_thread *t, uint32_t group, uint64_t token)
{
    for (uint32_t i = depth_of(t); i-- > 0;) {
        const struct gt_frame *f = gt_frame_at(t, i);
        if ((f->group & GT_GROUP_MASK) == group && f->token == token)
            return 1;
    }
    return 0;
}

int gt_call_open(uint32_t group)
{
    const struct gt_thread *t = gt_self;
    return t->generation && t->generation == gt_session.generation && gt_frame_has(t, group, 0);
}

void gt_frame_cut(struct gt_thread *t, uint64_t tick)
{
    uint32_t depth = depth_of(t), first = depth;
    for (uint32_t i = depth; i-- > 0;) {
        struct gt_frame *f = gt_frame_at(t, i);
        if (f->flags & GT_FRAME_SILENT)
            continue;
        first = i;
        if (f->t0 <= tick) {
            t->slot->cut++;
            close_frame(t, i, tick, 1);
        } else { /* opened just when the window was shut: outside */
            t->ops -= GT_GROUP_IS_OP(f->group);
            make_silent(f);
        }
    }
    /* what comes when the window opens again stands below none of them */
    for (uint32_t i = first; i < depth; i++) {
        struct gt_frame *f = gt_frame_at(t, i), *below = i ? gt_frame_at(t, i - 1) : NULL;
        f->record = below ? below->record : t->root->record;
        f->link = below ? below->link : t->root;
    }
    set_top(t, depth);
    if (t->deep)
        t->base = t->limit = t->top;
}

void gt_frame_close_all(struct gt_thread *t)
{
    gt_window_look();
    gt_window_follow(t);
    uint64_t now = gt_clock_now();
    for (uint32_t depth = depth_of(t); depth > 0; depth--) {
        if (!(t->top->flags & GT_FRAME_SILENT))
            t->slot->left_open++;
        close_frame(t, depth - 1, now, 0);
    }
    t->deep = 0;
}
