/* One thread slot of a session -> rows of the model: copies its nodes, replays what was open
 * (frames: load_frames.c), converts ticks so that the sums stay exact. Called by load.c; single
 * thread. Longer than the usual file: the steps share the working copy of the slot. */
#include "report/load_slot.h"
#include "report/load_work.h"
#include "report/mem.h"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int gt_load_again(const struct gt_loader *l, gt_ref ref, size_t bytes)
{
    off_t at = (off_t)ref * GT_ALIGN;
    /* the one place that writes to the copy */
    return gt_input_at(l->in, ref, bytes) &&
           pread(l->in->fd, l->in->data + at, bytes, at) == (ssize_t)bytes;
}

void gt_load_settle(struct gt_loader *l, gt_ref ref)
{
    for (int tries = 0; tries < 200; tries++) {
        const struct gt_slot *s = gt_input_at(l->in, ref, sizeof *s);
        const struct gt_node_chunk *c;
        if (!gt_load_again(l, ref, sizeof *s))
            break;
        uint64_t before = s->seq;
        size_t left = s->node_count, steps = l->in->bytes / sizeof *c;
        uint32_t depth = s->depth;
        if (before & 1) {
            sched_yield();
            continue;
        }
        for (gt_ref r = s->chunks; r && left && steps--; r = c->next) {
            if (!gt_load_again(l, r, sizeof *c))
                break;
            c = gt_input_at(l->in, r, sizeof *c);
            size_t n = c->capacity < left ? c->capacity : left;
            if (!n || !gt_load_again(l, r, sizeof *c + n * sizeof *c->nodes))
                break;
            left -= n;
        }
        for (gt_ref r = s->frames; r && depth;) {
            if (!gt_load_again(l, r, sizeof(struct gt_frame_block)))
                break;
            depth -= depth < GT_FRAMES_PER_BLOCK ? depth : GT_FRAMES_PER_BLOCK;
            r = ((const struct gt_frame_block *)gt_input_at(l->in, r, 8))->next;
        }
        steps = l->in->bytes / sizeof(struct gt_async_block);
        for (gt_ref r = s->asyncs; r && steps--;) {
            if (!gt_load_again(l, r, sizeof(struct gt_async_block)))
                break;
            r = ((const struct gt_async_block *)gt_input_at(l->in, r, 8))->next;
        }
        uint64_t after;
        if (pread(l->in->fd, &after, sizeof after,
                  (off_t)ref * GT_ALIGN + (off_t)offsetof(struct gt_slot, seq)) != sizeof after)
            break;
        if (after == before)
            return;
    }
    struct gt_slot *s = (void *)(l->in->data + (size_t)ref * GT_ALIGN);
    s->seq &= ~(uint64_t)1;
    l->lost[GT_LOST_INDEX_torn]++;
}

static int copy_op(struct gt_loader *l, gt_ref ref, struct gt_op_stats *to)
{
    const struct gt_op_stats *s;
    if (l->live && !gt_load_again(l, ref, sizeof *s))
        return 0; /* made after we had read the file */
    if (!(s = gt_input_at(l->in, ref, sizeof *s)))
        return -ENODATA;
    *to = *s;
    return 0;
}

static int copy_nodes(struct gt_loader *l, struct gt_work *w)
{
    size_t want = w->slot.node_count;
    const struct gt_node_chunk *c;
    if (want > l->nodes_left)
        return gt_load_damaged(l, "more nodes than fit");
    l->nodes_left -= want;
    w->room = want + 1;
    w->nodes = gt_mem_new(w->room, sizeof *w->nodes);
    for (gt_ref ref = w->slot.chunks; w->count < want; ref = c->next) {
        if (!(c = gt_input_at(l->in, ref, sizeof *c)))
            return gt_load_damaged(l, "bad node chunk");
        size_t n = want - w->count;
        if (n > c->capacity)
            n = c->capacity;
        if (!n || c->first != w->count ||
            !gt_input_at(l->in, ref, sizeof *c + n * sizeof *c->nodes))
            return gt_load_damaged(l, "bad node chunk");
        memcpy(w->nodes + w->count, c->nodes, n * sizeof *c->nodes);
        w->count += n;
    }
    w->ops = gt_mem_new(w->room, sizeof *w->ops);
    for (size_t i = 0; i < want; i++) {
        const struct gt_node *n = &w->nodes[i];
        if (i ? n->parent >= i || n->kind < GT_KIND_RANGE || n->kind > GT_KIND_COUNTER : n->parent)
            return gt_load_damaged(l, "bad node");
        if (n->op && copy_op(l, n->op, &w->ops[i]))
            return gt_load_damaged(l, "bad memory of a node");
    }
    return 0;
}

