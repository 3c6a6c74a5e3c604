/* The columns of TVM's reports that we know: what they are called and, for those of our own making,
 * which field of a row they hold. Used by load_tvm.c and tvm.c. */
#ifndef GT_TVM_COLUMNS_H
#define GT_TVM_COLUMNS_H

#include "report/model.h"

#define GT_TVM_NAME "Name"
#define GT_TVM_DURATION "Duration (us)"
#define GT_TVM_PERCENT "Percent"
#define GT_TVM_DEVICE "Device"
#define GT_TVM_COUNT "Count"
#define GT_TVM_SHAPES "Argument Shapes"
#define GT_TVM_HASH "Hash" /* never ours: TVM adds rows of one hash up */

/* Ours beside those. A table adds durations and counts of one name up, which is no shortest or
 * longest call: these two are texts, which it leaves out where they differ. */
struct gt_tvm_column {
    const char *name;
    uint8_t kind;   /* enum gt_metric_kind */
    uint8_t always; /* 0: only where a row has other than 0 */
    size_t field;   /* offset of an int64_t of struct gt_row; times are ns */
};
extern const struct gt_tvm_column gt_tvm_columns[];
extern const size_t gt_tvm_column_count;

static inline int64_t *gt_tvm_field(struct gt_row *r, const struct gt_tvm_column *c)
{
    return (int64_t *)((char *)r + c->field);
}

#endif
