/* `report --lines`, `report --debug-dir`: what the files of this machine know of a model's native
 * frames. Called by cmd_report.c once all is loaded; single thread. */
#ifndef GT_LINES_H
#define GT_LINES_H

#include "report/model.h"
#include "report/symbols.h"

/* Gives names to frames that have none, and with `lines` file and line, and inlined functions as
 * frames of their own. Tells on standard error what is missing. */
void gt_lines_fill(struct gt_model *m, const struct gt_symbols_folders *folders, int lines);

#endif
