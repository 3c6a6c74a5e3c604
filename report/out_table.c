/* The table: PyTorch's EventList.table(), byte for byte, then our own lines about what it can't
 * say. Without PyTorch's operators columns of our own may follow: a driver's memory, bytes copied,
 * calls that failed. Widths, limits and the trailing blanks are PyTorch's (torch 2.13,
 * profiler_util.py). One thing is not: with stacks and FLOPs it prints the titles of these two
 * columns over each other's values. */
#include "core/layout.h"
#include "report/mem.h"
#include "report/overhead.h"
#include "report/symbols.h"
#include "report/writer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_WIDTH 55
#define SHAPES_WIDTH 80
#define SOURCE_WIDTH 75
#define WIDTH 12
#define COLUMNS 32
#define MODULES_TOLD 8
#define PATH_TOLD 60
#define OVERHEAD_WORTH_TELLING 0.02

struct column {
    char title[32];
    size_t width;
    int what;
};

enum {
    NAME,
    OVERLOAD,
    SELF_PERCENT,
    SELF,
    TOTAL_PERCENT,
    TOTAL,
    AVERAGE,
    DEVICE_SELF,
    DEVICE_PERCENT,
    DEVICE_TOTAL,
    DEVICE_AVERAGE,
    MEMORY,
    SELF_MEMORY,
    DEVICE_MEMORY,
    SELF_DEVICE_MEMORY,
    DRIVER_MEMORY,
    LEAKED,
    BYTES,
    CALLS,
    FAILED,
    NODE,
    THREAD,
    SHAPES,
    FLOPS,
    SOURCE
};

struct table {
    const struct gt_groups *g;
    struct gt_sink *s;
    struct column columns[COLUMNS];
    size_t count;
    int64_t self_ns, device_ns;
    double flops_scale;
    size_t source; /* width of the column with the frames, the last one; 0: there is none */
};

static void column(struct table *t, int what, size_t width, const char *before, const char *device,
                   const char *after)
{
    struct column *c = &t->columns[t->count++];
    snprintf(c->title, sizeof c->title, "%s%s%s", before, device, after);
    c->what = what;
    c->width = width;
}

/* PyTorch's floats: a sum or mean is rounded for print as it rounds its own. */
static double us(int64_t ns)
{
    return (double)ns / 1000;
}

static int wants_memory(const struct gt_model *m)
{
    for (size_t i = 0; i < m->process_count; i++)
        if (m->processes[i].profile_memory)
            return 1;
    return 0;
}

static size_t widest(const struct gt_groups *g, size_t most, int what)
{
    size_t width = 0;
    for (size_t i = 0; i < g->count; i++) {
        gt_text t = what == SHAPES ? g->avgs[i].shapes : g->avgs[i].key;
        size_t n = gt_text_width(gt_model_string(g->model, t, NULL));
        width = n > width ? n : width;
    }
    return width + 4 < most ? width + 4 : most;
}

static const char *frame(const struct gt_groups *g, const struct gt_avg *a, uint32_t i)
{
    return i < a->stack.count
               ? gt_model_string(g->model, gt_stacks_text(g->model, a->stack, i), NULL)
               : "";
}

/* Of the column with the frames; 0: there are none. */
static size_t source_width(const struct gt_groups *g)
{
    size_t width = 0;
    for (size_t i = 0; i < g->count; i++)
        for (uint32_t k = 0; k < g->avgs[i].stack.count; k++) {
            size_t n = gt_text_width(frame(g, &g->avgs[i], k)) + 4;
            width = n > width ? n : width;
        }
    return width < SOURCE_WIDTH ? width : SOURCE_WIDTH;
}

/* Of columns of our own, those with something in them. With PyTorch's operators the table stays
 * theirs, CSV and JSON have it. */
static void own_column(struct table *t, int what, const char *title)
{
    int any = 0, torch = 0;
    for (size_t i = 0; i < t->g->count; i++) {
        const struct gt_avg *a = &t->g->avgs[i];
        torch |= (a->sources & UINT32_C(1) << GT_SOURCE_TORCH) != 0;
        any |= what == DRIVER_MEMORY ? a->driver_memory || a->self_driver_memory || a->leaked
               : what == LEAKED      ? a->leaked > 0
               : what == BYTES       ? a->bytes > 0
                                     : a->failed > 0;
    }
    if (any && !torch)
        column(t, what, WIDTH, title, "", "");
}

