/* Sizes of an operator's inputs as text. Pure but for the freeing. */
#ifndef GT_TORCH_SHAPES_H
#define GT_TORCH_SHAPES_H

#include "abi/torch.h"

/* Operators have under 20 inputs of at most a few dimensions; cat and its like show one `[]`. */
#define GT_TORCH_SHAPES_BYTES 2048

/* Writes "[[2, 3], []]" to out[GT_TORCH_SHAPES_BYTES], as Python prints the list. Returns `out`, or
 * NULL if it does not fit: half a list would be another list. */
const char *gt_torch_shapes(char *out, const struct gt_torch_sizes *sizes);

/* Frees what inputSizes returned. */
void gt_torch_shapes_free(struct gt_torch_sizes *sizes);

#endif
