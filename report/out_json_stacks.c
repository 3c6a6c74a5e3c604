/* The sections of stacks in the native JSON: modules, frames, stacks. Called by out_json.c;
 * docs/format.md tells every field. */
#include "report/writer.h"
#include <stdlib.h>

static void text(const struct gt_model *m, const char *before, gt_text t, struct gt_sink *s)
{
    size_t len;
    const char *string = gt_model_string(m, t, &len);
    gt_sink_text(s, before);
    gt_text_json(s, string, len);
}

static void frame(const struct gt_model *m, const struct gt_stack_frame *f, struct gt_sink *s)
{
    gt_sink_text(s, "{\"kind\":\"");
    gt_sink_text(s, gt_stack_kinds[f->kind]);
    text(m, "\",\"function\":", f->function, s);
    if (f->kind == GT_STACK_IS_NATIVE) {
        if (f->module) {
            gt_sink_text(s, ",\"module\":");
            gt_sink_int(s, f->module - 1);
        }
        gt_sink_text(s, ",\"offset\":");
        gt_sink_int(s, f->offset > INT64_MAX ? INT64_MAX : (int64_t)f->offset);
    }
    if (f->file)
        text(m, ",\"file\":", f->file, s);
    if (f->line) {
        gt_sink_text(s, ",\"line\":");
        gt_sink_int(s, f->line);
    }
    gt_sink_text(s, f->exact ? ",\"exact\":true" : "");
    gt_sink_text(s, f->entry ? ",\"entry\":true" : "");
    gt_sink_text(s, f->inlined ? ",\"inlined\":true}" : "}");
}

static void list(const struct gt_model *m, const char *before, struct gt_list l, struct gt_sink *s)
{
    gt_sink_text(s, before);
    for (uint32_t i = 0; i < l.count; i++) {
        gt_sink_text(s, i ? "," : "");
        gt_sink_int(s, m->lists[l.first + i]);
    }
    gt_sink_text(s, "]");
}

void gt_out_json_stacks(const struct gt_model *m, struct gt_sink *s)
{
    uint8_t *why = gt_stacks_no_names(m);
    gt_sink_text(s, ",\n\"modules\":[");
    for (size_t i = 0; i < m->module_count; i++) {
        text(m, i ? ",\n{\"path\":" : "\n{\"path\":", m->modules[i].path, s);
        text(m, ",\"build_id\":", m->modules[i].build_id, s);
        if (why[i]) {
            gt_sink_text(s, ",\"no_names\":\"");
            gt_sink_text(s, gt_no_names[why[i]]);
            gt_sink_text(s, "\"");
        }
        gt_sink_text(s, "}");
    }
    free(why);
    gt_sink_text(s, "],\n\"frames\":[");
    for (size_t i = 0; i < m->frame_count; i++) {
        gt_sink_text(s, i ? ",\n" : "\n");
        frame(m, &m->frames[i], s);
    }
    gt_sink_text(s, "],\n\"stacks\":[");
    for (size_t i = 0; i < m->stack_count; i++) {
        list(m, i ? ",\n{\"python\":[" : "\n{\"python\":[", m->stacks[i].python, s);
        list(m, ",\"native\":[", m->stacks[i].native, s);
        gt_sink_text(s, "}");
    }
    gt_sink_text(s, "]");
}
