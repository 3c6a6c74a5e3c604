/* What `run` tells of the command itself, where there is something to tell. To stderr. Single
 * thread. */
#ifndef GT_RUN_SAY_H
#define GT_RUN_SAY_H

#include "core/config.h"

/* A launcher of ranks is better put outside. */
void gt_run_say_launcher(const char *command);

/* Why `command` did not start: `rc` is -errno. Returns the exit status. */
int gt_run_say_not_started(const char *command, int rc);

/* Why there is no report: what would be recorded, and what was set that leaves calls out. */
void gt_run_say_nothing(const struct gt_config *c);

#endif
