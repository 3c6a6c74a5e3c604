/* Which namespaces and classes a function of the debug information is in. What GCC inlines of
 * static functions, of those in unnamed namespaces and of lambdas has no linkage name, which would
 * say it. Filled and used by lines.c, one for a unit; single thread. */
#ifndef GT_LINES_SCOPES_H
#define GT_LINES_SCOPES_H

#include <stddef.h>
#include <stdint.h>

struct gt_scopes {
    struct gt_scope_name {
        const char *name; /* borrowed until gt_scopes_free */
        uint32_t parent;
        const void *declared; /* a function that is declared elsewhere: its parent is there */
    } * scopes;
    size_t scope_count, scope_room;
    struct gt_scope_place {
        const void *at;
        uint32_t scope;
    } * places; /* functions, by their place in the section */
    size_t place_count, place_room;
};

/* A scope in the scope `parent` (0: in none); its number. */
uint32_t gt_scopes_enter(struct gt_scopes *s, uint32_t parent, const char *name,
                         const void *declared);
/* A function in a scope. They come in the order of the section. */
void gt_scopes_place(struct gt_scopes *s, const void *at, uint32_t scope);
/* "outer::inner::NAME"; NULL: no such function, or it is in no scope. The caller frees. */
char *gt_scopes_name(const struct gt_scopes *s, const void *at, const char *name);
void gt_scopes_free(struct gt_scopes *s);

#endif
