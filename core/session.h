/* The session: memory that everything recorded lives in, and its file. See layout.h for the format.
 *
 * Threads: gt_session_open runs on one thread (the phase word in gt_fork sees to it); the
 * allocators run on any thread and are lock-free. */
#ifndef GT_SESSION_H
#define GT_SESSION_H

#include <stddef.h>
#include "core/core.h"

struct gt_session {
    char *base;               /* the mapping; NULL: none */
    struct gt_header *header; /* == base */
    uint64_t size_bytes;
    _Atomic uint64_t ready_bytes; /* [0, ready) has memory behind it */
    _Atomic int64_t budget_bytes; /* what is left of GPUTALLY_MEMORY, file and private together */
    uint32_t generation;          /* never 0 */
    uint32_t pid;                 /* the process that opened it; gt_fork.phase is NONE in a child */
    int reopen_fd;                /* kernels before 5.14: growing goes through fallocate; else -1 */
    uint32_t sequence;            /* first free number in the names of this process's sessions */
    char prefix[512];             /* path up to the sequence number */
    char path[560];               /* "" when it lives in private memory */
};
extern struct gt_session gt_session GT_HIDDEN;

/* Makes a session for this process. Returns 0 or -errno; where no file is possible it lives in
 * private memory and says so once. */
int gt_session_open(void);

/* Looks whether this very process (pid and start time) has left sessions before an exec, marks them
 * GT_STATE_EXEC, and sets gt_session.sequence to the first free number. Returns 0, or -EALREADY:
 * the session of this very image is there, so another copy of the library records already. */
int gt_session_find_older(void);

/* Path of this process's session number `sequence`. */
void gt_session_path(uint32_t sequence, char *path, size_t bytes);

/* Zeroed memory in the file, 8-aligned (64-aligned from 64 bytes on), never freed. NULL when the
 * memory is used up; then header->memory_full is set. The last 1/16 is for threads that have no
 * slot yet, if it will do for one. *ref gets its place. Any thread. */
void *gt_session_alloc(size_t bytes, gt_ref *ref);

/* Zeroed private memory on the same budget, 64-aligned, for what readers need not see; whole pages
 * less 64 bytes. Any thread. */
void *gt_private_alloc(size_t bytes);
/* The same for what somebody else may go on using in the child of a fork: it stays there. */
void *gt_private_lasting(size_t bytes);
/* In the child of a fork: takes what the parent had allocated off the books and returns it, to be
 * given back with gt_private_free once nobody looks at it any more; `but` is the start of one
 * allocation to keep, or NULL. */
void *gt_private_forget(void);
void gt_private_free(void *list, const void *but);

static inline void *gt_session_at(gt_ref ref)
{
    return gt_session.base + (uint64_t)ref * GT_ALIGN;
}

/* Text of a gt_str; NULL for 0. */
static inline const char *gt_session_text(gt_ref ref)
{
    return ref ? ((const struct gt_str *)gt_session_at(ref))->text : NULL;
}

/* 1 if more than half of the memory will be left after `bytes` more in the file: for what is nice
 * to have (rings). */
int gt_session_roomy(size_t bytes);

/* gt_session_alloc, if it is roomy. */
void *gt_session_alloc_roomy(size_t bytes, gt_ref *ref);

#endif
