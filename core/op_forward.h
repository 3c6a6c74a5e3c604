/* Which operator of the forward pass made a node of PyTorch's autograd graph, and from where it was
 * called: the stack that the node's own operators have in the backward pass. Called by op.c with
 * the thread's slot held; see op_forward.c. */
#ifndef GT_OP_FORWARD_H
#define GT_OP_FORWARD_H

#include "core/stacks.h"

/* The operator that starts now may make the node with this number: PyTorch counts them up, apart
 * for each thread. `thread` is PyTorch's number of this thread, `stack` a node of t's trie. */
void gt_op_forward_put(const struct gt_thread *t, uint64_t thread, int64_t sequence,
                       uint32_t stack);

/* The stack of the last operator that was put under these numbers, by whatever thread, as a node of
 * t's trie; 0: it is not known. */
uint32_t gt_op_forward_get(struct gt_thread *t, uint64_t thread, int64_t sequence);

/* That node as a call's stack: one of Python frames, or native ones where there were none. */
static inline struct gt_stack_ids gt_op_forward_ids(const struct gt_thread *t, uint32_t stack)
{
    struct gt_stack_ids ids = {0, 0};
    if (gt_trie_node(&t->stack->trie, stack)->pc & GT_TRIE_PYTHON)
        ids.python = stack;
    else
        ids.native = stack;
    return ids;
}

#endif
