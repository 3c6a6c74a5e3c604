/* The stack of a recorded call: native frames (core/unwind.c) and Python's (preload/python.c), each
 * as an id in the trie of the thread's slot. Called by the recording functions with the thread in
 * hand.
 *
 * Frames of our own library are innermost in what is captured: the report leaves them out. */
#ifndef GT_STACKS_H
#define GT_STACKS_H

#include <string.h>
#include "core/thread.h"
#include "core/unwind.h"

/* Walks the Python frames of the calling thread, which may hold the GIL or not, and enters them
 * into the trie. Returns the innermost frame's id, GT_TRIE_ROOT if there are none. `state` is
 * GT_PYTHON_STATE_BYTES of the slot's own memory, zeroed at first and whenever another thread takes
 * the slot over: for reuse from one capture to the next. No malloc, no lock, errno kept. */
typedef uint32_t gt_python_fn(void *state, struct gt_trie *trie);
#define GT_PYTHON_STATE_BYTES 53184u

/* Set by preload/python.c as soon as an interpreter is known (release), NULL before and after. */
extern _Atomic(gt_python_fn *) gt_python_walk GT_HIDDEN;

/* 1 if calls of this kind are to have a stack: looked at first, it costs nothing. */
static inline int gt_stacks_wanted(enum gt_stack_want want)
{
    if (want == GT_STACK_RANGE)
        return gt_config.stacks & GT_STACKS_RANGES;
    return want != GT_STACK_NONE && gt_config.stacks;
}

/* The stack as GPUTALLY_WITH_STACK asks for it, where one is wanted. `at` are the registers of any
 * frame that is still open, in our library or its caller. */
struct gt_stack_ids gt_stacks_get(struct gt_thread *t, const struct gt_regs *at,
                                  enum gt_stack_want want);

/* Likewise of the call `name` that is going to be counted, unless it is one that is left out. */
static inline struct gt_stack_ids gt_stacks_of(struct gt_thread *t, const struct gt_regs *at,
                                               enum gt_stack_want want, gt_tag tag,
                                               const char *name)
{
    const struct gt_stack_ids none = {0, 0};
    if (!gt_stacks_wanted(want))
        return none;
    if (unlikely(*gt_config.include || *gt_config.exclude) && name &&
        gt_tree_left_out(tag, name, strlen(name)))
        return none;
    return gt_stacks_get(t, at, want);
}

/* Makes t->stack if it is not there. 0: no memory, which is counted. */
int gt_stacks_prepare(struct gt_thread *t);
/* Readers see the nodes that t's trie has by now. */
void gt_stacks_publish(struct gt_thread *t);

/* The constructor: looks for what must not be looked for inside a call. Loads nothing. */
void gt_stacks_init(void);

/* Loads libunwind, once. Calls the loader, so only on the way into one of its functions:
 * preload/dl.c does it when gt_unwind_wanted says that it would have been of use. */
void gt_stacks_load(void);

/* After a dlclose: if something was taken away, all that was learned is looked up anew. */
void gt_stacks_unloaded(void);

/* The slot goes to another thread: its trie stays. */
void gt_stacks_hand_over(struct gt_thread *t);

#endif
