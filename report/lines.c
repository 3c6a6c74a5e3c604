/* gt_lines_at of symbols.h: where in the source an address is, by libdw.
 *
 * libdw's own way from an address to its scopes walks through all of a compilation unit each time:
 * seconds for 10,000 addresses of a large library. So units are found by a table of ours (not every
 * compiler writes .debug_aranges), and a unit's functions are listed when it is first asked for. */
#include "report/libdw.h"
#include "report/lines_scopes.h"
#include "report/mem.h"
#include "report/symbols_inner.h"
#include "report/symbols_name.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Hostile files go in circles, and deep. */
#define MAX_DEPTH 64
#define MAX_INLINED 256u
#define MAX_RANGES (1u << 20)
#define MAX_STEPS (1u << 26)
#define MAX_REFERENCES 8

struct range {
    uint64_t start, end;
    size_t index; /* of a unit, or of a unit's function */
};

struct ranges {
    struct range *all;
    size_t count, room;
};

struct unit {
    struct gt_dw_die die;  /* has the lines */
    struct gt_dw_die tree; /* has the functions: another one with split debug information */
    int listed;
    struct gt_dw_die *functions;
    size_t function_count, function_room;
    struct ranges ranges; /* of its functions */
    struct gt_scopes scopes;
};

struct gt_lines {
    const struct gt_libdw *dw;
    struct gt_dw *file;
    int fd;
    uint64_t shift; /* address in the module minus address in the debug information */
    char *why;
    struct unit *units;
    size_t unit_count, unit_room;
    struct ranges ranges; /* of units */
    unsigned steps;       /* left */
    struct gt_line *out;
};

static int by_start(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void sort(struct ranges *r)
{
    if (r->count)
        qsort(r->all, r->count, sizeof *r->all, by_start);
}

/* Adds what a unit or function covers. */
static void add_ranges(struct gt_lines *l, struct ranges *to, struct gt_dw_die *die, size_t index)
{
    uint64_t base, start, end;
    ptrdiff_t at = 0;
    for (unsigned n = 0; n < MAX_RANGES; n++) {
        at = l->dw->ranges(die, at, &base, &start, &end);
        if (at <= 0)
            return;
        /* what the linker left out lies at 0 */
        if (!start || end <= start)
            continue;
        gt_mem_grow(&to->all, &to->room, to->count, sizeof *to->all);
        to->all[to->count++] = (struct range){start, end, index};
    }
}

/* The last one that starts before the address and reaches it: 0 or -1. Those that overlap others
 * are few; no further back than 64. */
static int find(const struct ranges *r, uint64_t address, size_t *index)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (r->all[mid].start <= address)
            low = mid + 1;
        else
            high = mid;
    }
    for (size_t i = low; i && low - i < 64; i--)
        if (address < r->all[i - 1].end) {
            *index = r->all[i - 1].index;
            return 0;
        }
    return -1;
}

/* The die behind, in the file too: 1. */
static int next_die(struct gt_lines *l, struct gt_dw_die *die)
{
    struct gt_dw_die next;
    if (!l->steps || l->dw->siblingof(die, &next) || (char *)next.at <= (char *)die->at)
        return 0;
    l->steps--;
    *die = next;
    return 1;
}

/* Where a function is declared: where its abstract instance, and then that one's specification, is.
 * 1: not at the die itself. */
static int declaration(const struct gt_lines *l, const struct gt_dw_die *function,
                       struct gt_dw_die *to)
{
    struct gt_dw_die next;
    struct gt_dw_attribute a;
    int i;
    *to = *function;
    for (i = 0; i < MAX_REFERENCES; i++) {
        if ((!l->dw->attr(to, GT_DW_ABSTRACT_ORIGIN, &a) &&
             !l->dw->attr(to, GT_DW_SPECIFICATION, &a)) ||
            !l->dw->formref_die(&a, &next))
            break;
        *to = next;
    }
    return i > 0;
}

/* The scope that a die is for what is in it. */
static uint32_t enter(struct gt_lines *l, struct unit *u, struct gt_dw_die *die, uint32_t scope)
{
    const char *name = l->dw->diename(die);
    int tag = l->dw->tag(die);
    struct gt_dw_die declared;
    if (!name)
        name = tag == GT_DW_NAMESPACE ? "(anonymous namespace)" : "{unnamed type}";
    return gt_scopes_enter(&u->scopes, scope, name,
                           tag == GT_DW_FUNCTION && declaration(l, die, &declared) ? declared.at
                                                                                   : NULL);
}

