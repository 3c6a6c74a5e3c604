/* When recording is on: GPUTALLY_WINDOW. The window opens and shuts for the whole process; a pause
 * of the program's own is kept apart (gt_pause). While it is shut everything takes the slow path
 * and is opened silently, as while paused.
 *
 * What is outside never counts: a range that was open when the window opened does not count, one
 * that is open when it shuts counts up to then. For that each thread looks, when it comes in by
 * the slow path, whether the window was shut since its last call (gt_window_follow); a window that
 * opens again gives everybody a new number to come in by, so nobody misses it. */
#ifndef GT_WINDOW_H
#define GT_WINDOW_H

#include "core/thread.h"

/* Open while > 0. With range=NAME, how many of its ranges are open. */
extern _Atomic int gt_window_open GT_HIDDEN;
/* What gt_fork.go is while recording is on; each thread's door when it is outside. */
extern _Atomic uint32_t gt_window_pass GT_HIDDEN;

/* Once, in gt_core_init: before anything records. */
void gt_window_init(void);
/* A session begins, on the one thread that makes it; `child`: of a fork. */
void gt_window_session(int child);
/* gt_window_open was changed, or a session is open now: opens or shuts, on whatever thread. Where
 * two come at once one does the work of both. `tick`: when it was, 0: now. */
void gt_window_update(uint64_t tick);

/* Opens or shuts it if that time has come. */
void gt_window_look(void);
/* The thread's open ranges end where the window was shut since it was last here. */
void gt_window_follow(struct gt_thread *t);
/* When the window was shut that a range begun in window number n belongs to. */
uint64_t gt_window_end(uint32_t n);

/* A range is about to be opened. Is it one of range=NAME? */
enum gt_step {
    GT_STEP_NONE,
    GT_STEP_IN,  /* one to record: the window is open now */
    GT_STEP_OUT, /* one that does not count */
};
enum gt_step gt_window_step(const struct gt_thread *t, gt_tag tag, const char *name);
/* It was opened as t->top; or it could not be (`level` < 0). */
void gt_window_step_open(struct gt_thread *t, enum gt_step step, int level);
/* The frame with these flags has been closed. */
void gt_window_step_closed(struct gt_thread *t, uint32_t flags, uint64_t now);
/* 1 if range=NAME names it. */
int gt_window_is_step(gt_tag tag, const char *name, size_t n);

/* gt_resume was called and no pause is left. */
void gt_window_resumed(void);
/* The program's own torch.profiler starts or stops. Any thread. */
void gt_window_torch(int running);

#endif
