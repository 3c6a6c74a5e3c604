/* The frames that were open when a session was read -> calls of the working copy, as core/frames.c
 * and core/op.c would have closed them. Called by load_slot.c; single thread. */
#include "report/load_work.h"
#include "report/mem.h"
#include <stdlib.h>

/* An operator's call that its parent may swallow: see struct gt_held. */
struct held {
    uint32_t node; /* 0: none */
    uint64_t ticks, self_ticks;
    int64_t self_memory[GT_MEMORY_KINDS];
};

/* What the frame above hands to the one below. */
struct carried {
    uint64_t ticks;
    int64_t memory[GT_MEMORY_KINDS]; /* to the next operator */
    struct held held;
};

void gt_work_count(struct gt_node *n, uint64_t total, uint64_t self)
{
    n->min_ticks = !n->count || total < n->min_ticks ? total : n->min_ticks;
    n->max_ticks = !n->count || total > n->max_ticks ? total : n->max_ticks;
    n->count = gt_ticks_add(n->count, 1);
    n->total_ticks = gt_ticks_add(n->total_ticks, total);
    n->self_ticks = gt_ticks_add(n->self_ticks, self);
    n->sumsq_ticks += (double)total * (double)total;
}

void gt_work_open(struct gt_work *w, uint32_t node, uint64_t t0)
{
    gt_mem_grow(&w->open, &w->open_room, w->open_count, sizeof *w->open);
    w->open[w->open_count++] = (struct gt_opened){node, t0};
}

/* A frame that was being closed when the process was killed, and whose call its node has already.
 */
static int is_counted(const struct gt_work *w, const struct gt_frame *f)
{
    return GT_FRAME_CLOSING(f) && w->nodes[GT_RECORD_NODE(f->record)].count >= -f->kid_ticks;
}

static int is_silent(const struct gt_frame *f)
{
    return f->flags & GT_FRAME_SILENT;
}

/* Or opened while the window was being shut. */
static int is_outside(const struct gt_work *w, const struct gt_frame *f)
{
    return is_silent(f) || (f->t0 > w->last && w->last < w->end);
}

static int is_op(const struct gt_work *w, const struct gt_frame *f)
{
    const struct gt_node *n = &w->nodes[GT_RECORD_NODE(f->record)];
    return n->source == GT_SOURCE_TORCH && n->kind == GT_KIND_RANGE && !is_silent(f);
}

/* The operator right below frame i, silent frames left out; NULL: none. */
static const struct gt_frame *op_below(const struct gt_work *w,
                                       const struct gt_frame *const *frames, uint32_t i)
{
    while (i-- > 0)
        if (!is_silent(frames[i]))
            return is_op(w, frames[i]) ? frames[i] : NULL;
    return NULL;
}

/* The frame is in its parent's `held` already: it was being closed. */
static int is_held(struct gt_work *w, const struct gt_frame *const *frames, uint32_t kept,
                   const struct gt_frame *f)
{
    const struct gt_frame *below = is_op(w, f) ? op_below(w, frames, kept) : NULL;
    if (!below || !below->held.record)
        return 0;
    w->torn_below = GT_RECORD_NODE(below->record);
    return 1;
}

/* Collects the open frames, outermost first; leaves out what does not count. */
static int list_frames(struct gt_loader *l, struct gt_work *w, const struct gt_frame **frames,
                       uint32_t *depth)
{
    const struct gt_frame_block *b = NULL;
    gt_ref ref = w->slot.frames;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *depth; i++) {
        if (i % GT_FRAMES_PER_BLOCK == 0) {
            if (!(b = gt_input_at(l->in, ref, sizeof *b)))
                return gt_load_damaged(l, "bad frame block");
            ref = b->next;
        }
        const struct gt_frame *f = &b->frames[i % GT_FRAMES_PER_BLOCK];
        if (GT_RECORD_NODE(f->record) >= w->count) {
            if (!l->live)
                return gt_load_damaged(l, "bad frame");
            break; /* pushed after we had counted the nodes */
        }
        /* killed while frames were moved down: one of them is there twice */
        int twice = kept && w->slot.seq & 1 && frames[kept - 1]->t0 == f->t0 &&
                    frames[kept - 1]->record == f->record && frames[kept - 1]->link == f->link;
        if (GT_FRAME_CLOSING(f)) {
            w->torn = GT_RECORD_NODE(f->record);
            w->torn_below = kept ? GT_RECORD_NODE(frames[kept - 1]->record) : UINT32_MAX;
        }
        if (!twice && !is_counted(w, f) && !is_held(w, frames, kept, f))
            frames[kept++] = f;
    }
    *depth = kept;
    return 0;
}

