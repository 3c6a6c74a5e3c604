/* A hash table of blocks: the part of PyTorch's own table (ProfiledCPUMemoryReporter) that would
 * exist without us, stale entries included: a block that is released while the program's profiler
 * does not run stays. 1 MiB of addresses, which only programs that profile their memory touch. */
#include "torch_known.h"

#include <stdatomic.h>

#define SLOTS 65536u
#define PROBES 32u /* beyond, the table counts as full */

/* Slots go from EMPTY to a block, from a block to GONE, and from GONE to another block; never back
 * to EMPTY, where a search ends. */
#define EMPTY ((uintptr_t)0)
#define GONE ((uintptr_t)1)
static struct {
    _Atomic uintptr_t block;
    int64_t bytes; /* of whoever allocated the block: ordered by the allocator itself */
} slots[SLOTS];
static _Atomic int64_t total;

static uint32_t slot_of(uintptr_t block, uint32_t i)
{
    return (uint32_t)((block * 0x9e3779b97f4a7c15u) >> 40) + i;
}

/* The slot that has the block, SLOTS if none. */
static uint32_t find(uintptr_t block)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        uint32_t n = slot_of(block, i) % SLOTS;
        uintptr_t there = atomic_load_explicit(&slots[n].block, memory_order_acquire);

        if (there == block)
            return n;
        if (there == EMPTY)
            break;
    }
    return SLOTS;
}

static uint32_t take(uintptr_t block)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        uint32_t n = slot_of(block, i) % SLOTS;
        uintptr_t there = atomic_load_explicit(&slots[n].block, memory_order_relaxed);

        if (there <= GONE &&
            atomic_compare_exchange_strong_explicit(&slots[n].block, &there, block,
                                                    memory_order_acq_rel, memory_order_relaxed))
            return n;
    }
    return SLOTS;
}

int gt_torch_known(void *block, int64_t *bytes, size_t *allocated)
{
    uint32_t n = find((uintptr_t)block);

    if (*bytes > 0) {
        if (n == SLOTS)
            n = take((uintptr_t)block);
        if (n != SLOTS)
            slots[n].bytes = *bytes;
        *allocated =
            (size_t)(atomic_fetch_add_explicit(&total, *bytes, memory_order_relaxed) + *bytes);
        return 0;
    }
    if (n == SLOTS)
        return -1;
    *bytes = -slots[n].bytes;
    atomic_store_explicit(&slots[n].block, GONE, memory_order_release);
    *allocated = (size_t)(atomic_fetch_add_explicit(&total, *bytes, memory_order_relaxed) + *bytes);
    return 0;
}
