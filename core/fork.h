/* Keeps a fork from inside one of our calls out of the parent's session. */
#ifndef GT_FORK_H
#define GT_FORK_H

/* Registers with fork(). Once, by gt_core_init. */
void gt_fork_init(void);

#endif
