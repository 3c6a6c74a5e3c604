/* The table of writers: one line is the whole support for a format. See writer.h. */
#include "report/writer.h"
#include "core/config.h"

const struct gt_writer gt_writers[] = {
    {"table", ".txt", "key averages in PyTorch's layout", GT_FORMAT_TABLE, gt_out_table},
    {"json", ".json", "everything; any other format can be made from it", GT_FORMAT_JSON,
     gt_out_json},
    {"csv", ".csv", "key averages, RFC 4180", GT_FORMAT_CSV, gt_out_csv},
    {"tree", ".tree.txt", "the calling tree, indented", GT_FORMAT_TREE, gt_out_tree},
    {"folded", ".folded", "CPU self time by call path, for flame graphs", GT_FORMAT_FOLDED,
     gt_out_folded},
    {"tvm", ".tvm.json", "what TVM's Report.from_json reads", GT_FORMAT_TVM, gt_out_tvm},
    {"tvm-csv", ".tvm.csv", "what its csv() gives", GT_FORMAT_TVM_CSV, gt_out_tvm_csv},
    {"tvm-table", ".tvm.txt", "what its table() gives", GT_FORMAT_TVM_TABLE, gt_out_tvm_table},
};
const size_t gt_writer_count = sizeof gt_writers / sizeof *gt_writers;

const struct gt_writer *gt_writer_find(const char *name, size_t len)
{
    for (size_t i = 0; i < gt_writer_count; i++)
        if (strlen(gt_writers[i].name) == len && !memcmp(gt_writers[i].name, name, len))
            return &gt_writers[i];
    return NULL;
}
