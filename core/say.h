/* Our words on the host's stderr: only while fd 2 still is the file it was at the start, and only
 * as loud as GPUTALLY_LOG allows. Any thread; no stdio. */
#ifndef GT_SAY_H
#define GT_SAY_H

/* Remembers what fd 2 is. Called once by the constructor. */
void gt_say_init(void);
/* 1 while fd 2 is that same file. */
int gt_say_possible(void);

enum gt_say_level { GT_SAY_WARNING = 1, GT_SAY_NOTE = 2 };
/* Writes "gputally: " and the given strings as one line with one write(2). */
#define gt_say(level, ...) gt_say_list(level, (const char *const[]){__VA_ARGS__, 0})
void gt_say_list(enum gt_say_level level, const char *const *texts);

#endif
