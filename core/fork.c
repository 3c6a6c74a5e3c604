/* Forks. The child goes on with the ranges that are open in the thread that forks, and pops them:
 * it has to know which they are. Their frames lie in the file, which the parent goes on changing,
 * so a list of them is made before. Who forks by _Fork or clone gets none: there the child takes
 * the path of the innermost range, which is the same but for ranges that are silent or ended out of
 * order.
 *
 * A fork from inside one of our own calls: a signal handler that came in the middle of a push
 * forks, and the child, once the handler returns, goes on with that push. It must do so on memory
 * of its own, or the parent's file would get half a call twice. So before such a fork the session
 * is copied, and the child finds the copy in the file's place; what it does there is forgotten when
 * it opens its own session. Runs in the thread that forks. Only fork() calls us: _Fork and clone in
 * a handler are not covered. */
#include "core/fork.h"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include "core/session.h"
#include "core/sys.h"
#include "core/thread.h"
#include "core/window.h"

static int inside(const struct gt_thread *t)
{
    return t != &gt_nobody && __atomic_load_n(&t->door, __ATOMIC_RELAXED) == GT_DOOR_SHUT;
}

/* ---- the open ranges ---- */

/* Its session is this process's. */
static int records(const struct gt_thread *t)
{
    return t != &gt_nobody && atomic_load(&gt_fork.phase) == GT_PHASE_OPEN &&
           t->generation == gt_session.generation;
}

static void drop_list(struct gt_thread *t)
{
    if (t->fork_open)
        gt_sys_munmap(t->fork_open, t->fork_opens * sizeof *t->fork_open);
    t->fork_open = NULL;
}

static void make_list(struct gt_thread *t)
{
    if (!records(t) || t->fork_open || inside(t))
        return;
    uint32_t depth = atomic_load_explicit(&t->slot->depth, memory_order_relaxed);
    struct gt_open *list =
        depth ? gt_sys_mmap(depth * sizeof *list, MAP_PRIVATE | MAP_ANONYMOUS, -1) : NULL;
    if (!list)
        return;
    for (uint32_t i = 0; i < depth; i++) {
        const struct gt_frame *f = gt_frame_at(t, i);
        list[i] = (struct gt_open){f->link, f->token, f->group & GT_GROUP_MASK, f->flags};
    }
    t->fork_opens = depth;
    t->fork_open = list;
}

static const char *old_text(const char *old_base, gt_ref ref)
{
    return ref ? ((const struct gt_str *)(old_base + (uint64_t)ref * GT_ALIGN))->text : NULL;
}

/* The child's node for the parent's, below `mine`. What is read of the parent's is private memory
 * (the links) and immutable text. */
static struct gt_link *child_of(struct gt_thread *t, const struct gt_thread *old,
                                const char *old_base, struct gt_link *mine, const struct gt_link *l)
{
    if (!old_base)
        return mine;
    if (l == old->other)
        return t->other;
    const struct gt_attr a = {.name = l->text,
                              .shapes = old_text(old_base, l->node->shapes),
                              .overload = old_text(old_base, l->node->overload),
                              .scope = l->node->scope};
    struct gt_link *c = gt_tree_child(t, mine, l->tag, &a);
    return c ? c : mine; /* a folded name is no longer the one that was judged */
}

/* Makes `last` of all above l the way back down to it. */
static void mark_path(struct gt_link *l)
{
    for (; l->parent != l; l = l->parent)
        l->parent->last = l;
}

static struct gt_link *path_of(struct gt_thread *t, const struct gt_thread *old,
                               const char *old_base, struct gt_link *l)
{
    struct gt_link *mine = t->root;
    mark_path(l);
    for (const struct gt_link *at = old->root; at != l;) {
        at = at->last;
        mine = child_of(t, old, old_base, mine, at);
    }
    return mine;
}

static void open_again(struct gt_thread *t, struct gt_link *mine, const struct gt_open *o,
                       int transparent)
{
    int level = gt_frame_push(t, mine, o->group, o->token, 1);
    int step = o->flags & GT_FRAME_STEP, in = o->flags & GT_FRAME_IN;
    if (step && !t->in_step && level >= 0) {
        if (in) /* it held the window open */
            atomic_fetch_add(&gt_window_open, 1);
        gt_window_step_open(t, in ? GT_STEP_IN : GT_STEP_OUT, level);
    }
    t->slot->inherited += !transparent;
}

void gt_fork_inherit(struct gt_thread *t, struct gt_thread *old, const char *old_base)
{
    struct gt_link *before = old->root;
    if (!old->fork_open) {
        mark_path(old->cur);
        for (struct gt_link *l = old->root; l != old->cur;) {
            l = l->last;
            const struct gt_open o = {l, 0, GT_TAG_GROUP(l->tag),
                                      l->step && !t->in_step ? GT_FRAME_STEP | GT_FRAME_IN : 0};
            open_again(t, child_of(t, old, old_base, t->cur, l), &o, 0);
        }
        return;
    }
    for (uint32_t i = 0; i < old->fork_opens; i++) {
        const struct gt_open *o = &old->fork_open[i];
        struct gt_link *mine = t->cur;
        int transparent = o->link == before; /* has no row of its own */
        if (!transparent)
            mine = o->link->parent == before ? child_of(t, old, old_base, mine, o->link)
                                             : path_of(t, old, old_base, o->link);
        before = o->link;
        open_again(t, mine, o, transparent);
    }
    drop_list(old);
}

/* ---- around fork() ---- */

static void prepare(void)
{
    struct gt_thread *t = gt_self;
    make_list(t);
    uint64_t bytes = atomic_load_explicit(&gt_session.ready_bytes, memory_order_acquire);
    if (!inside(t) || !gt_session.base || t->fork_copy)
        return;
    t->fork_copy =
        gt_sys_mmap(gt_session.size_bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (t->fork_copy)
        memcpy(t->fork_copy, gt_session.base, bytes);
}

static void parent(void)
{
    struct gt_thread *t = gt_self;
    if (records(t)) /* or it is a child that has not recorded yet, and needs its own parent's */
        drop_list(t);
    if (!inside(t) || !t->fork_copy)
        return;
    gt_sys_munmap(t->fork_copy, gt_session.size_bytes);
    t->fork_copy = NULL;
}

static void child(void)
{
    struct gt_thread *t = gt_self;
    if (!inside(t) || !t->fork_copy)
        return;
    gt_sys(SYS_mremap, (long)t->fork_copy, (long)gt_session.size_bytes, (long)gt_session.size_bytes,
           MREMAP_MAYMOVE | MREMAP_FIXED, (long)gt_session.base, 0);
    t->fork_copy = NULL;
}

void gt_fork_init(void)
{
    pthread_atfork(prepare, parent, child);
}
