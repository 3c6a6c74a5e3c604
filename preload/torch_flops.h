/* Floating-point operations of a call, as PyTorch counts them. */
#ifndef GT_TORCH_FLOPS_H
#define GT_TORCH_FLOPS_H

#include "torch_inputs.h"

/* From the input sizes alone:
 *   aten::mm, aten::addmm, aten::bmm, aten::baddbmm   2 * elements of the first matrix * columns of
 *                                                     the second
 *   aten::add, aten::mul                              elements of the first input
 * 0 for every other operator, and where the inputs are no matrices that fit. Pure. */
uint64_t gt_torch_flops_of(const char *name, const struct gt_torch_inputs *in);

/* The same, and aten::conv2d by PyTorch's own function, where this version has what is needed. */
uint64_t gt_torch_flops(const struct gt_torch_rf *rf, const char *name,
                        const struct gt_torch_inputs *in);

#endif
