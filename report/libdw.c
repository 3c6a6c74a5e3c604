/* See libdw.h. */
#include "report/libdw.h"
#include <dlfcn.h>
#include <string.h>

const struct gt_libdw *gt_libdw(void)
{
    /* in the order of struct gt_libdw */
    static const char *const names[] = {
        "dwarf_begin",       "dwarf_end",         "dwarf_get_units",      "dwarf_ranges",
        "dwarf_child",       "dwarf_siblingof",   "dwarf_haspc",          "dwarf_tag",
        "dwarf_diename",     "dwarf_attr",        "dwarf_attr_integrate", "dwarf_formstring",
        "dwarf_formref_die", "dwarf_formudata",   "dwarf_getsrc_die",     "dwarf_linesrc",
        "dwarf_lineno",      "dwarf_getsrcfiles", "dwarf_filesrc"};
    static struct gt_libdw dw;
    static int state; /* 0: not looked for yet, 1: here, -1: not */
    void *found[sizeof names / sizeof *names], *library;
    _Static_assert(sizeof found == sizeof dw, "a name for each function");
    if (state)
        return state > 0 ? &dw : NULL;
    state = -1;
    library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < sizeof names / sizeof *names; i++)
        if (!(found[i] = dlsym(library, names[i])))
            return NULL;
    if (!library)
        return NULL;
    memcpy(&dw, found, sizeof dw);
    state = 1;
    return &dw;
}