/* The node that an end of this entry would count at; made where there is none yet. */
static uint32_t async_node(struct gt_loader *l, struct gt_work *w, const struct gt_async *a)
{
    for (size_t i = 1; i < w->count && l->steps_left; i++, l->steps_left--) {
        const struct gt_node *n = &w->nodes[i];
        if (n->kind == GT_KIND_ASYNC && !n->parent && n->key == a->key && n->domain == a->domain &&
            n->category == a->category && n->source == a->source)
            return (uint32_t)i;
    }
    size_t room = w->room;
    gt_mem_grow(&w->nodes, &w->room, w->count, sizeof *w->nodes);
    gt_mem_grow(&w->ops, &room, w->count, sizeof *w->ops);
    memset(&w->ops[w->count], 0, sizeof *w->ops);
    struct gt_node *n = memset(&w->nodes[w->count], 0, sizeof *n);
    n->key = a->key;
    n->domain = a->domain;
    n->category = a->category;
    n->source = a->source;
    n->scope = a->scope;
    n->kind = GT_KIND_ASYNC;
    return (uint32_t)w->count++;
}

static int replay_asyncs(struct gt_loader *l, struct gt_work *w)
{
    const struct gt_async_block *b;
    for (gt_ref ref = w->slot.asyncs; ref; ref = b->next) {
        if (l->asyncs_left < GT_ASYNCS_PER_BLOCK || !(b = gt_input_at(l->in, ref, sizeof *b)))
            return gt_load_damaged(l, "bad list of start/end ranges");
        l->asyncs_left -= GT_ASYNCS_PER_BLOCK;
        for (size_t i = 0; i < GT_ASYNCS_PER_BLOCK; i++) {
            const struct gt_async *a = &b->entries[i];
            if (a->state == GT_ASYNC_FREE)
                continue;
            uint32_t node = async_node(l, w, a);
            if (!l->steps_left)
                return gt_load_damaged(l, "too many start/end ranges");
            uint64_t end = gt_load_window_end(l, a->window);
            gt_work_count(&w->nodes[node], end > a->t0 ? end - a->t0 : 0, 0);
            if (end < l->last)
                l->lost[GT_LOST_INDEX_cut]++;
            else
                gt_work_open(w, node, a->t0);
        }
    }
    return 0;
}

/* Killed in the middle of an update: one row's times may be half updated. A frame that was being
 * closed tells for itself whether it has been counted; a call without a frame is told by the commit
 * words, and counted here if it was not yet. */
static void judge_torn(struct gt_loader *l, struct gt_work *w)
{
    const struct gt_slot *s = &w->slot;
    const struct gt_async *a;
    w->torn = w->torn_below = UINT32_MAX;
    if (!(s->seq & 1))
        return;
    l->lost[GT_LOST_INDEX_torn]++;
    if (!s->commit_count || s->commit_node >= w->count)
        return;
    w->torn = s->commit_node;
    /* killed before the range was marked as ended: it is listed, and counted, as open */
    if (s->commit_async && (a = gt_input_at(l->in, s->commit_async, sizeof *a)) &&
        a->state != GT_ASYNC_FREE)
        return;
    if (w->nodes[w->torn].count + 1 == s->commit_count)
        w->nodes[w->torn].count++;
}

