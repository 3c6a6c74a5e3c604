/* The stack of a recorded call: native frames (core/unwind.c) and Python's (preload/python.c), each
 * as an id in the trie of the thread's slot. Called by the recording functions with the thread in
 * hand.
 *
 * Frames of our own library are innermost in what is captured: the report leaves them out. */
#ifndef GT_STACKS_H
#define GT_STACKS_H

#include "core/thread.h"
#include "core/unwind.h"

struct gt_stack_ids {
    uint32_t native, python; /* 0: none; see enum gt_trie_root */
};

/* Walks the Python frames of the calling thread, which may hold the GIL or not, and enters them
 * into the trie. Returns the innermost frame's id, GT_TRIE_ROOT if there are none. `state` is
 * GT_PYTHON_STATE_BYTES of the slot's own memory, zeroed at first and whenever another thread takes
 * the slot over: for reuse from one capture to the next. No malloc, no lock, errno kept. */
typedef uint32_t gt_python_fn(void *state, struct gt_trie *trie);
#define GT_PYTHON_STATE_BYTES 53184u

/* Set by preload/python.c as soon as an interpreter is known (release), NULL before and after. */
extern _Atomic(gt_python_fn *) gt_python_walk GT_HIDDEN;

/* The stack as GPUTALLY_WITH_STACK asks for it. `at` are the registers of any frame that is still
 * open, in our library or its caller. */
struct gt_stack_ids gt_stacks_get(struct gt_thread *t, const struct gt_regs *at,
                                  enum gt_stack_want want);

#endif