static void columns(struct table *t, const struct gt_write_options *o)
{
    static const char *const units[] = {"FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"};
    const struct gt_groups *g = t->g;
    int device = 0, memory = o->memory || wants_memory(g->model), device_memory = 0, node = 0,
        shapes = 0, overloads = 0;
    int64_t least = 0;
    size_t thread = 0;
    for (size_t i = 0; i < g->count; i++) {
        const struct gt_avg *a = &g->avgs[i];
        device |= a->self_device_ns > 0;
        memory |= a->memory || a->self_memory;
        device_memory |= a->self_device_memory > 0;
        node |= a->rank != -1;
        shapes |= a->shapes != 0;
        overloads |= a->overload != 0;
        if (a->flops > 0 && (!least || a->flops < least))
            least = a->flops;
        t->self_ns = gt_add(t->self_ns, a->self_ns);
        if (a->device == GT_CPU ? a->flags & GT_ROW_LEGACY : !(a->flags & GT_ROW_ANNOTATION))
            t->device_ns = gt_add(t->device_ns, a->self_device_ns);
        if (o->group_by & GT_BY_THREAD && a->thread >= 0) {
            char title[GT_THREAD_BYTES];
            gt_text_thread(g->model, a->thread, title);
            size_t n = gt_text_width(title);
            thread = n > thread ? n : thread;
        }
    }
    /* titles have PyTorch's use_device in capitals */
    static const char *const titles[GT_DEVICES] = {"CUDA", "CUDA", "XPU", "PRIVATEUSEONE"};
    const char *name = titles[g->device];
    size_t width = widest(g, NAME_WIDTH, NAME);
    column(t, NAME, width, "Name", "", "");
    if (overloads)
        column(t, OVERLOAD, width, "Overload Name", "", "");
    column(t, SELF_PERCENT, WIDTH, "Self CPU %", "", "");
    column(t, SELF, WIDTH, "Self CPU", "", "");
    column(t, TOTAL_PERCENT, WIDTH, "CPU total %", "", "");
    column(t, TOTAL, WIDTH, "CPU total", "", "");
    column(t, AVERAGE, WIDTH, "CPU time avg", "", "");
    if (device) {
        column(t, DEVICE_SELF, WIDTH, "Self ", name, "");
        column(t, DEVICE_PERCENT, WIDTH, "Self ", name, " %");
        column(t, DEVICE_TOTAL, WIDTH, "", name, " total");
        column(t, DEVICE_AVERAGE, WIDTH, "", name, " time avg");
    }
    if (memory || device_memory) {
        column(t, MEMORY, WIDTH, "CPU Mem", "", "");
        column(t, SELF_MEMORY, WIDTH, "Self CPU Mem", "", "");
    }
    if (device_memory) {
        column(t, DEVICE_MEMORY, WIDTH, "", name, " Mem");
        column(t, SELF_DEVICE_MEMORY, WIDTH, "Self ", name, " Mem");
    }
    own_column(t, DRIVER_MEMORY, "Driver Mem");
    own_column(t, LEAKED, "Leaked");
    own_column(t, BYTES, "Bytes");
    column(t, CALLS, WIDTH, "# of Calls", "", "");
    own_column(t, FAILED, "# Failed");
    if (node)
        column(t, NODE, WIDTH, "Node ID", "", "");
    if (o->group_by & GT_BY_THREAD)
        column(t, THREAD, thread + 4 > WIDTH ? thread + 4 : WIDTH, "Thread", "", "");
    if (shapes)
        column(t, SHAPES, widest(g, SHAPES_WIDTH, SHAPES), "Input Shapes", "", "");
    if (least) {
        double unit = fmax(0, fmin(log10((double)least) / 3, 5));
        t->flops_scale = pow(10, floor(unit) * -3);
        column(t, FLOPS, WIDTH, "Total ", units[(int)unit], "");
    }
    if ((t->source = source_width(g)))
        column(t, SOURCE, t->source, "Source Location", "", "");
}

static void rule(const struct table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        gt_sink_fill(t->s, '-', t->columns[i].width);
        gt_sink_text(t->s, "  ");
    }
    gt_sink_text(t->s, "\n");
}

