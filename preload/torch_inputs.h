/* Sizes of an operator's inputs, on the thread that runs it, in its start callback. */
#ifndef GT_TORCH_INPUTS_H
#define GT_TORCH_INPUTS_H

#include <stddef.h>
#include "abi/torch.h"

/* Operators have under 20 inputs. */
#define GT_TORCH_INPUTS 64

struct gt_torch_view {
    const int64_t *dims; /* `count` sizes; NULL for what is no tensor, or one that does not tell */
    size_t count;
};
struct gt_torch_inputs {
    size_t count;
    int plain;                   /* 1: no tensor whose sizes a function of its own tells */
    struct gt_torch_sizes owner; /* what the views point into, where PyTorch made it */
    struct gt_torch_view views[GT_TORCH_INPUTS];
};

/* Fills *in; views are valid until gt_torch_inputs_free, which must follow, and as long as the
 * operator's start callback runs. Returns 0, or -1 if the sizes can't be told. A nested or symbolic
 * tensor has an empty view, as in PyTorch's own profiler. */
int gt_torch_inputs_read(const struct gt_torch_rf *rf, struct gt_torch_inputs *in);
void gt_torch_inputs_free(struct gt_torch_inputs *in);

/* Learns where sizes lie in this copy of PyTorch. Once, before the first call of the above. */
void gt_torch_inputs_init(void);

#endif