/* What is held in the frame, if it was not counted meanwhile. */
static struct held held_of(const struct gt_work *w, const struct gt_frame *f)
{
    const struct gt_held *h = &f->held;
    uint32_t node = GT_RECORD_NODE(h->record);
    if (!h->record || node >= w->count || (h->count && w->nodes[node].count >= h->count))
        return (struct held){0};
    return (struct held){node, h->ticks, h->self_ticks, {h->self_memory[0], h->self_memory[1]}};
}

/* Closes an operator: as gt_op_pop does. */
static void close_op(struct gt_work *w, const struct gt_frame *f, const struct gt_frame *below,
                     uint64_t total, uint64_t kids, struct carried *carried)
{
    uint32_t node = GT_RECORD_NODE(f->record);
    struct gt_node *n = &w->nodes[node];
    struct gt_op_stats *s = &w->ops[node];
    struct held h = carried->held.node ? carried->held : held_of(w, f), mine = {node, total};
    int64_t all[GT_MEMORY_KINDS];
    if (h.node) {
        struct gt_op_stats *dup = &w->ops[h.node];
        dup->dup_count++;
        dup->dup_ticks = gt_ticks_add(dup->dup_ticks, h.ticks);
        dup->dup_self_ticks = gt_ticks_add(dup->dup_self_ticks, h.self_ticks);
        kids = kids > h.self_ticks ? kids - h.self_ticks : 0;
    }
    mine.self_ticks = total > kids ? total - kids : 0;
    for (int k = 0; k < GT_MEMORY_KINDS; k++) {
        mine.self_memory[k] = gt_add(f->self_memory[k], h.self_memory[k]);
        all[k] = gt_add(f->self_memory[k], gt_add(f->kid_memory[k], carried->memory[k]));
    }
    int hold = below && below->kids == 1 && !n->flags &&
               w->nodes[GT_RECORD_NODE(below->record)].key == n->key;
    if (!hold) {
        gt_work_count(n, total, mine.self_ticks);
        n->flops = gt_ticks_add(n->flops, f->flops);
        for (int k = 0; k < GT_MEMORY_KINDS; k++) {
            s->memory[k] = gt_add(s->memory[k], all[k]);
            s->self_memory[k] = gt_add(s->self_memory[k], mine.self_memory[k]);
        }
        mine.node = 0;
    }
    *carried = (struct carried){total, {all[0], all[1]}, mine};
}

int gt_replay_frames(struct gt_loader *l, struct gt_work *w)
{
    uint32_t depth = w->slot.depth;
    const struct gt_frame **frames;
    struct carried carried = {0};
    int rc;
    if (depth > GT_MAX_DEPTH || depth > l->frames_left)
        return gt_load_damaged(l, "more open ranges than fit");
    l->frames_left -= depth;
    frames = gt_mem_new(depth, sizeof(const struct gt_frame *));
    rc = list_frames(l, w, frames, &depth);
    for (uint32_t i = depth; !rc && i-- > 0;) {
        const struct gt_frame *f = frames[i];
        struct gt_node *n = &w->nodes[GT_RECORD_NODE(f->record)];
        uint64_t total = w->last > f->t0 ? w->last - f->t0 : 0;
        uint64_t kids = gt_ticks_add(GT_FRAME_CLOSING(f) ? 0 : f->kid_ticks, carried.ticks);
        if (is_outside(w, f) || n->kind != GT_KIND_RANGE) {
            carried.ticks = kids; /* its own time belongs to the range around it */
            continue;
        }
        if (is_op(w, f)) {
            close_op(w, f, op_below(w, frames, i), total, kids, &carried);
            continue;
        }
        carried.ticks = total;
        gt_work_count(n, total, total > kids ? total - kids : 0);
    }
    for (uint32_t i = 0; !rc && i < depth; i++) {
        uint32_t node = GT_RECORD_NODE(frames[i]->record);
        if (is_outside(w, frames[i]) || w->nodes[node].kind != GT_KIND_RANGE)
            continue;
        if (w->last < l->last)
            l->lost[GT_LOST_INDEX_cut]++;
        else
            gt_work_open(w, node, frames[i]->t0);
    }
    free(frames);
    return rc;
}
