/* Starting the program, and standing in for it: signals in, exit status out. */
#ifndef GT_RUN_CHILD_H
#define GT_RUN_CHILD_H

#include <signal.h>
#include <sys/types.h>

struct gt_run_child {
    pid_t pid;
    int status;        /* waitpid's, once it has ended */
    sigset_t original; /* the mask we were started with */
    sigset_t awaited;
    struct sigaction old_chld;
};

/* Blocks our own signals from here on: what we print before the program starts may meet a broken
 * pipe, and a signal that comes too early is passed on later. Called first. */
void gt_run_child_prepare(struct gt_run_child *c);

/* Starts `path` with argv and env in our process group, with the signal mask and dispositions we
 * were given ourselves. Returns 0, or -errno of the exec. */
int gt_run_child_start(struct gt_run_child *c, const char *path, char *const argv[],
                       char *const env[]);

/* Waits at most wait_ms for the program's end; passes signals on meanwhile and stops when it stops.
 * Returns 1 when it has ended (c->status is set), else 0. */
int gt_run_child_wait(struct gt_run_child *c, int wait_ms);

/* Ends like the program did: returns its exit status, or dies of its signal (without a core file).
 */
int gt_run_child_leave(const struct gt_run_child *c);

#endif
