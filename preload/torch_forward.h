/* Which node of the autograd graph an operator makes, or is of: so that the operators of the
 * backward pass can have the stack of the forward one. Every operator carries the number of the
 * node (its sequence number), one of the backward pass also the number of the thread that made it.
 * No function tells them; where they lie in a RecordFunction is learned from the first operators,
 * see torch_forward.c. */
#ifndef GT_TORCH_FORWARD_H
#define GT_TORCH_FORWARD_H

#include <stdatomic.h>
#include "core/record.h"
#include "torch.h"

enum gt_torch_forward_state {
    GT_FORWARD_OFF,
    GT_FORWARD_LEARNING,
    GT_FORWARD_SEQUENCE, /* where the sequence number is is known */
    GT_FORWARD_KNOWN,    /* the thread's too */
};
struct gt_torch_forward {
    _Atomic unsigned state; /* stored (release) after the others */
    /* of the words in a RecordFunction, in bytes */
    _Atomic unsigned sequence_at, thread_at;
};
extern struct gt_torch_forward gt_torch_forward_learned __attribute__((visibility("hidden")));

/* Once for each copy of PyTorch, before its first operator. */
void gt_torch_forward_init(void);

/* The same while it is being learned. */
void gt_torch_forward_learn(const struct gt_torch_rf *rf, unsigned scope, struct gt_op *op);

static inline int64_t gt_torch_word(const struct gt_torch_rf *rf, unsigned at)
{
    return *(const int64_t *)(const void *)((const char *)rf + at);
}

/* Fills in op->sequence and op->thread of an operator that starts, which has its name already. */
static inline void gt_torch_forward(const struct gt_torch_rf *rf, unsigned scope, struct gt_op *op)
{
    struct gt_torch_forward *f = &gt_torch_forward_learned;
    /* acquire: the offsets */
    unsigned state = atomic_load_explicit(&f->state, memory_order_acquire);

    if (scope > GT_TORCH_BACKWARD || state == GT_FORWARD_OFF)
        return;
    if (__builtin_expect(state < GT_FORWARD_SEQUENCE + (scope == GT_TORCH_BACKWARD), 0)) {
        gt_torch_forward_learn(rf, scope, op);
        return;
    }
    op->sequence = gt_torch_word(rf, atomic_load_explicit(&f->sequence_at, memory_order_relaxed));
    if (op->sequence < 0)
        return;
    if (scope == GT_TORCH_FUNCTION)
        op->thread = gt_torch_calls.current_thread();
    else
        op->thread =
            (uint64_t)gt_torch_word(rf, atomic_load_explicit(&f->thread_at, memory_order_relaxed));
}

#endif
