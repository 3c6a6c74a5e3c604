/* Ends of operators that came on another thread. Any thread; see op_elsewhere.c. */
#ifndef GT_OP_ELSEWHERE_H
#define GT_OP_ELSEWHERE_H

#include "core/thread.h"

/* How many wait to be collected: the hot path looks at nothing else. */
extern _Atomic uint32_t gt_op_ends GT_HIDDEN;

/* `token` is not open on this thread: whoever has it may close it as of `now` (ticks). */
void gt_op_ended_elsewhere(uint64_t token, uint64_t now);
/* Closes those of this thread; its door is shut. */
void gt_op_collect_ends(struct gt_thread *t);

#endif
