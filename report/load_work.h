/* The working copy of one slot, while load_slot.c and load_frames.c turn it into rows. */
#ifndef GT_LOAD_WORK_H
#define GT_LOAD_WORK_H

#include "report/load_slot.h"
#include "report/load_stacks.h"

struct gt_opened {
    uint32_t node;
    uint64_t t0;
};

struct gt_work {
    struct gt_slot slot;
    struct gt_node *nodes;
    struct gt_load_trie trie;
    struct gt_op_stats *ops; /* of each node; zero where it has none */
    size_t count, room;
    struct gt_opened *open;
    size_t open_count, open_room;
    uint64_t end;        /* of the process, in ticks */
    uint64_t last;       /* ticks up to which open ranges count */
    uint32_t torn;       /* node, UINT32_MAX: none */
    uint32_t torn_below; /* node of the frame below the torn one: was it charged already? */
};

/* a + b, at most UINT64_MAX. */
static inline uint64_t gt_ticks_add(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

/* One more call of a node. */
void gt_work_count(struct gt_node *n, uint64_t total, uint64_t self);
void gt_work_open(struct gt_work *w, uint32_t node, uint64_t t0);
/* Counts the open frames as if each ended at l->last. Returns 0 or -errno. */
int gt_replay_frames(struct gt_loader *l, struct gt_work *w);

#endif