/* Functions may be members of whatever has a name; GCC's and Fortran's may be within another. */
static void list_functions(struct gt_lines *l, struct unit *u, struct gt_dw_die *parent, int depth,
                           uint32_t scope)
{
    struct gt_dw_die die;
    if (depth == MAX_DEPTH || l->dw->child(parent, &die))
        return;
    do {
        switch (l->dw->tag(&die)) {
        case GT_DW_FUNCTION: {
            size_t before = u->ranges.count;
            add_ranges(l, &u->ranges, &die, u->function_count);
            if (u->ranges.count > before) {
                gt_mem_grow(&u->functions, &u->function_room, u->function_count,
                            sizeof *u->functions);
                u->functions[u->function_count++] = die;
            }
            gt_scopes_place(&u->scopes, die.at, scope);
            list_functions(l, u, &die, depth + 1, enter(l, u, &die, scope));
            break;
        }
        case GT_DW_NAMESPACE:
        case GT_DW_MODULE:
        case GT_DW_CLASS:
        case GT_DW_STRUCTURE:
        case GT_DW_UNION:
        case GT_DW_ENUMERATION:
            list_functions(l, u, &die, depth + 1, enter(l, u, &die, scope));
            break;
        default:
            break;
        }
    } while (next_die(l, &die));
}

static void list_unit(struct gt_lines *l, struct unit *u)
{
    if (u->listed)
        return;
    u->listed = 1;
    list_functions(l, u, &u->tree, 0, 0);
    sort(&u->ranges);
}

static void list_units(struct gt_lines *l)
{
    struct gt_dw_unit *unit = NULL, *next;
    struct gt_dw_die die, sub;
    uint16_t version;
    uint8_t type;
    while (!l->dw->get_units(l->file, unit, &next, &version, &type, &die, &sub) &&
           l->unit_count < MAX_STEPS) {
        int tag = die.at ? l->dw->tag(&die) : 0;
        if (tag == GT_DW_COMPILE_UNIT || tag == GT_DW_SKELETON_UNIT) {
            gt_mem_grow(&l->units, &l->unit_room, l->unit_count, sizeof *l->units);
            l->units[l->unit_count] = (struct unit){.die = die, .tree = sub.at ? sub : die};
            add_ranges(l, &l->ranges, &die, l->unit_count++);
        }
        unit = next;
    }
    sort(&l->ranges);
}

static int has_debug_info(const struct gt_elf *e)
{
    return gt_elf_section(e, ".debug_info") || gt_elf_section(e, ".zdebug_info");
}

static struct gt_lines *open_lines(struct gt_symbols *s)
{
    struct gt_lines *l = gt_mem_new(1, sizeof *l);
    struct gt_symbols_files *f = &s->files;
    struct gt_elf *e = NULL;
    l->fd = -1;
    if (f->has_debug && has_debug_info(&f->debug))
        e = &f->debug;
    else if (f->has_module && has_debug_info(&f->module))
        e = &f->module;
    if (!e) {
        /* where there is no file at all, gt_symbols_why has told it */
        if (f->has_module || f->has_debug)
            l->why = gt_mem_format("%s: no debug information",
                                   f->has_module ? f->module.path : f->debug.path);
        return l;
    }
    if (!(l->dw = gt_libdw())) {
        l->why = gt_mem_format("no lines: libdw.so.1 is not here: install elfutils' libdw (Debian: "
                               "libdw1)");
        return l;
    }
    l->fd = gt_elf_fd(e);
    l->file = l->fd < 0 ? NULL : l->dw->begin(l->fd, 0);
    if (!l->file) {
        l->why = gt_mem_format("%s: its debug information is damaged", e->path);
        return l;
    }
    l->shift = f->has_module ? f->module.base - e->base : 0;
    list_units(l);
    return l;
}

void gt_lines_free(struct gt_lines *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->unit_count; i++) {
        free(l->units[i].functions);
        free(l->units[i].ranges.all);
        gt_scopes_free(&l->units[i].scopes);
    }
    if (l->file)
        l->dw->end(l->file);
    if (l->fd >= 0)
        close(l->fd);
    free(l->units);
    free(l->ranges.all);
    free(l->out);
    free(l->why);
    free(l);
}

const char *gt_lines_why(const struct gt_symbols *s)
{
    return s->lines ? s->lines->why : NULL;
}

