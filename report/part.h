/* One process of a model that holds several, for reports with a table each. Used by cmd_report.c;
 * single thread. */
#ifndef GT_PART_H
#define GT_PART_H

#include "report/model.h"

/* Makes *part of what belongs to `process`. It shares the strings, lists and metrics of *m, which
 * must live as long and not change; the caller frees with gt_part_fini, never gt_model_fini. */
void gt_part_init(struct gt_model *part, const struct gt_model *m, size_t process);
void gt_part_fini(struct gt_model *part);

#endif
