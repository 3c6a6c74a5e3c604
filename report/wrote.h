/* What `run` and `recover` say around a table: whose it is, which files there are, what to do next.
 * To stderr. Single thread. */
#ifndef GT_WROTE_H
#define GT_WROTE_H

#include "report/model.h"

/* "killed", …; "" for a process that ended by exit. */
const char *gt_wrote_ended(enum gt_ended ended);

/* `gputally: process 12 (train), killed` */
void gt_wrote_heading(unsigned pid, const char *program, enum gt_ended ended);

/* Each of `files` (one path a line, may be NULL) on a line of its own. */
void gt_wrote_others(const char *files);

/* The last line: `files` (of one process), and the next command; it names the reports among
 * `others` too while they are few. */
void gt_wrote_last(const char *files, const char *others, int shapes);

/* What the next command groups by: what the table did not show. */
const char *gt_wrote_group(int shapes);

#endif
