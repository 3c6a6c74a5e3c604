/* Saved native JSON -> model. Reads what out_json.c says is the exact part: processes with their
 * threads, call_tree, open, and the stacks of load_json_stacks.c. All else there is made from these
 * and is stepped over. See load.h; single thread. */
#include "core/layout.h"
#include "report/json_read.h"
#include "report/load.h"
#include "report/load_json_stacks.h"
#include "report/mem.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* {"IPC": {"ratio": 1.2}} */
static void read_metrics(const struct gt_json_item *i, const json_t *object, const char *field,
                         struct gt_list *l)
{
    const char *name, *kind;
    json_t *holder;
    if (object && !json_is_object(object))
        gt_json_bad(i, field);
    json_object_foreach((json_t *)object, name, holder)
    {
        struct gt_metric *v = gt_model_metric(i->r->m, l);
        const json_t *value = json_object_iter_value(json_object_iter(holder));
        int k = 0;
        v->name = gt_model_textz(i->r->m, name);
        kind = json_object_iter_key(json_object_iter(holder));
        while (kind && k < GT_METRIC_KINDS && strcmp(gt_metric_names[k], kind))
            k++;
        if (!kind || k == GT_METRIC_KINDS || json_object_size(holder) != 1 ||
            (k == GT_METRIC_STRING  ? !json_is_string(value)
             : k == GT_METRIC_COUNT ? !json_is_integer(value)
                                    : !json_is_number(value))) {
            gt_json_bad(i, field);
            return;
        }
        v->kind = (uint8_t)k;
        if (k == GT_METRIC_STRING)
            v->text = gt_model_text(i->r->m, json_string_value(value), json_string_length(value));
        else if (k == GT_METRIC_COUNT)
            v->count = json_integer_value(value);
        else
            v->real = json_number_value(value);
    }
}

static void read_devices(const struct gt_json_item *i, uint32_t process)
{
    const json_t *object = json_object_get(i->object, "device_metrics");
    const char *name;
    json_t *of;
    if (object && !json_is_object(object))
        gt_json_bad(i, "device_metrics");
    json_object_foreach((json_t *)object, name, of)
    {
        struct gt_device_metrics d = {.process = process, .device = gt_model_textz(i->r->m, name)};
        read_metrics(i, of, "device_metrics", &d.metrics);
        *gt_model_device(i->r->m) = d;
    }
}

static void read_threads(const struct gt_json_item *p, uint32_t process)
{
    const json_t *array = json_object_get(p->object, "threads"), *v;
    struct gt_model *m = p->r->m;
    size_t k;
    if (array && !json_is_array(array))
        gt_json_bad(p, "threads");
    json_array_foreach((json_t *)array, k, v)
    {
        struct gt_json_item i = {p->r, v, "thread", k};
        if (!json_is_object(v) ||
            gt_json_integer(&i, "id", 0, UINT32_MAX) != (int64_t)(m->thread_count - p->r->thread0))
            gt_json_bad(&i, "id");
        struct gt_thread *t = gt_model_thread(m);
        t->process = process;
        t->slot = (uint32_t)gt_json_integer(&i, "slot", 0, UINT32_MAX);
        t->tid = (uint32_t)gt_json_integer(&i, "tid", 0, UINT32_MAX);
        t->threads = gt_json_amount(&i, "threads");
        t->name = gt_json_string(&i, "name");
    }
}