/* The functions at the address: out[0] the one that has the code, then what was inlined. */
static size_t scopes(struct gt_lines *l, struct gt_dw_die *out, uint64_t address)
{
    struct gt_dw_die die, within = out[0];
    size_t n = 1;
    for (int depth = 0; depth < 4 * MAX_DEPTH && !l->dw->child(&within, &die); depth++) {
        int found = 0;
        do {
            int tag = l->dw->tag(&die);
            if ((tag == GT_DW_INLINED || tag == GT_DW_BLOCK || tag == GT_DW_TRY ||
                 tag == GT_DW_CATCH || tag == GT_DW_WITH) &&
                l->dw->haspc(&die, address) > 0) {
                found = 1;
                if (tag == GT_DW_INLINED && n < MAX_INLINED)
                    out[n++] = die;
                break;
            }
        } while (next_die(l, &die));
        if (!found)
            break;
        within = die;
    }
    return n;
}

/* The name with its scopes. NULL: it has none. The caller frees. */
static char *scoped(struct gt_lines *l, const struct gt_dw_die *function, const char *name)
{
    struct gt_dw_die die;
    declaration(l, function, &die);
    /* of another unit where units were made one program */
    for (size_t i = 0; i < l->unit_count; i++)
        if (l->units[i].tree.unit == die.unit) {
            list_unit(l, &l->units[i]);
            return gt_scopes_name(&l->units[i].scopes, die.at, name);
        }
    return NULL;
}

static const char *name_of(struct gt_symbols *s, struct gt_dw_die *die)
{
    const struct gt_libdw *dw = s->lines->dw;
    struct gt_dw_attribute a;
    const char *linkage = NULL;
    char *name;
    if (dw->attr_integrate(die, GT_DW_LINKAGE_NAME, &a) ||
        dw->attr_integrate(die, GT_DW_MIPS_LINKAGE_NAME, &a))
        linkage = dw->formstring(&a);
    if (linkage) {
        name = gt_symbols_name(linkage);
    } else {
        if (!(linkage = dw->diename(die)))
            return NULL;
        if (!(name = scoped(s->lines, die, linkage)))
            name = gt_symbols_name(linkage);
    }
    linkage = gt_symbol_table_keep(&s->table, name);
    free(name);
    return linkage;
}

/* Where the function around it called the inlined one. */
static void call_of(struct gt_lines *l, struct unit *u, struct gt_dw_die *inlined,
                    struct gt_line *to)
{
    struct gt_dw_attribute a;
    struct gt_dw_files *files;
    uint64_t file, line;
    size_t count;
    if (l->dw->attr(inlined, GT_DW_CALL_LINE, &a) && !l->dw->formudata(&a, &line))
        to->line = line > INT32_MAX ? 0 : (uint32_t)line;
    if (l->dw->attr(inlined, GT_DW_CALL_FILE, &a) && !l->dw->formudata(&a, &file) &&
        !l->dw->getsrcfiles(&u->die, &files, &count) && file < count)
        to->file = l->dw->filesrc(files, (size_t)file, NULL, NULL);
}

size_t gt_lines_at(struct gt_symbols *s, uint64_t address, int exact, const struct gt_line **out)
{
    struct gt_dw_die dies[MAX_INLINED];
    struct gt_lines *l = s->lines;
    struct gt_symbol symbol;
    struct gt_dw_line *line;
    struct unit *u;
    size_t i, n = 0;
    int number;
    if (!l)
        l = s->lines = open_lines(s);
    address -= l->shift + !exact;
    if (!l->file || find(&l->ranges, address, &i))
        return 0;
    u = &l->units[i];
    l->steps = MAX_STEPS;
    list_unit(l, u);
    if (!find(&u->ranges, address, &i)) {
        dies[0] = u->functions[i];
        n = scopes(l, dies, address);
    }
    line = l->dw->getsrc_die(&u->die, address);
    if (!n && !line)
        return 0;
    l->out = gt_mem_resize(l->out, n + 1, sizeof *l->out);
    memset(l->out, 0, (n + 1) * sizeof *l->out);
    for (i = 0; i < n; i++) {
        l->out[i].function = name_of(s, &dies[n - 1 - i]);
        if (i)
            call_of(l, u, &dies[n - i], &l->out[i]);
    }
    n = n ? n : 1;
    if (!gt_symbols_at(s, address + l->shift, 1, &symbol))
        l->out[n - 1].function = symbol.name;
    if (line) {
        l->out[0].file = l->dw->linesrc(line, NULL, NULL);
        if (!l->dw->lineno(line, &number) && number > 0)
            l->out[0].line = (uint32_t)number;
    }
    *out = l->out;
    return n;
}
