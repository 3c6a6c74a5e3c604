/* What a view was asked for and its files don't have. Used by cmd_report.c; single thread. */
#ifndef GT_MISSING_H
#define GT_MISSING_H

#include "report/model.h"
#include "report/writer.h"

/* A line to stderr for each --group-by and --sort-by that has nothing to go by: the table would
 * look as if it was not given. Says which option of `run` records it. */
void gt_missing_tell(const struct gt_model *m, const struct gt_write_options *o);

#endif
