/* The environment that `run` gives to the program. */
#ifndef GT_RUN_ENV_H
#define GT_RUN_ENV_H

#include <stddef.h>

/* A NULL-terminated copy of an environment; the strings it did not change are borrowed. */
struct gt_run_env {
    char **v;
    size_t count;
    char **owned; /* the strings it made */
    size_t owned_count;
};

/* Copies the array. Returns 0 or -ENOMEM. The caller frees with gt_run_env_free. */
int gt_run_env_init(struct gt_run_env *e, char *const from[]);
void gt_run_env_free(struct gt_run_env *e);
/* Sets or replaces; keeps the place of a variable that is there. Returns 0 or -ENOMEM. */
int gt_run_env_set(struct gt_run_env *e, const char *name, const char *value);
/* Value of the first such variable, or NULL. Valid until it is set again or freed. */
const char *gt_run_env_get(const struct gt_run_env *e, const char *name);

#endif
