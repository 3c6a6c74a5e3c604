/* Counts a process once, however many of the files that are shown together hold it. */
#ifndef GT_ONCE_H
#define GT_ONCE_H

#include "report/model.h"

/* Takes out of *m what was appended since `before` (a copy of the struct, of which only the counts
 * are read) and belongs to a process that was there already. Returns how many processes went.
 * Single thread. */
size_t gt_once(struct gt_model *m, const struct gt_model *before);

#endif
