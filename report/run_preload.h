/* What `run` puts into LD_PRELOAD. */
#ifndef GT_RUN_PRELOAD_H
#define GT_RUN_PRELOAD_H

#include <limits.h>
#include "report/err.h"
#include "report/run_env.h"

/* Absolute path of this executable. Returns 0 or -errno. */
int gt_run_own_path(char out[PATH_MAX]);
/* Absolute path of libgputally.so: beside this executable, in ../lib/gputally or ../lib.
 * Returns 0, or -ENOENT with *err told. */
int gt_run_find_library(char out[PATH_MAX], struct gt_err *err);

/* LD_PRELOAD splits at blanks and colons and has no quoting. If the path `library` has one, makes a
 * link to its folder in `folder` (NULL: none) and writes the path through that to out, else copies.
 * Returns 0 or -errno with *err told. */
#define GT_RUN_LINK "lib"
int gt_run_plain_path(const char *library, const char *folder, char out[PATH_MAX],
                      struct gt_err *err);

/* Path of the shared library `name` as the dynamic linker would find it for the program `path` in
 * the environment e. Asks the dynamic linker, which does not start the program. Returns 0 or
 * -errno. */
int gt_run_resolve(const char *path, const char *name, const struct gt_run_env *e,
                   char out[PATH_MAX]);

/* Path of the sanitizer runtime that `library` itself was built with, "" if none. */
void gt_run_library_sanitizer(const char *library, const struct gt_run_env *e, char out[PATH_MAX]);

/* Sets LD_PRELOAD in e: sanitizer runtimes (`sanitizer`, "" for none, and those the user has),
 * then `library`, then what else the user has. Returns 0 or -ENOMEM. */
int gt_run_set_preload(struct gt_run_env *e, const char *library, const char *sanitizer);

#endif
