/* The stacks of a saved report: modules, frames, stacks, in this order. See load_json_stacks.h;
 * docs/format.md tells the fields. */
#include "report/load_json_stacks.h"
#include "report/mem.h"
#include "report/symbols.h"
#include <stdlib.h>

static void keep(struct gt_json_ids *known, uint32_t id)
{
    gt_mem_grow(&known->at, &known->room, known->count, sizeof *known->at);
    known->at[known->count++] = id;
}

void gt_json_read_module(const struct gt_json_item *i)
{
    struct gt_json_stacks *k = i->r->own;
    struct gt_stack_module module = {.path = gt_json_string(i, "path"),
                                     .build_id = gt_json_string(i, "build_id")};
    int why = gt_json_word(i, "no_names", gt_no_names, GT_NO_NAMES, 0);
    uint32_t id = gt_stacks_module(i->r->m, &module);
    if (why)
        i->r->m->modules[id - 1].no_names = (uint8_t)why;
    keep(&k->modules, id);
}

void gt_json_read_frame(const struct gt_json_item *i)
{
    struct gt_json_stacks *k = i->r->own;
    struct gt_stack_frame f = {0};
    f.kind = (uint8_t)gt_json_word(i, "kind", gt_stack_kinds, GT_STACK_KINDS, -1);
    f.function = gt_json_string(i, "function");
    f.file = gt_json_string(i, "file");
    f.line = (uint32_t)gt_json_integer(i, "line", 0, UINT32_MAX);
    f.offset = (uint64_t)gt_json_amount(i, "offset");
    f.exact = (uint8_t)gt_json_truth(i, "exact");
    f.entry = (uint8_t)gt_json_truth(i, "entry");
    f.inlined = (uint8_t)gt_json_truth(i, "inlined");
    if (json_object_get(i->object, "module")) {
        if (k->modules.count)
            f.module =
                k->modules.at[gt_json_integer(i, "module", 0, (int64_t)k->modules.count - 1)];
        else
            gt_json_bad(i, "module");
    }
    if (!i->r->bad)
        keep(&k->frames, gt_stacks_frame(i->r->m, &f));
}

/* Frames of the file -> of the model. The caller frees. */
static uint32_t *read_list(const struct gt_json_item *i, const char *field, size_t *count)
{
    const struct gt_json_stacks *k = i->r->own;
    const json_t *array = json_object_get(i->object, field), *v;
    uint32_t *ids = gt_mem_new(json_array_size(array), sizeof *ids);
    size_t n;
    *count = 0;
    if (array && !json_is_array(array))
        gt_json_bad(i, field);
    json_array_foreach((json_t *)array, n, v)
    {
        json_int_t at = json_is_integer(v) ? json_integer_value(v) : -1;
        if (at >= 0 && (size_t)at < k->frames.count)
            ids[(*count)++] = k->frames.at[at];
        else
            gt_json_bad(i, field);
    }
    return ids;
}

/* Before there were frames a stack was a list of texts. */
static uint32_t read_texts(const struct gt_json_item *i)
{
    struct gt_model *m = i->r->m;
    struct gt_list texts = {0};
    size_t before = m->list_count;
    gt_json_list(i, "frames", &texts);
    gt_text *copy = gt_mem_new(texts.count, sizeof *copy);
    for (uint32_t n = 0; n < texts.count; n++)
        copy[n] = m->lists[texts.first + n];
    m->list_count = before;
    uint32_t id = gt_stacks_texts(m, copy, texts.count);
    free(copy);
    return id;
}

void gt_json_read_stack(const struct gt_json_item *i)
{
    struct gt_json_stacks *k = i->r->own;
    uint32_t id;
    if (json_object_get(i->object, "frames")) {
        id = read_texts(i);
    } else {
        size_t pythons, natives;
        uint32_t *python = read_list(i, "python", &pythons);
        uint32_t *native = read_list(i, "native", &natives);
        id = gt_stacks_add(i->r->m, python, pythons, native, natives);
        free(python);
        free(native);
    }
    keep(&k->stacks, id);
}

uint32_t gt_json_stack_of(const struct gt_json_item *i)
{
    const struct gt_json_stacks *k = i->r->own;
    if (!json_object_get(i->object, "stack"))
        return 0;
    if (!k->stacks.count) {
        gt_json_bad(i, "stack");
        return 0;
    }
    return k->stacks.at[gt_json_integer(i, "stack", 0, (int64_t)k->stacks.count - 1)];
}

void gt_json_stacks_free(struct gt_json_stacks *k)
{
    free(k->modules.at);
    free(k->frames.at);
    free(k->stacks.at);
    free(k);
}
