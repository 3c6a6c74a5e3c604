/* Times of what a device did from pairs of events, where CUPTI does not work: one event before and
 * one after each launch, copy and set, in its stream. Such rows are "legacy", as PyTorch calls
 * them: what ran beside it in the stream's time is in it. Any thread of the program's. */
#ifndef GT_CUDA_EVENTS_H
#define GT_CUDA_EVENTS_H

#include <stdatomic.h>
#include <stdint.h>
#include "abi/cuda.h"

struct gt_cuda_info;

/* 1: pairs are taken. Set once, after the first cuInit. */
extern atomic_int gt_cuda_events __attribute__((visibility("hidden")));

/* CUDA is ready: decides where times come from. After a cuInit that succeeded. */
void gt_cuda_started(void);

/* What is launched. */
struct gt_cuda_kernel {
    CUfunction function; /* NULL: no kernel, or not one */
    unsigned grid[3], block[3], shared;
};

static inline struct gt_cuda_kernel gt_cuda_kernel(CUfunction f, unsigned gx, unsigned gy,
                                                   unsigned gz, unsigned bx, unsigned by,
                                                   unsigned bz, unsigned shared)
{
    return (struct gt_cuda_kernel){f, {gx, gy, gz}, {bx, by, bz}, shared};
}

static inline struct gt_cuda_kernel gt_cuda_kernel_ex(const CUlaunchConfig *c, CUfunction f)
{
    return c ? gt_cuda_kernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
                              c->blockDimZ, c->sharedMemBytes)
             : gt_cuda_kernel(f, 0, 0, 0, 0, 0, 0, 0);
}

/* One call between its two events. */
struct gt_cuda_pair {
    CUevent start, end; /* end NULL: could not be timed */
    CUcontext context;
};
/* Before the call. 0: it is not to be timed (the stream is being captured, nothing is recorded
 * now); else gt_cuda_pair_end must follow. */
int gt_cuda_pair_begin(struct gt_cuda_pair *p, CUstream stream);
/* After it, while its range is still open. */
void gt_cuda_pair_end(struct gt_cuda_pair *p, CUstream stream, const struct gt_cuda_info *info,
                      unsigned result, uint64_t bytes, const struct gt_cuda_kernel *kernel);

/* Counts what has ended; asks, never waits. Before contexts go, and at the end: `last` tells what
 * is left as unfinished. */
void gt_cuda_events_collect(int last);

/* A context may be about to go, and takes its events along: counts what has ended, for which it
 * waits a tenth of a second at the most, and gives the events back. */
void gt_cuda_events_let_go(void);

#endif
