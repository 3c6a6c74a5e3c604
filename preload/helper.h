/* Runs our command line tool for the host: the end of the process, snapshots. Takes no lock and
 * calls no malloc: it may be in a signal handler. */
#ifndef GT_HELPER_H
#define GT_HELPER_H

#include <signal.h>

/* One at a time in each: the children write here through the shared memory. */
struct gt_helper {
    char cli[4200];
    char *argv[10];  /* [0] is cli */
    int from_memory; /* the session has no file: its bytes go to the helper's stdin */
    int mute;        /* fd 2 is another file than at the start */
    int wait;        /* until it has ended; else only until it runs */
    int status;      /* its exit status; 127: it could not be run */
    int pipe[2];
    sigset_t mask; /* of the caller */
    char stack[64 * 1024] __attribute__((aligned(64)));
    char helper_stack[16 * 1024] __attribute__((aligned(64)));
};

/* In the constructor: what the helper may see of the environment, where it will be looked for. */
void gt_helper_init(void);
/* Sets job->cli. Returns 0 or -errno. */
int gt_helper_find(struct gt_helper *job);
/* Runs it. All signals are blocked afterwards: gt_helper_unblock, or leave them so. */
void gt_helper_run(struct gt_helper *job);
void gt_helper_unblock(const struct gt_helper *job);

#endif
