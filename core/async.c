/* start/end ranges: they may end on another thread, and they may still be open when the process
 * dies. So an open one is an entry in the file, in a block of the slot that started it; whoever
 * ends it counts it in a node of its own slot and gives the entry back. Part of record.h. */
#include <errno.h>
#include <string.h>
#include "core/clock.h"
#include "core/session.h"
#include "core/strings.h"
#include "core/thread.h"
#include "core/window.h"

/* Claims the open entry with this id, which is generation << 32 | gt_ref. The id may be garbage, of
 * an earlier range, of the process we were forked from, or be ended by another thread just now:
 * bounds, generation and state must all agree. */
static struct gt_async *claim(uint64_t id)
{
    uint8_t open = GT_ASYNC_OPEN;
    uint64_t at = (id & UINT32_MAX) * GT_ALIGN;
    uint64_t end = atomic_load_explicit(&gt_session.ready_bytes, memory_order_acquire);
    struct gt_async *e = (struct gt_async *)(gt_session.base + at);
    if (at < GT_HEADER_BYTES || at + sizeof *e > end || e->generation != (uint32_t)(id >> 32) ||
        !__atomic_compare_exchange_n(&e->state, &open, GT_ASYNC_ENDING, 0, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return NULL;
    return e;
}

static gt_ref ref_of(const void *p)
{
    return (gt_ref)(((const char *)p - gt_session.base) / GT_ALIGN);
}

/* A free entry: one of the thread's own, else all that others gave back, else a new block. */
static struct gt_async *take_entry(struct gt_thread *t)
{
    struct gt_slot *slot = t->slot;
    struct gt_async *e;
    if (!t->free_async)
        t->free_async = atomic_exchange_explicit(&slot->async_free, 0, memory_order_acquire);
    if (!t->free_async) {
        gt_ref ref;
        struct gt_async_block *b = gt_session_alloc(sizeof *b, &ref);
        if (!b)
            return NULL;
        for (uint32_t i = GT_ASYNCS_PER_BLOCK; i-- > 0;) {
            e = &b->entries[i];
            e->generation = gt_session.pid * 2654435761u ^ gt_session.generation << 20;
            e->slot = ref_of(slot);
            e->key = t->free_async;
            t->free_async = ref_of(e);
        }
        b->next = atomic_load_explicit(&slot->asyncs, memory_order_relaxed);
        atomic_store_explicit(&slot->asyncs, ref, memory_order_release);
    }
    e = gt_session_at(t->free_async);
    t->free_async = e->key;
    return e;
}

static void give_back(struct gt_thread *t, struct gt_async *e)
{
    struct gt_slot *owner = gt_session_at(e->slot);
    gt_ref mine = ref_of(e);
    if (owner == t->slot) {
        e->key = t->free_async;
        t->free_async = mine;
        return;
    }
    e->key = atomic_load_explicit(&owner->async_free, memory_order_relaxed);
    /* pushed by many, taken only whole by the owner: no ABA */
    while (!atomic_compare_exchange_weak_explicit(&owner->async_free, &e->key, mine,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

static uint64_t start(struct gt_thread *t, gt_tag tag, const struct gt_attr *a)
{
    uint32_t domain_id = (tag >> 32) & 0xffff;
    const char *name = a->name ? a->name : "(null)", *domain = gt_domain_name(domain_id);
    gt_ref key, domain_ref = 0;
    if (gt_is_paused()) {
        t->slot->silent++;
        return 0;
    }
    if (gt_tree_left_out(tag, name, gt_name_length(name))) {
        t->slot->excluded++;
        return 0;
    }
    struct gt_async *e = take_entry(t);
    if (!e || !gt_strings_session(name, gt_name_length(name), &key) ||
        (*domain && !gt_strings_session(domain, strlen(domain), &domain_ref))) {
        atomic_fetch_add_explicit(&gt_session.header->lost[GT_LOST_MEMORY], 1,
                                  memory_order_relaxed);
        if (e)
            give_back(t, e);
        return 0;
    }
    if (a->has_value) {
        /* the node that gt_end will count in: it knows no more than these two */
        const struct gt_attr who = {.name = name, .scope = a->scope};
        uint64_t folded = t->slot->folded;
        struct gt_link *c = gt_tree_child(t, t->root, tag | GT_LINK_KIND(GT_KIND_ASYNC), &who);
        if (c)
            gt_tree_value(c->node, a->value);
        t->slot->folded = folded; /* it is a call when it ends */
    }
    e->key = key;
    e->domain = domain_ref;
    e->domain_id = domain_id;
    e->category = (uint32_t)tag;
    e->source = (uint8_t)(tag >> 56);
    e->scope = a->scope;
    e->window = gt_session.header->window_shuts;
    e->generation++;
    uint64_t id = (uint64_t)e->generation << 32 | ref_of(e);
    e->t0 = gt_clock_now();
    __atomic_store_n(&e->state, GT_ASYNC_OPEN, __ATOMIC_RELEASE);
    return id;
}

uint64_t gt_start(gt_tag tag, const struct gt_attr *a)
{
    int saved = errno;
    struct gt_thread *t = gt_enter();
    uint64_t id;
    if (!t && !(t = gt_enter_slow()))
        return 0;
    id = start(t, tag, a);
    gt_leave(t);
    errno = saved;
    return id;
}

static int end(uint64_t id, int instant)
{
    int saved = errno;
    struct gt_thread *t = gt_enter();
    if (!t && !(t = gt_enter_slow()))
        return -1;
    uint64_t now = gt_clock_now();
    struct gt_async *e = claim(id);
    if (e) {
        const struct gt_str *key = gt_session_at(e->key);
        const struct gt_attr a = {.name = key->text, .scope = e->scope};
        gt_tag tag = GT_TAG(e->source, e->domain_id, e->category);
        uint64_t t0 = e->t0;
        now = instant ? t0 : now;
        if (!instant &&
            e->window != gt_session.header->window_shuts) { /* the window was shut meanwhile */
            now = gt_window_end(e->window);
            now = now > t0 ? now : t0;
            t->slot->cut++;
        }
        struct gt_link *c = gt_tree_child(t, t->root, tag | GT_LINK_KIND(GT_KIND_ASYNC), &a);
        if (!c) /* can't be: it was not left out when it started */
            c = t->other;
        gt_count_alone(t, c, now - t0, e);
        give_back(t, e);
        gt_ring_put(t, GT_RING_ASYNC, GT_RECORD_NODE(c->record), t0, now - t0);
    } else {
        t->slot->unbalanced++;
    }
    gt_leave(t);
    errno = saved;
    return e ? 0 : -1;
}

int gt_end(uint64_t id)
{
    return end(id, 0);
}

int gt_end_instant(uint64_t id)
{
    return end(id, 1);
}

void gt_span(gt_tag tag, const struct gt_attr *a, uint64_t t0, uint64_t t1)
{
    int saved = errno;
    struct gt_thread *t = gt_enter();
    if (!t && !(t = gt_enter_slow()))
        return;
    int early = gt_config.window.kind != GT_WINDOW_ALL && t0 < gt_session.header->window_since;
    struct gt_link *c = NULL;
    if (gt_is_paused() || early) /* it began before the window opened */
        t->slot->silent++;
    else
        c = gt_tree_child(t, t->root, tag | GT_LINK_KIND(GT_KIND_ASYNC), a);
    if (c) {
        gt_count_alone(t, c, t1 - t0, NULL);
        gt_ring_put(t, GT_RING_ASYNC, GT_RECORD_NODE(c->record), t0, t1 - t0);
    }
    gt_leave(t);
    errno = saved;
}

uint64_t gt_now(void)
{
    struct gt_thread *t = gt_enter();
    if (!t && !(t = gt_enter_slow())) /* which clock it is, is known when the session is open */
        return 0;
    uint64_t now = gt_clock_now();
    gt_leave(t);
    return now;
}
