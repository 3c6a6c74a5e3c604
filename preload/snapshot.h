/* Reports of the process while it runs: GPUTALLY_SNAPSHOT, _SNAPSHOT_SIGNAL, gputally_flush. They
 * are made by `gputally finish --snapshot` from the session file; nothing here reads or formats it.
 */
#ifndef GT_SNAPSHOT_H
#define GT_SNAPSHOT_H

/* In the constructor: takes the signal, if one was asked for. Early, so that it never kills. */
void gt_snapshot_init(void);
/* When a session has been opened: starts who makes one every so many seconds, unless `run` does. */
void gt_snapshot_opened(void);
/* At the end: tells if the program has taken the signal away from us. */
void gt_snapshot_end(void);

#endif
