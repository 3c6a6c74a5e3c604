/* See lines_scopes.h. */
#include "report/lines_scopes.h"
#include "report/mem.h"
#include <stdlib.h>

/* Hostile files declare functions within themselves. */
#define MAX_SCOPES 64u

uint32_t gt_scopes_enter(struct gt_scopes *s, uint32_t parent, const char *name,
                         const void *declared)
{
    gt_mem_grow(&s->scopes, &s->scope_room, s->scope_count, sizeof *s->scopes);
    s->scopes[s->scope_count++] = (struct gt_scope_name){name, parent, declared};
    return (uint32_t)s->scope_count;
}

void gt_scopes_place(struct gt_scopes *s, const void *at, uint32_t scope)
{
    gt_mem_grow(&s->places, &s->place_room, s->place_count, sizeof *s->places);
    s->places[s->place_count++] = (struct gt_scope_place){at, scope};
}

static int by_place(const void *pa, const void *pb)
{
    const struct gt_scope_place *a = pa, *b = pb;
    return (const char *)a->at < (const char *)b->at ? -1
                                                     : (const char *)a->at > (const char *)b->at;
}

static const struct gt_scope_place *place(const struct gt_scopes *s, const void *at)
{
    struct gt_scope_place want = {.at = at};
    return s->place_count ? bsearch(&want, s->places, s->place_count, sizeof want, by_place) : NULL;
}

char *gt_scopes_name(const struct gt_scopes *s, const void *at, const char *name)
{
    const struct gt_scope_place *found = place(s, at);
    uint32_t scope = found ? found->scope : 0;
    char *whole = NULL;
    for (unsigned n = 0; scope && n < MAX_SCOPES; n++) {
        const struct gt_scope_name *in = &s->scopes[scope - 1];
        char *more = gt_mem_format("%s::%s", in->name, whole ? whole : name);
        free(whole);
        whole = more;
        found = in->declared ? place(s, in->declared) : NULL;
        scope = found ? found->scope : in->parent;
    }
    return whole;
}

void gt_scopes_free(struct gt_scopes *s)
{
    free(s->scopes);
    free(s->places);
}
