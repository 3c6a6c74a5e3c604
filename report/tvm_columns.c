/* See tvm_columns.h. */
#include "report/tvm_columns.h"

#define FIELD(f) offsetof(struct gt_row, f)
const struct gt_tvm_column gt_tvm_columns[] = {
    {"Total (us)", GT_METRIC_MICROSECONDS, 1, FIELD(total_ns)},
    {"Min (us)", GT_METRIC_STRING, 1, FIELD(min_ns)},
    {"Max (us)", GT_METRIC_STRING, 1, FIELD(max_ns)},
    {"Failed", GT_METRIC_COUNT, 0, FIELD(failed)},
    {"Bytes", GT_METRIC_COUNT, 0, FIELD(bytes)},
    {"FLOPs", GT_METRIC_COUNT, 0, FIELD(flops)},
    {"Self memory (bytes)", GT_METRIC_COUNT, 0, FIELD(self_memory)},
    {"Total memory (bytes)", GT_METRIC_COUNT, 0, FIELD(memory)},
    {"Self device (us)", GT_METRIC_MICROSECONDS, 0, FIELD(self_device_ns)},
    {"Total device (us)", GT_METRIC_MICROSECONDS, 0, FIELD(device_ns)},
    {"Self device memory (bytes)", GT_METRIC_COUNT, 0, FIELD(self_device_memory)},
    {"Total device memory (bytes)", GT_METRIC_COUNT, 0, FIELD(device_memory)},
};
const size_t gt_tvm_column_count = sizeof gt_tvm_columns / sizeof *gt_tvm_columns;
