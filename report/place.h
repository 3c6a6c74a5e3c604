/* Where output files go: the pattern of GPUTALLY_OUTPUT, and files that appear whole or not at all
 * and never take another one's name. Used by finish.c and cmd_report.c; single thread. */
#ifndef GT_PLACE_H
#define GT_PLACE_H

#include <stddef.h>
#include <stdint.h>
#include "report/err.h"

/* What a pattern may name. Strings are borrowed. */
struct gt_place {
    const char *pattern; /* %p %h %e %t %n %%; other %x stay as they are */
    const char *cwd;     /* relative patterns start here */
    const char *host, *exe;
    int64_t pid, start_unix_ns;
    int snapshot; /* `.snapshot-N` comes before the extension, and N is the only number */
};

/* The file's name with number n: where the pattern has no %n, n > 0 adds "-n". A pattern that ends
 * in `/` or names a folder gets the default name inside; one that ends in the extension does not
 * get it twice. The caller frees it. */
char *gt_place_path(const struct gt_place *p, const char *extension, unsigned n);

/* Whether files of that pattern can be made: its folder, or the one that it will be made in, takes
 * some. What only the process itself tells (%e, %p) is not looked at. Returns 0, or -errno with *e
 * set. */
int gt_place_check(const char *pattern, struct gt_err *e);

/* A file about to appear. */
struct gt_output {
    const char *extension;
    const char *data;
    size_t bytes;
    size_t head; /* a file whose first `head` bytes are these is the same report, to be replaced; 0:
                    only one with the same contents is */
};

/* Writes `o` to the first name from number *n on that is free or holds the same report; *n becomes
 * its number, *path its name (the caller frees it). Makes missing folders. Returns 0, or -errno
 * with *e set and nothing changed but perhaps folders made. `tag` tells our temporary files from
 * others': one left by a killed gputally with the same tag is removed. */
int gt_place_put(const struct gt_place *p, const struct gt_output *o, const char *tag, unsigned *n,
                 char **path, struct gt_err *e);

/* Writes `path` itself. Unless `force`, -EEXIST if it exists. */
int gt_place_put_file(const char *path, const char *data, size_t bytes, int force,
                      struct gt_err *e);

#endif
