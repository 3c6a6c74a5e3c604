/* A list of events (docs/format.md) -> model: what a profiler that keeps single events has, such as
 * PyTorch's FunctionEvents. The tree is built as PyTorch's EventList builds it: on each thread by
 * nesting, an event that overlaps another only in part is not below it, and an event that is the
 * only one below another of its name is taken for that one. Called by load_json.c; single thread.
 */
#include "core/layout.h"
#include "report/json_read.h"
#include "report/load.h"
#include "report/load_events.h"
#include "report/mem.h"
#include "report/sink.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 73 years: what is far from the ends of int64 can be subtracted. */
#define MOST (INT64_MAX / 4)

static int64_t ns_of(const struct gt_json_item *i, const char *field)
{
    const json_t *v = json_object_get(i->object, field);
    double us = json_number_value(v);
    if (!json_is_number(v) || !(fabs(us) <= (double)MOST / 1000)) {
        gt_json_bad(i, field);
        return 0;
    }
    return json_is_integer(v) ? json_integer_value(v) * 1000 : llround(us * 1000);
}

/* As Python's str() of the list, which PyTorch prints. Returns 0 where it is no list of lists. */
static int put_shapes(struct gt_sink *text, const json_t *v, int depth)
{
    const json_t *element;
    size_t k;
    gt_sink_text(text, "[");
    json_array_foreach((json_t *)v, k, element)
    {
        if (k)
            gt_sink_text(text, ", ");
        if (json_is_integer(element))
            gt_sink_int(text, json_integer_value(element));
        else if (!json_is_array(element) || depth == 6 || !put_shapes(text, element, depth + 1))
            return 0;
    }
    gt_sink_text(text, "]");
    return 1;
}

static gt_text read_shapes(const struct gt_json_item *i)
{
    const json_t *v = json_object_get(i->object, "input_shapes");
    gt_text id = 0;
    if (!v || json_is_null(v) || json_is_string(v))
        return json_is_string(v) ? gt_json_string(i, "input_shapes") : 0;
    struct gt_sink text;
    gt_sink_open(&text, -1);
    if (json_is_array(v) && put_shapes(&text, v, 0))
        id = gt_model_text(i->r->m, text.data, text.used);
    else
        gt_json_bad(i, "input_shapes");
    gt_sink_close(&text);
    return id;
}

static uint32_t read_stack(const struct gt_json_item *i)
{
    const json_t *array = json_object_get(i->object, "stack"), *v;
    size_t k, n = json_array_size(array);
    gt_text *frames = gt_mem_new(n, sizeof *frames);
    if (array && !json_is_array(array) && !json_is_null(array))
        gt_json_bad(i, "stack");
    json_array_foreach((json_t *)array, k, v)
    {
        if (!json_is_string(v))
            gt_json_bad(i, "stack");
        else
            frames[k] = gt_model_text(i->r->m, json_string_value(v), json_string_length(v));
    }
    uint32_t id = gt_stacks_texts(i->r->m, frames, n);
    free(frames);
    return id;
}

/* Time of the kernels that the event itself launched. */
static int64_t read_kernels(const struct gt_json_item *i)
{
    const json_t *array = json_object_get(i->object, "kernels"), *v;
    int64_t sum = 0;
    size_t k;
    if (array && !json_is_array(array))
        gt_json_bad(i, "kernels");
    json_array_foreach((json_t *)array, k, v)
    {
        struct gt_json_item kernel = {i->r, v, "kernel of event", i->index};
        int64_t ns = ns_of(&kernel, "duration_us");
        if (ns < 0)
            gt_json_bad(&kernel, "duration_us");
        else
            sum = gt_add(sum, ns);
    }
    return sum;
}

static void read_event(const struct gt_json_item *i)
{
    struct gt_events *list = i->r->own;
    struct gt_event e = {.parent = -1, .row = -1};
    struct gt_row name = {0};
    if (!json_is_string(json_object_get(i->object, "name")))
        gt_json_bad(i, "name");
    name.key = gt_json_string(i, "name");
    gt_model_label(i->r->m, &name);
    e.name = name.label;
    e.overload = gt_json_string(i, "overload_name");
    e.shapes = read_shapes(i);
    e.stack = read_stack(i);
    e.start_ns = ns_of(i, "start_us");
    e.end_ns = ns_of(i, "end_us");
    if (e.end_ns < e.start_ns)
        gt_json_bad(i, "end_us");
    e.thread = gt_json_integer(i, "thread", INT64_MIN, INT64_MAX);
    e.node =
        json_object_get(i->object, "node_id") ? gt_json_integer(i, "node_id", -1, INT32_MAX) : -1;
    e.scope = (uint8_t)gt_json_integer(i, "scope", 0, 255);
    e.device = (uint8_t)gt_json_word(i, "device_type", gt_device_names, GT_DEVICES, GT_CPU);
    e.kernel_ns = read_kernels(i);
    e.flops = gt_json_amount(i, "flops");
    e.memory = gt_json_integer(i, "cpu_memory_usage", -MOST, MOST);
    e.device_memory = gt_json_integer(i, "device_memory_usage", -MOST, MOST);
    e.flags = (gt_json_truth(i, "is_async") ? GT_ROW_ASYNC : 0) |
              (gt_json_truth(i, "is_remote") ? GT_ROW_REMOTE : 0) |
              (gt_json_truth(i, "is_legacy") ? GT_ROW_LEGACY : 0) |
              (gt_json_truth(i, "is_user_annotation") ? GT_ROW_ANNOTATION : 0);
    if (list->count >= INT32_MAX)
        gt_json_bad(i, "{");
    if (i->r->bad)
        return;
    gt_mem_grow(&list->events, &list->room, list->count, sizeof *list->events);
    list->events[list->count++] = e;
}

enum { EVENTS, USE_DEVICE, PROFILE_MEMORY, SECTIONS };
static const char *const names[SECTIONS] = {"events", "use_device", "profile_memory"};

/* One of what was asked for, from outside the list. Returns 0, or 1 if it can't be that. */
static int read_switch(struct gt_events *list, int section, const json_t *v)
{
    if (section == PROFILE_MEMORY) {
        list->profile_memory = json_is_true(v);
        return !json_is_boolean(v);
    }
    for (uint8_t d = 1; json_is_string(v) && d < GT_DEVICES; d++)
        if (!strcmp(json_string_value(v), gt_use_devices[d]))
            list->device = d;
    return !list->device && !json_is_null(v);
}

static void read_switches(struct gt_json_reader *r, const struct gt_span *found,
                          struct gt_events *list)
{
    for (int i = USE_DEVICE; i < SECTIONS && !r->bad; i++) {
        json_t *v = found[i].at ? gt_json_value(r, found[i]) : NULL;
        if (v && read_switch(list, i, v)) {
            gt_err_set(r->e, -ENODATA, "%s: damaged report: bad \"%s\"", r->path, names[i]);
            r->bad = 1;
        }
        json_decref(v);
    }
}

void gt_load_events(struct gt_json_reader *r)
{
    struct gt_events *list = r->own = gt_mem_new(1, sizeof *list);
    struct gt_span found[SECTIONS] = {{0}};
    gt_json_members(r, names, SECTIONS, found);
    read_switches(r, found, list);
    gt_json_each(r, found[EVENTS], "events", "event", read_event);
    if (!r->bad)
        gt_events_build(r->m, list, r->text.at, (size_t)(r->text.end - r->text.at));
    free(list->events);
    free(list);
}