static void read_process(const struct gt_json_item *i)
{
    struct gt_model *m = i->r->m;
    uint32_t id = (uint32_t)m->process_count;
    struct gt_process *p = gt_model_process(m);
    struct gt_json_item lost = {i->r, json_object_get(i->object, "lost"), "losses of process",
                                i->index};
    p->pid = gt_json_integer(i, "pid", 0, INT32_MAX);
    p->ppid = gt_json_integer(i, "ppid", 0, UINT32_MAX);
    p->start_time = gt_json_amount(i, "start_time");
    p->sequence = gt_json_integer(i, "sequence", 0, UINT32_MAX);
    p->boot_id = gt_json_string(i, "boot_id");
    p->exe = gt_json_string(i, "exe");
    p->cwd = gt_json_string(i, "cwd");
    p->host = gt_json_string(i, "host");
    p->rank = gt_json_integer(i, "rank", -1, INT32_MAX);
    p->start_unix_ns = gt_json_amount(i, "start_unix_ns");
    p->duration_ns = gt_json_amount(i, "duration_ns");
    p->ended = (uint8_t)gt_json_word(i, "ended", gt_ended_names, GT_ENDED_KINDS, GT_ENDED_EXIT);
    p->clock = gt_json_string(i, "clock");
    p->approximate = (uint8_t)gt_json_truth(i, "approximate");
    p->memory_full = (uint8_t)gt_json_truth(i, "memory_full");
    p->crash_safe = (uint8_t)gt_json_truth(i, "crash_safe");
    p->end_known = (uint8_t)gt_json_truth(i, "end_known");
    p->profile_memory = (uint8_t)gt_json_truth(i, "profile_memory");
    p->device = (uint8_t)gt_json_word(i, "use_device", gt_use_devices, GT_DEVICES, GT_CPU);
    p->library = gt_json_string(i, "library");
    p->output = gt_json_string(i, "output");
    p->excluded = gt_json_amount(i, "excluded");
    p->call_ns = gt_json_real(i, "call_ns");
    if (!(p->call_ns > 0 && p->call_ns < 1e6))
        p->call_ns = 0;
    p->recorded_ns = json_object_get(i->object, "recorded_ns") ? gt_json_amount(i, "recorded_ns")
                                                               : p->duration_ns;
    gt_json_list(i, "argv", &p->argv);
    gt_json_list(i, "variables", &p->config);
    p->tvm = (uint8_t)gt_json_truth(i, "tvm");
    read_metrics(i, json_object_get(i->object, "settings"), "settings", &p->settings);
    read_devices(i, id);
    if (lost.object && !json_is_object(lost.object))
        gt_json_bad(i, "lost");
    for (int k = 0; k < GT_LOST_INDICES; k++)
        p->lost[k] = gt_json_amount(&lost, gt_lost_names[k]);
    read_threads(i, id);
}

static uint8_t source(const struct gt_json_item *i)
{
    const char *text = json_string_value(json_object_get(i->object, "source"));
    for (uint32_t k = 0; text && k < GT_SOURCES; k++)
        if (!strcmp(gt_source_name(k), text))
            return (uint8_t)k;
    return GT_SOURCE_NONE; /* of a later version */
}

static void read_values(const struct gt_json_item *row, struct gt_values *v)
{
    struct gt_json_item i = {row->r, json_object_get(row->object, "values"), "values of row",
                             row->index};
    if (!i.object)
        return;
    if (!json_is_object(i.object))
        gt_json_bad(row, "values");
    v->count = gt_json_amount(&i, "count");
    v->sum = gt_json_real(&i, "sum");
    v->min = gt_json_real(&i, "min");
    v->max = gt_json_real(&i, "max");
    v->last = gt_json_real(&i, "last");
}

