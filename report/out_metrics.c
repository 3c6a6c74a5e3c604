/* Named values in the native JSON: {"IPC":{"ratio":1.2}}, as TVM writes them, with JSON's own
 * escapes. Called by out_json.c. See writer.h. */
#include "report/writer.h"

void gt_out_json_metrics(const struct gt_model *m, struct gt_list l, struct gt_sink *s)
{
    gt_sink_text(s, "{");
    for (uint32_t i = 0; i < l.count; i++) {
        const struct gt_metric *v = &m->metrics[l.first + i];
        size_t len;
        const char *text = gt_model_string(m, v->name, &len);
        gt_sink_text(s, i ? "," : "");
        gt_text_json(s, text, len);
        gt_sink_format(s, ":{\"%s\":", gt_metric_names[v->kind]);
        if (v->kind == GT_METRIC_STRING) {
            text = gt_model_string(m, v->text, &len);
            gt_text_json(s, text, len);
        } else if (v->kind == GT_METRIC_COUNT) {
            gt_sink_int(s, v->count);
        } else {
            gt_sink_real(s, v->real);
        }
        gt_sink_text(s, "}");
    }
    gt_sink_text(s, "}");
}

void gt_out_json_devices(const struct gt_model *m, size_t process, struct gt_sink *s)
{
    int first = 1;
    gt_sink_text(s, "{");
    for (size_t i = 0; i < m->device_count; i++) {
        const struct gt_device_metrics *d = &m->devices[i];
        size_t len;
        const char *name = gt_model_string(m, d->device, &len);
        if (d->process != process)
            continue;
        gt_sink_text(s, first ? "" : ",");
        gt_text_json(s, name, len);
        gt_sink_text(s, ":");
        gt_out_json_metrics(m, d->metrics, s);
        first = 0;
    }
    gt_sink_text(s, "}");
}