static int64_t whole(uint64_t v)
{
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

static int fill_row(struct gt_loader *l, struct gt_work *w, const struct gt_node *n,
                    struct gt_row *r)
{
    int rc;
    double ratio = (double)l->mul / (double)l->div;
    if ((rc = gt_load_text(l, n->key, &r->key)) || (rc = gt_load_text(l, n->domain, &r->domain)) ||
        (rc = gt_load_text(l, n->shapes, &r->shapes)) ||
        (rc = gt_load_text(l, n->overload, &r->overload)) ||
        (rc = gt_load_stack(l, &w->trie, n, &r->stack)))
        return rc;
    r->category = n->category;
    if (n->category)
        r->category_name = gt_load_name(l, GT_NAME_CATEGORY, n->source, r->domain, n->category);
    r->source = n->source < GT_SOURCES ? n->source : GT_SOURCE_NONE;
    r->kind = n->kind;
    r->scope = n->scope;
    if (n->flags & GT_NODE_FOLDED)
        r->flags |= GT_ROW_FOLDED;
    if (n->kind == GT_KIND_ASYNC)
        r->flags |= GT_ROW_ASYNC;
    if ((n->kind == GT_KIND_RANGE || n->kind == GT_KIND_ASYNC) && n->scope == GT_SCOPE_USER)
        r->flags |= GT_ROW_ANNOTATION;
    r->count = whole(n->count);
    r->failed = whole(n->failed);
    r->bytes = whole(n->bytes);
    r->flops = whole(n->flops);
    r->self_driver_memory = n->driver_memory;
    if (n->count && (n->kind == GT_KIND_RANGE || n->kind == GT_KIND_ASYNC)) {
        r->max_ns = gt_load_ns(l, n->max_ticks);
        r->min_ns = gt_load_ns(l, n->min_ticks < n->max_ticks ? n->min_ticks : n->max_ticks);
        r->sumsq_ns2 = n->sumsq_ticks >= 0 ? n->sumsq_ticks * ratio * ratio : 0;
    }
    if (n->extra) {
        const struct gt_extra *x = gt_input_at(l->in, n->extra, sizeof *x);
        if (!x || (l->live && !gt_load_again(l, n->extra, sizeof *x)))
            return gt_load_damaged(l, "bad values");
        if (x->count)
            r->values = (struct gt_values){whole(x->count), x->sum, x->min, x->max, x->last};
    }
    return 0;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Memory of a node's subtree. An operator's calls brought theirs along; of other ranges, and of
 * nodes that only lead somewhere, it is what lies below. */
static void sum_memory(struct gt_work *w)
{
    int64_t(*below)[GT_MEMORY_KINDS] = gt_mem_new(w->count, sizeof *below);
    for (size_t i = w->count; i-- > 1;) {
        const struct gt_node *n = &w->nodes[i];
        struct gt_op_stats *s = &w->ops[i];
        for (int k = 0; k < GT_MEMORY_KINDS; k++) {
            if (n->source != GT_SOURCE_TORCH || !n->count)
                s->memory[k] = gt_add(s->self_memory[k], below[i][k]);
            below[n->parent][k] = gt_add(below[n->parent][k], s->memory[k]);
        }
    }
    free(below);
}

/* A node all of whose calls were duplicates: its children are its parent's. */
static int is_collapsed(const struct gt_work *w, size_t i)
{
    return !w->nodes[i].count && w->ops[i].dup_count;
}

/* Converted one by one, self times would no longer add up to the totals of the roots. Where they do
 * in ticks, a total becomes the sum of its parts in ns. Nodes that only lead somewhere (count 0)
 * have the total of what is below. */
static void convert(struct gt_loader *l, const struct gt_work *w, int64_t *self, int64_t *total,
                    uint8_t *wanted)
{
    uint64_t *kids = gt_mem_new(w->count, sizeof *kids);
    int64_t *kids_ns = gt_mem_new(w->count, sizeof *kids_ns);
    for (size_t i = w->count; i-- > 1;) {
        const struct gt_node *n = &w->nodes[i];
        uint64_t ticks = n->count ? n->total_ticks : kids[i];
        /* what its duplicates had besides their self time: their children's, under this node but in
         * the time of the operator above */
        uint64_t lifted = n->count ? minus(w->ops[i].dup_ticks, w->ops[i].dup_self_ticks) : 0;
        uint64_t own = n->self_ticks < ticks ? n->self_ticks : ticks;
        /* how far the update came can't be told: their own is what the children leave */
        if (i == w->torn || i == w->torn_below)
            own = minus(gt_ticks_add(ticks, lifted), kids[i]);
        if (n->kind == GT_KIND_RANGE) {
            self[i] = n->count ? gt_load_ns(l, own) : 0;
            int64_t lifted_ns = gt_load_ns(l, lifted);
            if (!n->count || gt_ticks_add(ticks, lifted) == gt_ticks_add(own, kids[i]))
                total[i] = gt_add(self[i], kids_ns[i]) - lifted_ns;
            else
                total[i] = gt_load_ns(l, ticks);
            if (self[i] > total[i])
                self[i] = total[i];
            kids[n->parent] = gt_ticks_add(kids[n->parent], gt_ticks_add(ticks, lifted));
            kids_ns[n->parent] = gt_add(kids_ns[n->parent], gt_add(total[i], lifted_ns));
        } else if (n->kind == GT_KIND_ASYNC) {
            total[i] = gt_load_ns(l, n->total_ticks);
        }
        if (n->count || n->extra)
            wanted[i] = 1;
        if (wanted[i])
            wanted[n->parent] = 1;
    }
    free(kids);
    free(kids_ns);
}

static int emit(struct gt_loader *l, struct gt_work *w)
{
    struct gt_model *m = l->m;
    uint32_t thread = (uint32_t)(m->thread_count - 1);
    int64_t *self = gt_mem_new(w->count, sizeof *self),
            *total = gt_mem_new(w->count, sizeof *total);
    uint8_t *wanted = gt_mem_new(w->count, 1);
    int32_t *index = gt_mem_new(w->count, sizeof *index);
    int rc = 0;
    convert(l, w, self, total, wanted);
    sum_memory(w);
    for (size_t i = 0; i < w->open_count; i++)
        wanted[w->open[i].node] = 1;
    for (size_t i = 1; i < w->count && !rc; i++) {
        const struct gt_node *n = &w->nodes[i];
        if (!wanted[i] || is_collapsed(w, i)) {
            index[i] = n->parent ? index[n->parent] : -1;
            continue;
        }
        if (m->row_count >= INT32_MAX) {
            rc = gt_load_damaged(l, "too many nodes");
            break;
        }
        index[i] = (int32_t)m->row_count;
        struct gt_row *r = gt_model_row(m);
        r->parent = n->parent ? index[n->parent] : -1;
        r->thread = thread;
        r->self_ns = self[i];
        r->total_ns = total[i];
        if (i == w->torn)
            r->flags |= GT_ROW_TORN;
        r->memory = w->ops[i].memory[GT_MEMORY_CPU];
        r->self_memory = w->ops[i].self_memory[GT_MEMORY_CPU];
        r->device_memory = w->ops[i].memory[GT_MEMORY_DEVICE];
        r->self_device_memory = w->ops[i].self_memory[GT_MEMORY_DEVICE];
        rc = fill_row(l, w, n, r);
    }
    for (size_t i = 0; i < w->open_count && !rc; i++) {
        if (index[w->open[i].node] < 0)
            continue;
        struct gt_open *o = gt_model_open(m);
        uint64_t t0 = w->open[i].t0, start = l->h->start.ticks;
        o->row = index[w->open[i].node];
        o->since_ns = t0 > start ? gt_load_ns(l, t0 - start) : 0;
    }
    free(self);
    free(total);
    free(wanted);
    if (l->h->activity_count || l->h->memory) {
        index[0] = -1;
        gt_mem_grow(&l->places, &l->place_room, l->place_count, sizeof *l->places);
        l->places[l->place_count++] =
            (struct gt_load_place){w->slot.id, thread, (uint32_t)w->count, index};
    } else {
        free(index);
    }
    return rc;
}

int gt_load_slot(struct gt_loader *l, gt_ref ref)
{
    const struct gt_slot *s = gt_input_at(l->in, ref, sizeof *s);
    struct gt_work w = {0};
    int rc;
    if (!s)
        return gt_load_damaged(l, "bad slot");
    memcpy(&w.slot, s, sizeof w.slot);
    s = &w.slot;
    struct gt_thread *t = gt_model_thread(l->m);
    t->process = l->process;
    t->slot = s->id;
    t->tid = s->tid;
    t->threads = s->threads;
    t->name = gt_load_name(l, GT_NAME_THREAD, 0, 0, s->tid);
    if (!t->name)
        t->name = gt_model_text(l->m, s->name, sizeof s->name);
#define LOST(what)                                                                                 \
    l->lost[GT_LOST_INDEX_##what] = gt_add(l->lost[GT_LOST_INDEX_##what], whole(s->what))
    LOST(unbalanced);
    LOST(overlapped);
    LOST(folded);
    LOST(clamped);
    LOST(inherited);
    LOST(left_open);
    LOST(cut);
    LOST(silent);
    LOST(duplicates);
    LOST(stack_missing);
    LOST(stack_truncated);
    LOST(stack_cut);
    LOST(stack_folded);
#undef LOST
    l->m->processes[l->process].excluded =
        gt_add(l->m->processes[l->process].excluded, whole(s->excluded));
    if (!(rc = copy_nodes(l, &w)))
        rc = gt_load_trie(l, s, &w.trie);
    if (!rc && w.count) {
        judge_torn(l, &w);
        w.end = l->last;
        w.last = gt_load_window_end(l, s->window);
        rc = gt_replay_frames(l, &w);
        if (!rc)
            rc = replay_asyncs(l, &w);
        if (!rc)
            rc = emit(l, &w);
    }
    gt_load_trie_free(&w.trie);
    free(w.nodes);
    free(w.ops);
    free(w.open);
    return rc;
}

static void later(uint64_t t, uint64_t limit, uint64_t *last)
{
    if (t > *last && t <= limit)
        *last = t;
}

int gt_load_slot_last(struct gt_loader *l, const struct gt_slot *s, uint64_t limit, uint64_t *last)
{
    const struct gt_record *ring = NULL;
    uint32_t n = s->ring_records;
    later(s->last.ticks, limit, last);
    if (s->ring && n) {
        if (n & (n - 1) || n > l->records_left ||
            !(ring = gt_input_at(l->in, s->ring, (size_t)n * sizeof *ring)))
            return gt_load_damaged(l, "bad ring");
        l->records_left -= n;
    }
    for (uint32_t i = 0; ring && i < n; i++) {
        const struct gt_record *r = &ring[i];
        uint32_t kind = r->kind_node >> 28;
        uint64_t dur = r->dur;
        if (kind == GT_RING_EMPTY || kind == GT_RING_EXTENSION)
            continue;
        if (r->dur == GT_RING_ESCAPE) {
            const struct gt_record *x = &ring[(i + 1) & (n - 1)];
            dur = x->kind_node >> 28 == GT_RING_EXTENSION ? x->t0 : 0;
        }
        later(gt_ticks_add(r->t0, dur), limit, last);
    }
    uint32_t depth = s->depth < GT_MAX_DEPTH ? s->depth : GT_MAX_DEPTH;
    gt_ref ref = s->frames;
    const struct gt_frame_block *b = NULL;
    for (uint32_t i = 0; i < depth; i++) {
        if (i % GT_FRAMES_PER_BLOCK == 0) {
            if (!(b = gt_input_at(l->in, ref, sizeof *b)))
                return gt_load_damaged(l, "bad frame block");
            ref = b->next;
        }
        const struct gt_frame *f = &b->frames[i % GT_FRAMES_PER_BLOCK];
        /* the latest child may have ended after the latest ring record was written */
        later(GT_FRAME_CLOSING(f) ? f->t0 : gt_ticks_add(f->t0, f->kid_ticks), limit, last);
    }
    uint64_t left = l->in->bytes / sizeof(struct gt_async_block) + 1;
    const struct gt_async_block *a;
    for (ref = s->asyncs; ref; ref = a->next) {
        if (!left-- || !(a = gt_input_at(l->in, ref, sizeof *a)))
            return gt_load_damaged(l, "bad list of start/end ranges");
        for (size_t i = 0; i < GT_ASYNCS_PER_BLOCK; i++)
            if (a->entries[i].state != GT_ASYNC_FREE)
                later(a->entries[i].t0, limit, last);
    }
    return 0;
}
