/* What load.c and load_slot.c share while one session is turned into rows. */
#ifndef GT_LOAD_SLOT_H
#define GT_LOAD_SLOT_H

#include "report/load.h"

struct gt_loader {
    struct gt_model *m;
    const struct gt_input *in;
    const struct gt_header *h;
    struct gt_err *e;
    uint32_t process;
    int live;          /* the process still writes: look again where it was in the middle */
    uint64_t mul, div; /* ns = ticks * mul / div */
    uint64_t last;     /* ticks up to which open ranges count */
    uint64_t window;   /* the same where the window is open: it may have shut before */
    int64_t lost[GT_LOST_INDICES];
    /* Objects that may still be read: no honest file has more than fit into it, and a cycle or
     * shared parts would make us read for ever. */
    uint64_t nodes_left, frames_left, asyncs_left, records_left, text_left;
    uint64_t trie_left, stack_frames_left;
    uint64_t steps_left; /* comparisons: a file made for it could ask for 10^12 */
    /* text by gt_ref: most strings are used many times */
    struct gt_ref_text {
        gt_ref ref;
        gt_text text;
    } * texts;
    size_t text_count, text_size;
    /* where the nodes of each slot went: row of each, -1 for the root */
    struct gt_load_place {
        uint32_t slot, thread, count;
        int32_t *rows;
    } * places;
    size_t place_count, place_room;
    struct gt_load_module *modules; /* by id: load_stacks.c */
    size_t module_count, module_room;
    struct gt_load_name {
        uint32_t kind, source, id, order;
        gt_text domain, text;
    } * names;
    size_t name_count, name_room;
};

/* -ENODATA with "FILE: damaged: why". */
int gt_load_damaged(struct gt_loader *l, const char *why);
/* Text at ref in *t ("" for ref 0). Returns 0 or damaged. */
int gt_load_text(struct gt_loader *l, gt_ref ref, gt_text *t);
int64_t gt_load_ns(const struct gt_loader *l, uint64_t ticks);
/* The name given to a category or thread, 0 if none. */
gt_text gt_load_name(const struct gt_loader *l, uint32_t kind, uint32_t source, gt_text domain,
                     uint32_t id);

/* Ticks up to which what began in window number n counts, if it is open. */
uint64_t gt_load_window_end(const struct gt_loader *l, uint32_t n);

/* Reads a part of a living session's file once more: it may have been made after the copy. Returns
 * 1, or 0 if it lies outside of the copy or can't be read. */
int gt_load_again(const struct gt_loader *l, gt_ref ref, size_t bytes);
/* Copies the parts of a living slot once more, until no update fell between. Of all slots before
 * `last` is known: what ended later than that would be more than the ranges around it. */
void gt_load_settle(struct gt_loader *l, gt_ref ref);
/* Appends the thread and the rows of one slot. */
int gt_load_slot(struct gt_loader *l, gt_ref ref);
/* Appends a row for everything that devices did, below the rows that launched it: load_device.c. */
int gt_load_activities(struct gt_loader *l);
/* What devices' drivers gave and took, of the rows from first_row on: load_memory.c. */
int gt_load_driver_memory(struct gt_loader *l, size_t first_row);
/* Latest tick that anything in the slot shows, into *last if it is later (and at most `limit`). */
int gt_load_slot_last(struct gt_loader *l, const struct gt_slot *s, uint64_t limit, uint64_t *last);

#endif
