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
 * the slot over: for reuse from one capture to the next. *truncated: 1 if there were more frames
 * than are kept, else left alone. No malloc, no lock, errno kept. */
typedef uint32_t gt_python_fn(void *state, struct gt_trie *trie, int *truncated);
#define GT_PYTHON_STATE_BYTES 61376u

/* Set by preload/python.c as soon as an interpreter is known (release), NULL before and after. */
extern _Atomic(gt_python_fn *) gt_python_walk GT_HIDDEN;

/* What GPUTALLY_WITH_STACK makes of an enum gt_stack_want; 0: no stack. */
enum gt_stack_how {
    GT_STACK_PYTHON = 1,
    GT_STACK_NATIVE = 2,
    GT_STACK_OR = 4,       /* native frames only where there are no Python ones */
    GT_STACK_FILTERED = 8, /* names may be left out, whose stack nobody wants */
};
/* Constant after gt_stacks_init: gt_stack_how[] of thread.h. */

/* The stack, as `how` says. `at` are the registers of any frame that is still open, in our library
 * or its caller. errno is kept. */
struct gt_stack_ids gt_stacks_get(struct gt_thread *t, const struct gt_regs *at, uint32_t how);

/* That of the call `name`, which is going to be counted, if one is wanted. A call that another one
 * of its API makes has none: it is that one's. */
static inline struct gt_stack_ids gt_stacks_of(struct gt_thread *t, const struct gt_regs *at,
                                               enum gt_stack_want want, gt_tag tag,
                                               const char *name)
{
    uint32_t how = gt_stack_asked(want);
    if (!how || (want == GT_STACK_BOTH && t->top->group == GT_TAG_GROUP(tag)) ||
        (unlikely(how & GT_STACK_FILTERED) && name && gt_tree_left_out(tag, name, strlen(name))))
        return (struct gt_stack_ids){0, 0};
    return gt_stacks_get(t, at, how);
}

/* Makes t->stack if it is not there. 0: no memory, which is counted. */
int gt_stacks_prepare(struct gt_thread *t);
/* Readers see what t's trie has by now. */
void gt_stacks_publish(struct gt_thread *t);

/* With the configuration: looks for what must not be looked for inside a call. Loads nothing. */
void gt_stacks_init(void);

/* Loads libunwind, once. Calls the loader, so only on the way into one of its functions:
 * preload/dl.c does it when gt_unwind_wanted says that it would have been of use. */
void gt_stacks_load(void);

/* Before a dlclose: another thread may load something to the same place before this one can look
 * what is gone. What was learned so far is looked up again, and then it is seen. */
void gt_stacks_unloading(void);
/* After a dlclose: if something was taken away, all that was learned is looked up anew. */
void gt_stacks_unloaded(void);

/* The slot goes to another thread: its trie stays. */
void gt_stacks_hand_over(struct gt_thread *t);

#endif
