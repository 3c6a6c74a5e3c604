/* Writers: one line in the table of writer.c and one file each (out_NAME.c). Used by
 * finish.c and cmd_report.c; single thread. docs/HOWTO_ADD_WRITER.md shows the way. */
#ifndef GT_WRITER_H
#define GT_WRITER_H

#include "report/group.h"
#include "report/model.h"
#include "report/sink.h"

struct gt_write_options {
    const char *sort_by; /* checked by the caller; NULL or "": as they came */
    long row_limit;      /* -1: none */
    unsigned group_by;   /* enum gt_by */
    struct gt_sink
        *hint;  /* for what is about the command, not the program; NULL: same as the rest */
    int device; /* of folded: device time that was launched instead of CPU time */
    int memory; /* memory columns: 1 always, 0 where there is such data */
    /* of tvm-table, as the arguments of TVM's Report.table() */
    int no_sort, no_aggregate, no_col_sums;
};

struct gt_writer {
    const char *name, *extension, *help;
    int bit; /* enum gt_format */
    /* Reads the model, writes to the sink; errors stay in the sink. */
    void (*write)(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s);
};

/* All of them; constant. */
extern const struct gt_writer gt_writers[];
extern const size_t gt_writer_count;
/* NULL if there is none of that name. */
const struct gt_writer *gt_writer_find(const char *name, size_t len);

void gt_out_table(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s);
void gt_out_json(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s);
void gt_out_csv(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s);
void gt_out_tree(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s);
void gt_out_tvm(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s);
void gt_out_tvm_csv(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s);
void gt_out_tvm_table(const struct gt_model *m, const struct gt_write_options *o,
                      struct gt_sink *s);
void gt_out_folded(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s);

/* The table alone, of averages that come from somewhere else. */
void gt_out_table_groups(const struct gt_groups *g, const struct gt_write_options *o,
                         struct gt_sink *s);

/* What the writers share (text.c). */

/* `{"format":"gputally-report","version":1,"process":{…},` of the first process: two files with the
 * same head are of the same session. */
void gt_out_json_head(const struct gt_model *m, struct gt_sink *s);
/* The object of some metrics, and the one of all devices of a process. */
/* ,"launch":{…} of a row of a device; nothing for 0. */
void gt_out_json_launched(const struct gt_model *m, uint32_t launched, struct gt_sink *s);
void gt_out_json_metrics(const struct gt_model *m, struct gt_list l, struct gt_sink *s);
void gt_out_json_devices(const struct gt_model *m, size_t process, struct gt_sink *s);
/* `,"modules":[…],"frames":[…],"stacks":[…]` */
void gt_out_json_stacks(const struct gt_model *m, struct gt_sink *s);
/* A quoted JSON string. */
void gt_text_json(struct gt_sink *s, const char *text, size_t len);
/* For a terminal: control characters as \n, \t, \x1b; texts of `limit` characters and more are cut
 * there and get "..."; padded to `width` on the left, or on the right if `left`. */
void gt_text_cell(struct gt_sink *s, const char *text, size_t width, size_t limit, int left);
/* Likewise, but what does not fit into `width` is left out without a word. */
void gt_text_cut(struct gt_sink *s, const char *text, size_t width);
/* Likewise, but padded on the right, and cut in front, with "..." there: for places in files. */
void gt_text_tail(struct gt_sink *s, const char *text, size_t width);
/* Characters of that form of the text, uncut. */
size_t gt_text_width(const char *text);
/* 12.345ms; room for 40 bytes. */
void gt_text_time(char *out, double ns);
/* The same of µs, as PyTorch has them: means of them round as its do. */
void gt_text_us(char *out, double us);
void gt_text_memory(char *out, int64_t bytes);
/* 12.34%, "NaN" if whole is 0, as PyTorch prints it. */
void gt_text_share(char *out, double part, double whole);
/* `name/tid`, and ` (4 threads)` where several used the slot one after the other: tid and name are
 * the last one's. Names are cut to fit. */
#define GT_THREAD_BYTES 256
void gt_text_thread(const struct gt_model *m, int64_t thread, char out[GT_THREAD_BYTES]);
/* "api,nvtx" */
void gt_text_sources(char *out, size_t room, uint32_t sources);

#endif
