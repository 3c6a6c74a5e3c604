/* gt_finish_session in a process of its own. */
#ifndef GT_RUN_WORKER_H
#define GT_RUN_WORKER_H

#include "report/finish.h"

/* As gt_finish_session, which see; a crash in there is -EIO with *e told. The caller must have no
 * other child process that it waits for with wait(-1). */
int gt_run_worker_finish(const char *path, const struct gt_finish_options *o,
                         struct gt_finish_result *out, struct gt_err *e);

#endif
