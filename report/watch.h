/* Snapshots of running processes: GPUTALLY_SNAPSHOT. Under `run` the run makes them; with
 * LD_PRELOAD alone the library starts `gputally finish --every`, so that no thread of ours is in
 * the host. */
#ifndef GT_WATCH_H
#define GT_WATCH_H

#include <stdint.h>

/* Makes a snapshot of the session every so many ns until its process has ended, gone on as another
 * program, or been finished. Leaves the caller's terminal, folder and descriptors but 0 to 2.
 * Returns 0, or -errno after a message. */
int gt_watch(const char *session, uint64_t every_ns, int quiet);

/* For `run`: snapshots of all living sessions in the folder, in a child of its own; while the last
 * one is at it, nothing. Never waits. */
void gt_watch_folder(const char *folder);
/* Waits for that child. */
void gt_watch_folder_end(void);

#endif
