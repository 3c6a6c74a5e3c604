/* What we ourselves cost the program, estimated: its calls times what one takes on this machine. */
#ifndef GT_OVERHEAD_H
#define GT_OVERHEAD_H

#include "report/model.h"

/* What a range costs where it was recorded: ns of one push and its pop, the clock read twice
 * included. Measured once in a process, in a child of it that loads the library beside us and
 * records some ten thousand into memory of its own; about a millisecond. 0: it can't be told here.
 */
double gt_overhead_call_ns(void);

/* Calls of the process: ranges, marks, samples, and those that were left out or paused. */
int64_t gt_overhead_calls(const struct gt_model *m, size_t process);
/* The estimate, in ns, and which share of the time inside outermost ranges of all its threads it
 * is. Both 0 where the cost is not known. */
double gt_overhead_ns(const struct gt_model *m, size_t process);
double gt_overhead_share(const struct gt_model *m, size_t process);

#endif
