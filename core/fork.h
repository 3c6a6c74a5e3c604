/* What a fork's child has of its parent: its open ranges, but nothing of its session. */
#ifndef GT_FORK_H
#define GT_FORK_H

/* Registers with fork(). Once, by gt_core_init. */
void gt_fork_init(void);

struct gt_thread;
/* In the child, t being its new thread: opens again, silently, the ranges that were open in the
 * thread that forked. `old_base` is where the parent's file lies, NULL where it is gone already:
 * then the ranges only stay balanced. */
void gt_fork_inherit(struct gt_thread *t, struct gt_thread *old, const char *old_base);

#endif
