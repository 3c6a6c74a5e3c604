/* How kernels were launched, in the native JSON: the object `launch` of a row of a device, written
 * and read. Called by out_json.c and load_json.c. */
#include "report/json_read.h"
#include "report/writer.h"

static void three(struct gt_sink *s, const char *name, const uint32_t *v)
{
    if (v[0] | v[1] | v[2])
        gt_sink_format(s, ",\"%s\":[%u,%u,%u]", name, v[0], v[1], v[2]);
}

static void some(struct gt_sink *s, const char *name, int64_t value)
{
    if (value) {
        gt_sink_format(s, ",\"%s\":", name);
        gt_sink_int(s, value);
    }
}

void gt_out_json_launched(const struct gt_model *m, uint32_t launched, struct gt_sink *s)
{
    if (!launched)
        return;
    const struct gt_launched *l = &m->launched[launched - 1];
    gt_sink_format(s, ",\"launch\":{\"device\":%u", l->device);
    three(s, "grid", l->grid);
    three(s, "block", l->block);
    some(s, "shared_static", l->shared_static);
    some(s, "shared_dynamic", l->shared_dynamic);
    some(s, "registers", l->registers);
    some(s, "delays", l->delays);
    some(s, "delay_ns", l->delay_ns);
    some(s, "delay_max_ns", l->delay_max_ns);
    gt_sink_text(s, "}");
}

static void read_three(const struct gt_json_item *i, const char *name, uint32_t *v)
{
    const json_t *list = json_object_get(i->object, name);
    if (!list)
        return;
    for (size_t k = 0; k < 3; k++) {
        const json_t *n = json_array_get(list, k);
        json_int_t value = json_integer_value(n);
        if (!json_is_integer(n) || json_array_size(list) != 3 || value < 0 || value > UINT32_MAX) {
            gt_json_bad(i, name);
            return;
        }
        v[k] = (uint32_t)value;
    }
}

uint32_t gt_json_launched(const struct gt_json_item *row)
{
    struct gt_json_item i = *row;
    i.object = json_object_get(row->object, "launch");
    if (!i.object)
        return 0;
    if (!json_is_object(i.object)) {
        gt_json_bad(row, "launch");
        return 0;
    }
    struct gt_launched *l = gt_model_launched(i.r->m);
    l->device = (uint32_t)gt_json_integer(&i, "device", 0, UINT32_MAX);
    read_three(&i, "grid", l->grid);
    read_three(&i, "block", l->block);
    l->shared_static = (uint32_t)gt_json_integer(&i, "shared_static", 0, UINT32_MAX);
    l->shared_dynamic = (uint32_t)gt_json_integer(&i, "shared_dynamic", 0, UINT32_MAX);
    l->registers = (uint32_t)gt_json_integer(&i, "registers", 0, UINT32_MAX);
    l->delays = gt_json_amount(&i, "delays");
    l->delay_ns = gt_json_amount(&i, "delay_ns");
    l->delay_max_ns = gt_json_amount(&i, "delay_max_ns");
    return (uint32_t)i.r->m->launched_count;
}