static void cell(const struct table *t, const struct column *c, const struct gt_avg *a)
{
    const struct gt_model *m = t->g->model;
    double calls = a->count > 0 ? (double)a->count : 1;
    char text[GT_THREAD_BYTES] = "";
    switch (c->what) {
    case NAME:
    case OVERLOAD: {
        const char *name = gt_model_string(m, c->what == NAME ? a->key : a->overload, NULL);
        gt_text_cell(t->s, name, c->width, NAME_WIDTH - 3, 0);
        return;
    }
    case SELF_PERCENT:
        gt_text_share(text, us(a->self_ns), us(t->self_ns));
        break;
    case SELF:
        gt_text_us(text, us(a->self_ns));
        break;
    case TOTAL_PERCENT:
        if (a->flags & GT_ROW_ASYNC)
            strcpy(text, "0");
        else
            gt_text_share(text, us(a->total_ns), us(t->self_ns));
        break;
    case TOTAL:
        gt_text_us(text, us(a->total_ns));
        break;
    case AVERAGE:
        gt_text_us(text, us(a->total_ns) / calls);
        break;
    case DEVICE_SELF:
        gt_text_us(text, us(a->self_device_ns));
        break;
    case DEVICE_PERCENT:
        gt_text_share(text, us(a->self_device_ns), us(t->device_ns));
        break;
    case DEVICE_TOTAL:
        gt_text_us(text, us(a->device_ns));
        break;
    case DEVICE_AVERAGE:
        gt_text_us(text, us(a->device_ns) / calls);
        break;
    case MEMORY:
        gt_text_memory(text, a->memory);
        break;
    case SELF_MEMORY:
        gt_text_memory(text, a->self_memory);
        break;
    case DEVICE_MEMORY:
        gt_text_memory(text, a->device_memory);
        break;
    case SELF_DEVICE_MEMORY:
        gt_text_memory(text, a->self_device_memory);
        break;
    case DRIVER_MEMORY:
        gt_text_memory(text, a->driver_memory);
        break;
    case LEAKED:
        gt_text_memory(text, a->leaked);
        break;
    case BYTES:
        gt_text_memory(text, a->bytes);
        break;
    case FAILED:
        snprintf(text, sizeof text, "%lld", (long long)a->failed);
        break;
    case CALLS:
        snprintf(text, sizeof text, "%lld", (long long)a->count);
        break;
    case NODE:
        snprintf(text, sizeof text, "%lld", (long long)a->rank);
        break;
    case THREAD:
        if (a->thread >= 0)
            gt_text_thread(m, a->thread, text);
        break;
    case SHAPES:
        gt_text_cut(t->s, a->shapes ? gt_model_string(m, a->shapes, NULL) : "[]", c->width);
        return;
    case FLOPS:
        if (a->flops > 0)
            snprintf(text, sizeof text, "%8.3f", (double)a->flops * t->flops_scale);
        else
            strcpy(text, "--");
        break;
    case SOURCE:
        gt_text_tail(t->s, frame(t->g, a, 0), c->width);
        return;
    }
    gt_text_cell(t->s, text, c->width, SIZE_MAX, 0);
}

/* The frames behind the first, each in a line of its own, and an empty line. */
static void more_frames(const struct table *t, const struct gt_avg *a)
{
    size_t before = 0;
    for (size_t c = 0; c + 1 < t->count; c++)
        before += t->columns[c].width + 2;
    for (uint32_t i = 1; t->source && i <= (a->stack.count ? a->stack.count : 1); i++) {
        gt_sink_fill(t->s, ' ', before);
        gt_text_tail(t->s, frame(t->g, a, i), t->source);
        gt_sink_text(t->s, "  \n");
    }
}

