/* Sizes of an operator's inputs as text. Pure. */
#ifndef GT_TORCH_SHAPES_H
#define GT_TORCH_SHAPES_H

#include "torch_inputs.h"

#define GT_TORCH_SHAPES_BYTES 2048

/* Writes "[[2, 3], []]" to out[GT_TORCH_SHAPES_BYTES], as Python prints the list. Returns `out`, or
 * NULL if it does not fit: half a list would be another list. */
const char *gt_torch_shapes(char *out, const struct gt_torch_inputs *in);

#endif
