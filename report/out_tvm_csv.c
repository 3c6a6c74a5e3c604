/* What TVM's Report.csv() gives: the calls, columns in the order of their names. Inner quotes are
 * doubled, as RFC 4180 wants; TVM leaves them as they are. See writer.h. */
#include "report/mem.h"
#include "report/tvm.h"
#include "report/writer.h"
#include <stdlib.h>

static void quoted(struct gt_sink *s, const char *text)
{
    gt_sink_put(s, "\"", 1);
    for (const char *q; (q = strchr(text, '"')); text = q + 1) {
        gt_sink_put(s, text, (size_t)(q - text) + 1);
        gt_sink_put(s, "\"", 1);
    }
    gt_sink_text(s, text);
    gt_sink_put(s, "\"", 1);
}

static void value(struct gt_sink *s, const struct gt_tvm_cell *c)
{
    if (c->kind == GT_METRIC_STRING)
        quoted(s, c->text);
    else if (c->kind == GT_METRIC_COUNT)
        gt_sink_int(s, c->count);
    else
        gt_sink_format(s, "%g", c->real);
}

void gt_out_tvm_csv(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s)
{
    struct gt_tvm v;
    (void)o;
    gt_tvm_init(&v, m);
    uint32_t *order = gt_tvm_sorted_columns(&v, 0);
    uint32_t *place = gt_mem_new(v.column_count, sizeof *place); /* 1 + cell of this row */
    size_t columns = 0;
    for (size_t i = 0; i < v.call_count; i++)
        for (uint32_t k = 0; k < v.calls[i].count; k++)
            place[v.cells[v.calls[i].first + k].column] = 1;
    for (size_t i = 0; i < v.column_count; i++)
        if (place[order[i]])
            order[columns++] = order[i];
    for (size_t i = 0; i < columns; i++) {
        const char *name = v.columns[order[i]];
        gt_sink_text(s, i ? "," : "");
        if (name[strcspn(name, "\",\r\n")])
            quoted(s, name);
        else
            gt_sink_text(s, name);
    }
    gt_sink_text(s, "\n");
    for (size_t i = 0; i < v.call_count; i++) {
        const struct gt_tvm_row *r = &v.calls[i];
        for (size_t k = 0; k < columns; k++)
            place[order[k]] = 0;
        for (uint32_t k = 0; k < r->count; k++)
            place[v.cells[r->first + k].column] = k + 1;
        for (size_t k = 0; k < columns; k++) {
            gt_sink_text(s, k ? "," : "");
            if (place[order[k]])
                value(s, &v.cells[r->first + place[order[k]] - 1]);
        }
        gt_sink_text(s, "\n");
    }
    free(place);
    free(order);
    gt_tvm_fini(&v);
}