void gt_out_table_groups(const struct gt_groups *g, const struct gt_write_options *o,
                         struct gt_sink *s)
{
    struct table t = {.g = g, .s = s};
    uint32_t *order = NULL;
    char text[64];
    if (!g->count || gt_group_sort(g, o->sort_by, &order))
        return;
    columns(&t, o);
    rule(&t);
    for (size_t i = 0; i < t.count; i++) {
        gt_text_cell(s, t.columns[i].title, t.columns[i].width, SIZE_MAX,
                     t.columns[i].what == SOURCE);
        gt_sink_text(s, "  ");
    }
    gt_sink_text(s, "\n");
    rule(&t);
    for (size_t i = 0; i < g->count && (o->row_limit < 0 || i < (size_t)o->row_limit); i++) {
        for (size_t c = 0; c < t.count; c++) {
            cell(&t, &t.columns[c], &g->avgs[order[i]]);
            gt_sink_text(s, "  ");
        }
        gt_sink_text(s, "\n");
        more_frames(&t, &g->avgs[order[i]]);
    }
    rule(&t);
    gt_text_us(text, us(t.self_ns));
    gt_sink_format(s, "Self CPU time total: %s\n", text);
    for (size_t c = 0; c < t.count; c++)
        if (t.columns[c].what == DEVICE_SELF) {
            gt_text_us(text, us(t.device_ns));
            gt_sink_format(s, "%s time total: %s\n", t.columns[c].title, text);
        }
    free(order);
}

static void note(struct gt_sink *s, int64_t n, const char *one, const char *many)
{
    if (n)
        gt_sink_format(s, "%lld %s\n", (long long)n, n == 1 ? one : many);
}

/* Where nobody saw the end of the process, its open ranges are too short: say so. */
static void note_open(const struct gt_model *m, struct gt_sink *s)
{
    int known = 1;
    for (size_t i = 0; i < m->open_count; i++)
        known &= m->processes[m->threads[m->rows[m->open[i].row].thread].process].end_known;
    if (known)
        note(s, (int64_t)m->open_count, "range was open at the end and counts up to then",
             "ranges were open at the end and count up to then");
    else
        note(s, (int64_t)m->open_count, "range was open at the end and counts up to the last event",
             "ranges were open at the end and count up to the last event");
}

/* Where the ranges are so short that we are a part of what they show. */
static void note_overhead(const struct gt_model *m, struct gt_sink *s)
{
    for (size_t i = 0; i < m->process_count; i++) {
        double share = gt_overhead_share(m, i);
        if (share < OVERHEAD_WORTH_TELLING)
            continue;
        gt_sink_format(
            s, "about %.0f%% of this time is gputally's own (%lld calls of some %.0f ns)",
            fmin(100, share * 100), (long long)gt_overhead_calls(m, i), m->processes[i].call_ns);
        if (m->process_count > 1)
            gt_sink_format(s, " in process %lld", (long long)m->processes[i].pid);
        gt_sink_text(s, "\n");
    }
}

/* Why frames are shown as FILE+0x1234. */
static void note_names(const struct gt_model *m, struct gt_sink *s)
{
    static const char *const reasons[GT_NO_NAMES] = {
        NULL,
        "it is in no file of its own",
        "its file is not there; report --debug-dir looks elsewhere",
        "another build of it is there now; report --debug-dir looks elsewhere",
        "its file cannot be read",
        "its file is no ELF file",
        "its file has no symbols of functions; report --debug-dir looks for them elsewhere"};
    uint8_t *why = gt_stacks_no_names(m);
    size_t told = 0;
    for (size_t i = 0; i < m->module_count; i++) {
        if (!why[i] || told++ >= MODULES_TOLD)
            continue;
        const char *path = gt_model_string(m, m->modules[i].path, NULL), *slash;
        slash = strrchr(path, '/');
        gt_sink_text(s, "no names of functions in ");
        gt_text_cell(s, why[i] != GT_NAMES_NO_FILE && slash && slash[1] ? slash + 1 : path, 0,
                     PATH_TOLD, 0);
        gt_sink_format(s, ": %s\n", reasons[why[i]]);
    }
    if (told > MODULES_TOLD)
        gt_sink_format(s, "no names of functions in %zu more %s (no_names, in JSON)\n",
                       told - MODULES_TOLD, told == MODULES_TOLD + 1 ? "file" : "files");
    free(why);
}

