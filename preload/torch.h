/* What other sources must know of PyTorch's callback. */
#ifndef GT_TORCH_H
#define GT_TORCH_H

/* 1 while PyTorch's operators reach us by its own callback: what PyTorch says of them to NVTX or
 * ITT is the same once more. Weak: NULL where this library has no such callback. */
__attribute__((weak, visibility("hidden"))) int gt_torch_live(void);

#endif
