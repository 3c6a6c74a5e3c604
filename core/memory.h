/* Memory of devices as their drivers give and take it: what is in use and the most that was, for
 * each device, and for every block that is there the call that it came from. Called by the sources
 * of devices from inside the call, whose range is open. Any thread, no malloc, no lock, errno kept.
 * Frameworks' own figures, of blocks from their pools, are op.c's: the two are never added. */
#ifndef GT_MEMORY_H
#define GT_MEMORY_H

#include "core/layout.h"

/* The call succeeded and gave `bytes` at `address`, which may be a handle: unique in its source. */
void gt_memory_allocated(enum gt_source source, uint32_t device, uint64_t address, uint64_t bytes);

/* One that goes with its `owner` (a context; not 0, unique in its source) unless it is freed
 * before. */
void gt_memory_allocated_in(enum gt_source source, uint32_t device, uint64_t owner,
                            uint64_t address, uint64_t bytes);
/* A call is about to end `owner`: its blocks are `token`'s, which no owner is. */
void gt_memory_ending(enum gt_source source, uint64_t owner, uint64_t token);
/* After it: they were given back by this call; or, if it `failed`, they are the owner's again. */
void gt_memory_ended(enum gt_source source, uint64_t owner, uint64_t token, int failed);

/* What a call is about to give back. */
struct gt_memory_block {
    uint64_t address, bytes; /* bytes 0: a block that is not followed */
    uint64_t owner;
    uint32_t slot, node, device, source;
};
/* Before the call, since another thread may get the same address as soon as it is free. */
struct gt_memory_block gt_memory_freeing(enum gt_source source, uint64_t address);
/* After it. */
void gt_memory_freed(const struct gt_memory_block *block, int failed);

#endif
