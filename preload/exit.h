/* The end of the process. */
#ifndef GT_EXIT_H
#define GT_EXIT_H

/* When a session has been opened. */
void gt_exit_opened(void);

/* 1 if `gputally run` waits for this process and will make its report. */
int gt_exit_by_run(void);

/* Closes the session and, where no `gputally run` will do it, runs `gputally finish` on it and
 * waits. Called by the destructor, quick_exit and _exit; acts once, and only in the process that
 * owns the session. Takes no lock and calls no malloc: an exit may come from a signal handler. */
void gt_exit(void);

#endif
