/* The program's own torch.profiler has started or is about to stop (GPUTALLY_WINDOW=torch). */
#ifndef GT_PRELOAD_WINDOW_H
#define GT_PRELOAD_WINDOW_H

/* Weak: does nothing while nobody defines it. */
void gt_window_torch(int running) __attribute__((weak, visibility("hidden")));

#endif
