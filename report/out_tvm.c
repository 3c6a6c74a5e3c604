/* JSON for tvm.runtime.profiling.Report.from_json: a row a call, a place in the call tree. See
 * writer.h.
 *
 * TVM's reader knows five escapes and no \u; its table() needs a name and a duration in each row,
 * and fails with a crash where one column holds two kinds of values. So both are always there, and
 * such a column becomes text. */
#include "report/mem.h"
#include "report/tvm.h"
#include "report/tvm_columns.h"
#include "report/writer.h"
#include <stdlib.h>

#define MIXED 0xff

static void quoted(struct gt_sink *s, const char *text)
{
    gt_sink_put(s, "\"", 1);
    while (*text) {
        size_t n = strcspn(text, "\"\\\n\t\r");
        gt_sink_put(s, text, n);
        text += n;
        if (!*text)
            break;
        char c = *text++;
        gt_sink_put(s, (char[2]){'\\', c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : c}, 2);
    }
    gt_sink_put(s, "\"", 1);
}

static void value(struct gt_sink *s, const struct gt_tvm_cell *c, int kind)
{
    gt_sink_format(s, ":{\"%s\":", gt_metric_names[kind]);
    if (kind != GT_METRIC_STRING && kind == c->kind) {
        if (kind == GT_METRIC_COUNT)
            gt_sink_int(s, c->count);
        else
            gt_sink_real(s, c->real);
    } else if (kind != GT_METRIC_STRING) {
        gt_sink_real(s, gt_tvm_amount(c));
    } else if (c->kind == GT_METRIC_STRING) {
        quoted(s, c->text);
    } else {
        gt_sink_text(s, "\"");
        if (c->kind == GT_METRIC_COUNT)
            gt_sink_int(s, c->count);
        else
            gt_sink_real(s, c->real);
        gt_sink_text(s, "\"");
    }
    gt_sink_text(s, "}");
}

static void row(const struct gt_tvm *v, const struct gt_tvm_row *r, const uint8_t *kinds,
                struct gt_sink *s)
{
    gt_sink_text(s, "{");
    for (uint32_t i = 0; i < r->count; i++) {
        const struct gt_tvm_cell *c = &v->cells[r->first + i];
        gt_sink_text(s, i ? "," : "");
        quoted(s, v->columns[c->column]);
        value(s, c, kinds[c->column] == MIXED ? GT_METRIC_STRING : kinds[c->column]);
    }
}

static void note(const struct gt_tvm *v, const struct gt_tvm_row *rows, size_t count,
                 uint8_t *kinds)
{
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < rows[i].count; k++) {
            const struct gt_tvm_cell *c = &v->cells[rows[i].first + k];
            uint8_t *kind = &kinds[c->column];
            *kind = *kind == GT_METRIC_KINDS || *kind == c->kind ? c->kind : MIXED;
        }
}

/* The kind of every column. TVM's code takes some for granted. */
static uint8_t *kinds_of(const struct gt_tvm *v)
{
    static const uint8_t texts[] = {GT_TVM_AT_NAME, GT_TVM_AT_DEVICE, GT_TVM_AT_SHAPES};
    uint8_t *kinds = gt_mem_new(v->column_count, sizeof *kinds);
    uint32_t hash = gt_tvm_column_named(v, GT_TVM_HASH);
    memset(kinds, GT_METRIC_KINDS, v->column_count);
    note(v, v->calls, v->call_count, kinds);
    note(v, v->devices, v->device_count, kinds);
    for (size_t i = 0; i < sizeof texts; i++)
        kinds[texts[i]] = GT_METRIC_STRING;
    if (hash != UINT32_MAX)
        kinds[hash] = GT_METRIC_STRING;
    kinds[GT_TVM_AT_DURATION] = GT_METRIC_MICROSECONDS;
    return kinds;
}

void gt_out_tvm(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s)
{
    struct gt_tvm v;
    (void)o;
    gt_tvm_init(&v, m);
    uint8_t *kinds = kinds_of(&v);
    gt_sink_text(s, "{\"calls\":[");
    for (size_t i = 0; i < v.call_count; i++) {
        const struct gt_tvm_row *r = &v.calls[i];
        gt_sink_text(s, i ? ",\n" : "\n");
        row(&v, r, kinds, s);
        if (!gt_tvm_cell_of(&v, r, GT_TVM_AT_NAME))
            gt_sink_format(s, "%s\"" GT_TVM_NAME "\":{\"string\":\"\"}", r->count ? "," : "");
        if (!gt_tvm_cell_of(&v, r, GT_TVM_AT_DURATION))
            gt_sink_text(s, ",\"" GT_TVM_DURATION "\":{\"microseconds\":0.0}");
        gt_sink_text(s, "}");
    }
    gt_sink_text(s, "],\n\"device_metrics\":{");
    for (size_t i = 0; i < v.device_count; i++) {
        gt_sink_text(s, i ? ",\n" : "\n");
        quoted(s, v.devices[i].device);
        gt_sink_text(s, ":");
        row(&v, &v.devices[i], kinds, s);
        gt_sink_text(s, "}");
    }
    gt_sink_text(s, "},\n\"configuration\":{");
    for (uint32_t i = 0; i < v.configuration.count; i++) {
        const struct gt_tvm_cell *c = &v.cells[v.configuration.first + i];
        gt_sink_text(s, i ? ",\n" : "\n");
        quoted(s, v.settings[c->column]);
        value(s, c, c->kind);
    }
    gt_sink_text(s, "}}\n");
    free(kinds);
    gt_tvm_fini(&v);
}
