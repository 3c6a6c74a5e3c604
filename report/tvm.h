/* A model as TVM's Report sees it: calls, devices and a configuration, each a map of named values.
 * Made for the three writers of that form (out_tvm.c, out_tvm_csv.c, out_tvm_table.c). What came
 * from a TVM report goes out as it came; our own rows get the columns that tvm_columns.h tells.
 * Single thread. */
#ifndef GT_TVM_H
#define GT_TVM_H

#include "report/model.h"
#include "report/tvm_order.h"

struct gt_tvm_cell {
    uint32_t column; /* in gt_tvm.columns */
    uint8_t kind;    /* enum gt_metric_kind */
    union {
        int64_t count;
        double real;
        const char *text; /* NUL-terminated, of the model or of this */
    };
};

/* Cells of a row, a device or the configuration; at most one a column. */
struct gt_tvm_row {
    size_t first;
    uint32_t count;
    const char *device; /* of devices only: "cpu0" */
};

struct gt_tvm {
    const struct gt_model *model; /* borrowed, or room */
    struct gt_model room;         /* rows that differ in their stacks only are one */
    const char **columns;         /* names, in order of first appearance; the first six are TVM's */
    struct gt_tvm_cell *cells;
    struct gt_tvm_row *calls, *devices;
    struct gt_tvm_row configuration; /* its columns are those of `settings` */
    const char **settings;
    size_t column_count, cell_count, call_count, device_count, setting_count;
    size_t column_room, cell_room, call_room, device_room, setting_room;
    /* for making it */
    struct gt_tvm_map names; /* of the columns */
    uint32_t *column_of;     /* by gt_text: 1 + column */
    const char **shown;      /* by gt_text: without control characters, NULL: not yet asked for */
    char **owned;            /* texts that are not the model's */
    size_t owned_count, owned_room;
};

/* The columns that TVM's table always has, in this order. */
enum {
    GT_TVM_AT_NAME,
    GT_TVM_AT_DURATION,
    GT_TVM_AT_PERCENT,
    GT_TVM_AT_DEVICE,
    GT_TVM_AT_COUNT,
    GT_TVM_AT_SHAPES,
    GT_TVM_FIXED
};

/* The caller frees with gt_tvm_fini; the model must live as long. */
void gt_tvm_init(struct gt_tvm *v, const struct gt_model *m);
void gt_tvm_fini(struct gt_tvm *v);

/* Appends a cell to a row whose cells are the last ones (or which has none yet). */
struct gt_tvm_cell *gt_tvm_put(struct gt_tvm *v, struct gt_tvm_row *row, uint32_t column, int kind);
/* The row's cell of that column, NULL if it has none. */
const struct gt_tvm_cell *gt_tvm_cell_of(const struct gt_tvm *v, const struct gt_tvm_row *row,
                                         uint32_t column);
/* Number of the column, UINT32_MAX if there is none of that name. */
uint32_t gt_tvm_column_named(const struct gt_tvm *v, const char *name);
/* The number in a cell; of a text, what it begins with. */
double gt_tvm_amount(const struct gt_tvm_cell *c);
/* What TVM makes of some values of one column: durations, counts and percents are added up, ratios
 * averaged, a text stays if all have it and is "" otherwise. `n` is at least 1. */
struct gt_tvm_cell gt_tvm_add_up(const struct gt_tvm_cell *const *cells, size_t n);
/* Columns in the order of their names' bytes, `from` on. The caller frees. */
uint32_t *gt_tvm_sorted_columns(const struct gt_tvm *v, uint32_t from);

#endif
