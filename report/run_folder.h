/* The private folder of one `gputally run`: the programs put their sessions there, we take them out
 * as reports. Single-threaded. */
#ifndef GT_RUN_FOLDER_H
#define GT_RUN_FOLDER_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

struct gt_run_folder {
    char path[PATH_MAX]; /* "" if none could be made */
    int quiet;
    int closed;
    pid_t program_pid; /* 0 once it was reaped: until then its session waits to be told when it died
                        */
    pid_t first_pid;   /* the same, also afterwards: the name without a number is kept for it */
    /* reports so far; the table of the process with the most self time */
    double best_ns;
    char *table, *program;
    unsigned pid;
    int ended;  /* enum gt_ended */
    int shapes; /* as in struct gt_finish_result */
    char *best_files;
    char *note;        /* the first line about why a process recorded nothing */
    char *other_files; /* one path a line */
    size_t reports;
    size_t failed, living;
    /* sessions that could not be finished: told once, not tried again */
    char **bad;
    size_t bad_count;
};

/* Makes gputally-run-UID-PID-XXXXXX (0700) in the first of `wanted` ("" or NULL: none), /dev/shm,
 * `tmpdir` and /tmp that takes it. Says so if `wanted` can't be used. Returns 0, or -errno with
 * path "". */
int gt_run_folder_make(struct gt_run_folder *f, const char *wanted, const char *tmpdir);

/* The program itself has just been reaped: what it left open ended now. Before the next sweep. */
void gt_run_folder_died(struct gt_run_folder *f, pid_t pid);

/* Turns the sessions of processes that have ended into reports. Never touches a living one's. */
void gt_run_folder_sweep(struct gt_run_folder *f);

/* Tells processes that are still to end that nobody waits for them any more, sweeps for the last
 * time, and removes the folder if nothing is left in it. */
void gt_run_folder_close(struct gt_run_folder *f);

/* For whoever finished `session` instead of `run`: takes its folder away if it was the last one in
 * it and `run` has gone. Does nothing for any other folder. */
void gt_run_folder_left(const char *session);

/* 1 if the `run` of that folder lives, 0 if it is gone, -1 if it is no folder of a `run`. */
int gt_run_folder_lives(const char *folder);

/* The folder of a `run` that was killed: closes it in its place. Returns 1 if that `run` lives. */
int gt_run_folder_owned(const char *folder);

/* Prints what was made: the table, a line for each other file, the last line. To stderr. */
void gt_run_folder_print(const struct gt_run_folder *f);

void gt_run_folder_free(struct gt_run_folder *f);

#endif
