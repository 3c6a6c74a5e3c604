/* Loaders: append what a file holds to the model. Return 0 or -errno (-ENODATA: not ours, damaged,
 * newer) with *e set as "FILE: why"; what they had appended until then stays in the model, whose
 * only use is gt_model_fini. They read nothing but the input and change no file. */
#ifndef GT_LOAD_H
#define GT_LOAD_H

#include "report/err.h"
#include "report/model.h"
#include "report/session.h"

int gt_load_session(struct gt_model *m, const struct gt_input *in, struct gt_err *e);
int gt_load_json(struct gt_model *m, const struct gt_input *in, struct gt_err *e);
/* The part of gt_load_json that reads a list of events (load_events.c). */
struct gt_json_reader;
void gt_load_events(struct gt_json_reader *r);
/* What TVM's Report.json() writes. */
int gt_load_tvm(struct gt_model *m, const struct gt_input *in, struct gt_err *e);
int gt_load_is_tvm(const struct gt_input *in);
/* Any of them, by its first bytes. "-": standard input. */
int gt_load_file(struct gt_model *m, const char *path, struct gt_err *e);

#endif
