/* The blocks of main memory that the program's own profiler knows: those that were allocated while
 * it ran with profile_memory. Without us PyTorch reports the release of no others. */
#ifndef GT_TORCH_KNOWN_H
#define GT_TORCH_KNOWN_H

#include <stddef.h>
#include <stdint.h>

/* An allocation (bytes > 0) or a release that PyTorch reports while the program's profiler runs.
 * Returns 0 and sets *bytes and *allocated to what PyTorch would have told without us; -1 if it
 * would have told nothing. Lock-free; calls for one block never overlap. */
int gt_torch_known(void *block, int64_t *bytes, size_t *allocated);

#endif
