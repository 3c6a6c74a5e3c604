/* Who this process is: what names its session file and lets a reader tell it from a later process
 * with the same pid. Read from /proc; zero or "" where there is none. */
#ifndef GT_IDENT_H
#define GT_IDENT_H

#include <stddef.h>
#include <stdint.h>

struct gt_ident {
    uint32_t pid, ppid, uid;
    uint64_t start_time; /* field 22 of /proc/self/stat; the same after exec */
    uint64_t pid_ns;     /* inode of the pid namespace */
    char boot_id[40];
};

void gt_ident_read(struct gt_ident *id);

/* Copies the executable's path; returns its length, 0 if unknown. */
size_t gt_ident_exe(char *buf, size_t bytes);

#endif
