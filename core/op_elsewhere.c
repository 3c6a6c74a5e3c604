/* An operator that ends on another thread than it began on (a future's callback ends it): nobody
 * may touch a frame but its own thread. So the thread that ends it leaves the end here, and the
 * owner collects it when it opens its next operator. Such a call is asynchronous, as PyTorch's own
 * profiler has it: a row without self time, outside the tree.
 *
 * Lock-free, bounded: an end that finds no room, or that no thread asks for, is dropped and the
 * operator counts as ended with its thread. */
#include "core/op_elsewhere.h"
#include "core/session.h"
#include "core/thread.h"

#define ENDS 64u
/* An end that nobody has claimed in so many looks belongs to nobody. */
#define LOOKS 4096u
#define BUSY 1u

_Atomic uint32_t gt_op_ends;
static struct {
    _Atomic uint64_t token; /* 0: free, BUSY: being written */
    uint64_t ticks;
    _Atomic uint32_t looks;
} ends[ENDS];

void gt_op_ended_elsewhere(uint64_t token, uint64_t now)
{
    for (uint32_t i = 0; i < ENDS; i++) {
        uint64_t none = 0;
        if (!atomic_compare_exchange_strong_explicit(&ends[i].token, &none, BUSY,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        ends[i].ticks = now;
        atomic_store_explicit(&ends[i].looks, 0, memory_order_relaxed);
        /* release pairs with the owner's acquire: it sees the time too */
        atomic_store_explicit(&ends[i].token, token, memory_order_release);
        atomic_fetch_add_explicit(&gt_op_ends, 1, memory_order_relaxed);
        return;
    }
}

/* Silent ones too: those that are left out, or were open when the window was shut. */
static int is_op(const struct gt_frame *f)
{
    return (f->group & GT_GROUP_MASK) == (GT_GROUP_OP & GT_GROUP_MASK);
}

static struct gt_frame *find(const struct gt_thread *t, uint64_t token, uint64_t ticks,
                             uint32_t *number)
{
    uint32_t depth = atomic_load_explicit(&t->slot->depth, memory_order_relaxed);
    for (uint32_t i = depth; i-- > 0;) {
        struct gt_frame *f = gt_frame_at(t, i);
        /* one that began later has the same object's address and nothing else */
        if (is_op(f) && f->token == token && (int64_t)(ticks - f->t0) >= 0) {
            *number = i;
            return f;
        }
    }
    return NULL;
}

void gt_op_collect_ends(struct gt_thread *t)
{
    for (uint32_t i = 0; i < ENDS; i++) {
        uint64_t token = atomic_load_explicit(&ends[i].token, memory_order_acquire), ticks;
        uint32_t number;
        if (token <= BUSY)
            continue;
        ticks = ends[i].ticks;
        struct gt_frame *f = find(t, token, ticks, &number);
        if (!f && atomic_fetch_add_explicit(&ends[i].looks, 1, memory_order_relaxed) < LOOKS)
            continue;
        if (!atomic_compare_exchange_strong_explicit(&ends[i].token, &token, 0,
                                                     memory_order_relaxed, memory_order_relaxed))
            continue;
        atomic_fetch_sub_explicit(&gt_op_ends, 1, memory_order_relaxed);
        if (f)
            gt_frame_close_async(t, number, ticks);
    }
}