/* Why a stack is shorter than the program's. */
static void note_stacks(const int64_t *lost, struct gt_sink *s)
{
    note(s, lost[GT_LOST_INDEX_stack_missing], "call without its stack: no memory left for it",
         "calls without their stacks: no memory left for them");
    note(s, lost[GT_LOST_INDEX_stack_folded], "call counted under the other stacks of its name",
         "calls counted under the other stacks of their names");
    note(s, lost[GT_LOST_INDEX_stack_truncated], "stack had more frames than are kept (truncated)",
         "stacks had more frames than are kept (truncated)");
    note(s, lost[GT_LOST_INDEX_stack_cut], "stack could not be followed to its end (cut)",
         "stacks could not be followed to their ends (cut)");
}

/* What the table can't say; nothing when all is well. */
static void notes(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s)
{
    int64_t lost[GT_LOST_INDICES] = {0}, marks = 0, samples = 0, leaked = 0, failed = 0;
    int approximate = 0, full = 0;
    for (size_t i = 0; i < m->process_count; i++) {
        for (size_t k = 0; k < GT_LOST_INDICES; k++)
            lost[k] = gt_add(lost[k], m->processes[i].lost[k]);
        approximate |= m->processes[i].approximate;
        full |= m->processes[i].memory_full;
    }
    for (size_t i = 0; i < m->row_count; i++) {
        if (m->rows[i].kind == GT_KIND_MARK)
            marks = gt_add(marks, m->rows[i].count);
        else if (m->rows[i].kind == GT_KIND_COUNTER)
            samples = gt_add(samples, m->rows[i].values.count);
        leaked = gt_add(leaked, m->rows[i].leaked);
        failed = gt_add(failed, m->rows[i].failed);
    }
    note(s, marks, "mark", "marks");
    note(s, samples, "counter sample", "counter samples");
    note(s, failed, "call failed (failed, in CSV and JSON)",
         "calls failed (failed, in CSV and JSON)");
    note(s, leaked, "byte of a device's memory never freed (leaked)",
         "bytes of devices' memory never freed (leaked)");
    note_open(m, s);
    note(s, lost[GT_LOST_INDEX_left_open], "range was open when its thread ended",
         "ranges were open when their threads ended");
    note(s, lost[GT_LOST_INDEX_cut], "range was open when the window shut and counts up to then",
         "ranges were open when the window shut and count up to then");
    note(s, lost[GT_LOST_INDEX_unbalanced], "end without a start (unbalanced)",
         "ends without a start (unbalanced)");
    note(s, lost[GT_LOST_INDEX_overlapped], "range ended before one inside it (overlapped)",
         "ranges ended before one inside them (overlapped)");
    note(s, lost[GT_LOST_INDEX_folded], "call counted under a folded name",
         "calls counted under a folded name");
    note(s, lost[GT_LOST_INDEX_memory], "call lost: no memory left (GPUTALLY_MEMORY)",
         "calls lost: no memory left (GPUTALLY_MEMORY)");
    note(s, lost[GT_LOST_INDEX_nested], "call lost: came from inside a signal handler",
         "calls lost: came from inside a signal handler");
    note(s, lost[GT_LOST_INDEX_deep], "call lost: nested too deep", "calls lost: nested too deep");
    note(s, lost[GT_LOST_INDEX_late], "call lost: came after the end of the program",
         "calls lost: came after the end of the program");
    note(s, lost[GT_LOST_INDEX_clamped], "negative duration counted as 0",
         "negative durations counted as 0");
    note(s, lost[GT_LOST_INDEX_torn],
         "row torn: the process was killed in the middle of its update",
         "rows torn: the process was killed in the middle of their update");
    if (o->group_by & GT_BY_STACK) {
        note_stacks(lost, s);
        note_names(m, s);
    }
    note_overhead(m, s);
    if (full)
        gt_sink_text(s, "GPUTALLY_MEMORY was used up: later new names are folded\n");
    if (approximate)
        gt_sink_text(s,
                     "times are approximate: the clock of this session can't be converted here\n");
}

void gt_out_table(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s)
{
    struct gt_groups g;
    gt_group_rows(&g, m, o->group_by);
    gt_out_table_groups(&g, o, s);
    if (o->row_limit >= 0 && g.count > (size_t)o->row_limit)
        gt_sink_format(o->hint ? o->hint : s, "%s%zu of %zu rows; --row-limit -1 shows all\n",
                       o->hint ? "gputally: " : "", (size_t)o->row_limit, g.count);
    gt_groups_fini(&g);
    notes(m, o, s);
}
