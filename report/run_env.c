/* The program's environment: ours with a few variables set, in the same order. Used by `run`, which
 * must not change its own (the reports it makes read TMPDIR and others). */
#include "report/run_env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gt_run_env_init(struct gt_run_env *e, char *const from[])
{
    memset(e, 0, sizeof *e);
    while (from[e->count])
        e->count++;
    e->v = malloc((e->count + 1) * sizeof *e->v);
    if (!e->v)
        return -ENOMEM;
    memcpy(e->v, from, (e->count + 1) * sizeof *e->v);
    return 0;
}

void gt_run_env_free(struct gt_run_env *e)
{
    for (size_t i = 0; i < e->owned_count; i++)
        free(e->owned[i]);
    free(e->owned);
    free(e->v);
    memset(e, 0, sizeof *e);
}

static char **slot(const struct gt_run_env *e, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < e->count; i++)
        if (!strncmp(e->v[i], name, len) && e->v[i][len] == '=')
            return &e->v[i];
    return NULL;
}

int gt_run_env_set(struct gt_run_env *e, const char *name, const char *value)
{
    char **at = slot(e, name), **grown, *text;

    grown = realloc(e->owned, (e->owned_count + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    e->owned = grown;
    if (asprintf(&text, "%s=%s", name, value) < 0)
        return -ENOMEM;
    e->owned[e->owned_count++] = text;
    if (!at) {
        grown = realloc(e->v, (e->count + 2) * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        e->v = grown;
        at = &e->v[e->count++];
        e->v[e->count] = NULL;
    }
    *at = text;
    return 0;
}

const char *gt_run_env_get(const struct gt_run_env *e, const char *name)
{
    char **at = slot(e, name);

    return at ? *at + strlen(name) + 1 : NULL;
}
