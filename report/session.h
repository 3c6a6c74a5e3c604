/* A session file (or any input) in private memory, and what its header tells about its process.
 * Used by load.c, finish.c and the commands. Single thread. */
#ifndef GT_REPORT_SESSION_H
#define GT_REPORT_SESSION_H

#include <stddef.h>
#include "core/layout.h"
#include "report/err.h"

/* A copy: a file that is cut or rewritten while we read can't hurt. */
struct gt_input {
    const char *path; /* borrowed */
    unsigned char *data;
    size_t bytes, mapped; /* mapped: 0 if the data came from a pipe (malloc) */
    int fd;               /* still open for second looks at a living process; -1: a pipe, or "-" */
};

/* Reads all of `path` ("-": standard input) but its holes. Returns 0 or -errno with *e set. */
int gt_input_read(struct gt_input *in, const char *path, struct gt_err *e);
void gt_input_free(struct gt_input *in);
/* 1 if it begins like a session. */
int gt_input_is_session(const struct gt_input *in);
/* The header, once it is known to be one that we can read; NULL with *e set. */
const struct gt_header *gt_input_header(const struct gt_input *in, struct gt_err *e);
/* `bytes` bytes at `ref`, NULL if they are not all inside the file. */
const void *gt_input_at(const struct gt_input *in, gt_ref ref, size_t bytes);

/* Reads only the header. Returns 0 or -errno with *e set. */
int gt_session_header(const char *path, struct gt_header *h, struct gt_err *e);

enum gt_life { GT_LIFE_DEAD, GT_LIFE_ALIVE, GT_LIFE_UNKNOWN /* another pid namespace */ };
enum gt_life gt_session_life(const struct gt_header *h);
/* Likewise, by the name of its file: a process that dies in the first instant of its session leaves
 * one without a header. UNKNOWN too where it is no session's name. */
enum gt_life gt_session_life_by_name(const char *path);
/* 1 if nothing was written into it yet, not even the magic. */
int gt_session_is_blank(const char *path);
int gt_session_same_boot(const struct gt_header *h);
/* This boot's id, "" if it can't be read. */
void gt_session_this_boot(char *id, size_t room);
/* 1 if a session of the same process with a higher sequence lies beside `path`: it called exec. */
int gt_session_followed(const char *path, const struct gt_header *h);
/* Bytes of the name of `path` that all sessions of its process share; 0 if it is no session name.
 */
size_t gt_session_stem(const char *path, unsigned long *sequence);
/* 1 if messages about this session may go to stderr. */
int gt_session_may_print(const struct gt_header *h);

/* For the parent of process `pid`, at once when it has reaped it: if the session at `path` is that
 * process's and was not closed in order, its open ranges will count up to now. */
void gt_session_died(const char *path, unsigned pid);

/* Makes this process the one that turns the session into a report: 0, -EBUSY (another living
 * gputally does), or -errno. A claim of a dead process is taken over. The claim ends with the file,
 * with our process, or by gt_session_release. */
int gt_session_claim(const char *path, struct gt_err *e);
void gt_session_release(const char *path);

/* (ticks, CLOCK_MONOTONIC_RAW) now. Returns 0, or -ENOTSUP for a clock that this machine lacks. */
int gt_clock_point(uint32_t clock, struct gt_pair *pair);

#endif