static void read_row(const struct gt_json_item *i)
{
    static const char *const kinds[] = {NULL, "range", "async", "mark", "counter"};
    struct gt_json_reader *reader = i->r;
    struct gt_model *m = reader->m;
    const json_t *parent = json_object_get(i->object, "parent");
    int64_t above = json_is_integer(parent) ? json_integer_value(parent) : -1;
    size_t threads = m->thread_count - reader->thread0;
    struct gt_row *r = gt_model_row(m);
    if (above < -1 || above >= (int64_t)i->index)
        gt_json_bad(i, "parent");
    if (!threads || !json_object_get(i->object, "thread"))
        gt_json_bad(i, "thread");
    if (reader->bad)
        return;
    r->thread =
        (uint32_t)(reader->thread0 + (size_t)gt_json_integer(i, "thread", 0, (int64_t)threads - 1));
    r->parent = above < 0 ? -1 : (int32_t)(reader->row0 + (size_t)above);
    if (above >= 0 && m->rows[r->parent].thread != r->thread)
        gt_json_bad(i, "parent");
    r->key = gt_json_string(i, "key");
    r->domain = gt_json_string(i, "domain");
    r->category_name = gt_json_string(i, "category_name");
    r->shapes = gt_json_string(i, "shapes");
    r->overload = gt_json_string(i, "overload");
    r->category = (uint32_t)gt_json_integer(i, "category", 0, UINT32_MAX);
    r->stack = gt_json_stack_of(i);
    r->source = source(i);
    r->kind = (uint8_t)gt_json_word(i, "kind", kinds, 5, -1);
    r->scope = (uint8_t)gt_json_integer(i, "scope", 0, 255);
    r->device = (uint8_t)gt_json_word(i, "device", gt_device_names, GT_DEVICES, GT_CPU);
    r->count = gt_json_amount(i, "count");
    r->failed = gt_json_amount(i, "failed");
    /* negative below overlapping events: see event_tree.c */
    r->self_ns = gt_json_integer(i, "self_ns", INT64_MIN, INT64_MAX);
    r->total_ns = gt_json_amount(i, "total_ns");
    r->min_ns = gt_json_amount(i, "min_ns");
    r->max_ns = gt_json_amount(i, "max_ns");
    r->sumsq_ns2 = gt_json_real(i, "sumsq_ns2");
    r->self_device_ns = gt_json_amount(i, "self_device_ns");
    r->device_ns = gt_json_amount(i, "device_ns");
    r->launched = gt_json_launched(i);
    r->bytes = gt_json_amount(i, "bytes");
    r->flops = gt_json_amount(i, "flops");
    r->memory = gt_json_integer(i, "cpu_memory", INT64_MIN, INT64_MAX);
    r->self_memory = gt_json_integer(i, "self_cpu_memory", INT64_MIN, INT64_MAX);
    r->device_memory = gt_json_integer(i, "device_memory", INT64_MIN, INT64_MAX);
    r->self_device_memory = gt_json_integer(i, "self_device_memory", INT64_MIN, INT64_MAX);
    r->driver_memory = gt_json_integer(i, "driver_memory", INT64_MIN, INT64_MAX);
    r->self_driver_memory = gt_json_integer(i, "self_driver_memory", INT64_MIN, INT64_MAX);
    r->leaked = gt_json_amount(i, "leaked");
    read_values(i, &r->values);
    read_metrics(i, json_object_get(i->object, "metrics"), "metrics", &r->metrics);
    r->flags = (gt_json_truth(i, "folded") ? GT_ROW_FOLDED : 0) |
               (gt_json_truth(i, "torn") ? GT_ROW_TORN : 0) |
               (gt_json_truth(i, "is_legacy") ? GT_ROW_LEGACY : 0) |
               (gt_json_truth(i, "is_remote") ? GT_ROW_REMOTE : 0) |
               (gt_json_truth(i, "is_user_annotation") ? GT_ROW_ANNOTATION : 0) |
               (r->kind == GT_KIND_ASYNC ? GT_ROW_ASYNC : 0);
}

static void read_open(const struct gt_json_item *i)
{
    struct gt_model *m = i->r->m;
    int64_t rows = (int64_t)(m->row_count - i->r->row0);
    if (!json_is_integer(json_object_get(i->object, "row")) || !rows) {
        gt_json_bad(i, "row");
        return;
    }
    int64_t row = gt_json_integer(i, "row", 0, rows - 1);
    int64_t since = gt_json_amount(i, "since_ns");
    struct gt_open *o = gt_model_open(m);
    o->row = (int32_t)((int64_t)i->r->row0 + row);
    o->since_ns = since;
}

