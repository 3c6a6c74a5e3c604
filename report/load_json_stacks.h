/* Reads the stacks of a saved report; used by load_json.c, whose reader's `own` points to a struct
 * gt_json_stacks. Single thread. */
#ifndef GT_LOAD_JSON_STACKS_H
#define GT_LOAD_JSON_STACKS_H

#include "report/json_read.h"

/* Positions in the file -> ids in the model, which may have some of another file. */
struct gt_json_ids {
    uint32_t *at;
    size_t count, room;
};

struct gt_json_stacks {
    struct gt_json_ids modules, frames, stacks;
};

/* One element each of the sections "modules", "frames" and "stacks". */
void gt_json_read_module(const struct gt_json_item *i);
void gt_json_read_frame(const struct gt_json_item *i);
void gt_json_read_stack(const struct gt_json_item *i);
/* Of a row: the stack that its "stack" names, 0: none. */
uint32_t gt_json_stack_of(const struct gt_json_item *i);
void gt_json_stacks_free(struct gt_json_stacks *k);

#endif
