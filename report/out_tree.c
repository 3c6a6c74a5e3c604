/* The calling tree, indented: one block a thread, children by total time, then by the device's.
 * Walks without recursion: ranges may be nested 10,000 deep. */
#include "core/layout.h"
#include "report/arrange.h"
#include "report/mem.h"
#include "report/writer.h"
#include <stdio.h>
#include <stdlib.h>

/* Deeper rows keep this indentation and tell their depth: 10,000 levels would be 100 MB of blanks.
 */
#define INDENT_LEVELS 40

struct kid {
    int32_t parent, row;
    int64_t total_ns, device_ns;
};

static int by_parent(const void *pa, const void *pb)
{
    const struct kid *a = pa, *b = pb;
    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    if (a->device_ns != b->device_ns)
        return a->device_ns > b->device_ns ? -1 : 1;
    return a->row < b->row ? -1 : 1;
}

/* What a row has none of stays blank: a frame its own time and calls, what a device did the CPU's.
 */
static void times(const struct gt_row *r, int device, struct gt_sink *s)
{
    char total[48] = "", self[48] = "", on_device[48] = "", count[32] = "";
    if (r->device == GT_CPU) {
        gt_text_time(total, (double)r->total_ns);
        gt_text_time(self, (double)r->self_ns);
    }
    if (r->device_ns || r->device != GT_CPU)
        gt_text_time(on_device, (double)r->device_ns);
    snprintf(count, sizeof count, "%lld", (long long)r->count);
    if (r->flags & GT_ROW_FRAME)
        self[0] = count[0] = 0;
    gt_sink_format(s, "%12s  %12s  ", total, self);
    if (device)
        gt_sink_format(s, "%12s  ", on_device);
    gt_sink_format(s, "%12s  ", count);
}

static void line(const struct gt_model *m, const struct gt_row *r, uint32_t depth, int device,
                 struct gt_sink *s)
{
    times(r, device, s);
    gt_sink_fill(s, ' ', 2u * (depth < INDENT_LEVELS ? depth : INDENT_LEVELS));
    if (depth > INDENT_LEVELS)
        gt_sink_format(s, "[%u] ", depth);
    gt_text_cell(s, gt_model_string(m, r->label, NULL), 0, SIZE_MAX, 1);
    if (r->shapes)
        gt_sink_format(s, " %s", gt_model_string(m, r->shapes, NULL));
    if (r->device != GT_CPU)
        gt_sink_format(s, " [%s]", gt_device_names[r->device]);
    if (r->flags & GT_ROW_ASYNC)
        gt_sink_text(s, " (async)");
    if (r->flags & GT_ROW_TORN)
        gt_sink_text(s, " (torn)");
    gt_sink_text(s, "\n");
}

static void heading(const struct gt_model *m, uint32_t thread, struct gt_sink *s)
{
    const struct gt_thread *t = &m->threads[thread];
    const struct gt_process *p = &m->processes[t->process];
    if (p->tvm) {
        gt_sink_text(s, "a report of TVM\n");
        return;
    }
    gt_sink_format(s, "process %lld ", (long long)p->pid);
    gt_text_cell(s, gt_model_string(m, p->exe, NULL), 0, SIZE_MAX, 1);
    gt_sink_format(s, ", thread slot %u ", t->slot);
    gt_text_cell(s, gt_model_string(m, t->name, NULL), 0, SIZE_MAX, 1);
    if (t->threads > 1)
        gt_sink_format(s, " (%lld threads, one after the other)", (long long)t->threads);
    gt_sink_text(s, "\n");
}

static void write_tree(const struct gt_model *m, struct gt_sink *s)
{
    struct kid *kids = gt_mem_new(m->row_count, sizeof *kids);
    size_t *first = gt_mem_new(m->row_count + 1, sizeof *first); /* of row i: its first kid + 1 */
    uint32_t *depth = gt_mem_new(m->row_count, sizeof *depth);
    size_t *stack = gt_mem_new(m->row_count + 1, sizeof *stack); /* positions in kids */
    uint32_t thread = UINT32_MAX;
    size_t n = 0, used = 0, roots = 0;
    int device = 0;
    for (size_t i = 0; i < m->row_count; i++) {
        const struct gt_row *r = &m->rows[i];
        if (r->kind != GT_KIND_RANGE && r->kind != GT_KIND_ASYNC)
            continue;
        /* outermost rows stay together by thread: -1, -2, … */
        int32_t parent = r->parent < 0 ? -1 - (int32_t)r->thread : r->parent;
        kids[n++] = (struct kid){parent, (int32_t)i, r->total_ns, r->device_ns};
        device |= r->device_ns > 0 || r->device != GT_CPU;
    }
    if (n)
        qsort(kids, n, sizeof *kids, by_parent);
    while (roots < n && kids[roots].parent < 0)
        roots++;
    for (size_t i = n; i-- > roots;)
        first[kids[i].parent] = i + 1;
    gt_sink_format(s, "%12s  %12s  ", "Total", "Self");
    if (device)
        gt_sink_format(s, "%12s  ", "Device total");
    gt_sink_format(s, "%12s  %s\n", "# of Calls", "Name");
    for (size_t end = roots; end;) {
        size_t begin = end - 1; /* -1 sorts last: threads come in their order from the back */
        while (begin && kids[begin - 1].parent == kids[end - 1].parent)
            begin--;
        for (size_t root = begin; root < end; root++) {
            stack[used++] = root;
            while (used) {
                size_t at = stack[--used];
                const struct gt_row *r = &m->rows[kids[at].row];
                uint32_t d = r->parent < 0 ? 0 : depth[r->parent] + 1;
                depth[kids[at].row] = d;
                if (r->thread != thread)
                    heading(m, thread = r->thread, s);
                line(m, r, d, device, s);
                /* the next of the same parent waits below our own kids */
                if (at >= roots && at + 1 < n && kids[at + 1].parent == kids[at].parent)
                    stack[used++] = at + 1;
                if (first[kids[at].row])
                    stack[used++] = first[kids[at].row] - 1;
            }
        }
        end = begin;
    }
    free(kids);
    free(first);
    free(depth);
    free(stack);
}

void gt_out_tree(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s)
{
    struct gt_model room;
    write_tree(gt_arrange(&room, m, o->group_by), s);
    gt_arrange_fini(&room);
}