enum { FORMAT, VERSION, PROCESSES, CALL_TREE, OPEN, MODULES, FRAMES, STACKS, SECTIONS };
static const char *const names[SECTIONS] = {"format", "version", "processes", "call_tree",
                                            "open",   "modules", "frames",    "stacks"};

static void load_report(struct gt_json_reader *r, const struct gt_span *found)
{
    struct gt_json_stacks *known = r->own = gt_mem_new(1, sizeof *known);
    gt_json_each(r, found[PROCESSES], "processes", "process", read_process);
    /* older ones may have none of these */
    if (found[MODULES].at)
        gt_json_each(r, found[MODULES], "modules", "module", gt_json_read_module);
    if (found[FRAMES].at)
        gt_json_each(r, found[FRAMES], "frames", "frame", gt_json_read_frame);
    if (found[STACKS].at)
        gt_json_each(r, found[STACKS], "stacks", "stack", gt_json_read_stack);
    gt_json_each(r, found[CALL_TREE], "call_tree", "row", read_row);
    gt_json_each(r, found[OPEN], "open", "open range", read_open);
    gt_json_stacks_free(known);
}

/* What the file says it is, once it is known to be something that we can read; else NULL. */
static const char *format_of(struct gt_json_reader *r, const struct gt_span *found)
{
    static const char *const formats[] = {"gputally-report", "gputally-events"};
    json_t *format = found[FORMAT].at ? gt_json_value(r, found[FORMAT]) : NULL;
    json_t *version = found[VERSION].at ? gt_json_value(r, found[VERSION]) : NULL;
    const char *text = json_string_value(format), *known = NULL;
    for (size_t i = 0; text && i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(text, formats[i]))
            known = formats[i];
    if (!known)
        gt_err_set(r->e, -ENODATA, "%s: not a gputally report", r->path);
    else if (!json_is_integer(version) || json_integer_value(version) < 1)
        gt_err_set(r->e, -ENODATA, "%s: damaged report: bad version", r->path);
    else if (json_integer_value(version) > 1)
        gt_err_set(r->e, -ENODATA, "%s: made by a newer gputally (format %lld, we know 1)", r->path,
                   (long long)json_integer_value(version));
    r->bad |= r->e->message[0] != 0;
    json_decref(format);
    json_decref(version);
    return r->bad ? NULL : known;
}

int gt_load_json(struct gt_model *m, const struct gt_input *in, struct gt_err *e)
{
    const char *text = (const char *)in->data, *format;
    struct gt_json_reader r = {.m = m,
                               .e = e,
                               .path = in->path,
                               .text = {text, text + in->bytes},
                               .process0 = m->process_count,
                               .thread0 = m->thread_count,
                               .row0 = m->row_count};
    struct gt_span found[SECTIONS] = {{0}};
    if (!in->bytes)
        return gt_err_set(e, -ENODATA, "%s: the file is empty", in->path);
    json_set_alloc_funcs(gt_mem_try, free);
    if (gt_load_is_tvm(in)) {
        /* ours have a member of that name too, but not without "format" */
        struct gt_err ignored = {""};
        struct gt_json_reader look = r;
        look.e = &ignored;
        gt_json_members(&look, names, SECTIONS, found);
        if (!found[FORMAT].at)
            return gt_load_tvm(m, in, e);
        memset(found, 0, sizeof found);
    }
    gt_json_members(&r, names, SECTIONS, found);
    format = r.bad ? NULL : format_of(&r, found);
    if (format && !strcmp(format, "gputally-events")) {
        gt_load_events(&r);
    } else if (format) {
        load_report(&r, found);
    }
    if (r.bad)
        return -ENODATA;
    gt_model_finish(m, r.thread0, r.row0);
    return 0;
}
