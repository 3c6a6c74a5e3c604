/* From session to report: the one way, used by `run`, `finish` and `recover`. */
#ifndef GT_FINISH_H
#define GT_FINISH_H

#include <stddef.h>
#include "report/err.h"

struct gt_finish_options {
    int keep_session; /* do not delete the session file when all outputs are written */
    int hold_table;   /* give the table back in the result instead of printing it to stderr */
    int quiet;        /* errors only */
    int snapshot; /* a report of the process as it is now, in files of its own: nothing is claimed,
                     nothing deleted. One that has ended is left to the real one: no file */
    int merge;    /* with snapshot: -EALREADY if another such one waits for its turn */
    unsigned number; /* files have this number or a later one: 0, none if it is free */
    int dead;        /* the user says so of a process that can't be judged from here */
};

struct gt_finish_result {
    int recorded;   /* 0: nothing was recorded, no file was made, the session is deleted */
    double self_ns; /* sum of the self time of all rows */
    unsigned pid;
    int ended;     /* enum gt_ended of model.h */
    int shapes;    /* some calls have input shapes */
    char *program; /* base name of the executable */
    char *table;   /* hold_table: text of the `table` output, NULL if it was not asked for */
    char *note;    /* a line about why nothing was recorded, NULL if there is nothing to say */
    char *files;   /* outputs that were written, one path a line, "" if none */
};

/* Reads the session at `path` ("-": from standard input), writes every output its configuration
 * asks for (each to a temporary file beside its place, then renamed), prints the table to stderr
 * and a last line that names the file and the next command, and deletes the session.
 * A session of a living process is refused (-EBUSY) unless it ended in order; one that another
 * living `gputally` is working on likewise; one whose last worker died is taken over.
 * Returns 0; -ENODATA for a file that is no session, is damaged, or of a newer version; else
 * -errno. On failure *e says why, the session is left as it was, and no output is half-written. The
 * caller frees *out with gt_finish_result_free whatever was returned. */
int gt_finish_session(const char *path, const struct gt_finish_options *o,
                      struct gt_finish_result *out, struct gt_err *e);
void gt_finish_result_free(struct gt_finish_result *r);

/* What a session file tells about its process without being loaded; for `run`, `recover`. */
struct gt_session_info {
    unsigned pid;
    unsigned long long start_time;
    int ended;   /* closed in order */
    int alive;   /* its process lives (same pid, start time, boot and pid namespace) */
    int foreign; /* another boot, or a pid namespace we can't judge from here */
};
/* Returns 0 or -errno (-ENODATA: not a session). */
int gt_session_info(const char *path, struct gt_session_info *i, struct gt_err *e);

#endif
