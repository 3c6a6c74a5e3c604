/* Stacks of a model: modules, frames and lists of frames, each kept once. Called by the loaders;
 * single thread. */
#include "report/model.h"
#include "report/mem.h"
#include "report/symbols.h"
#include <stdlib.h>
#include <string.h>

const char *const gt_stack_kinds[GT_STACK_KINDS] = {"python", "native", "text", "note"};

const char *const gt_no_names[GT_NO_NAMES] = {
    NULL, "no file", "gone", "another build", "unreadable", "no ELF file", "no symbols"};

/* A table of ids (1 + position) by hash, for one of the three arrays. */
struct index {
    uint32_t **slots;
    size_t *size;
    uint64_t (*hash)(const struct gt_model *m, size_t at);
};

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

static uint64_t hash_of_module(const struct gt_model *m, size_t at)
{
    return mix(mix(1, m->modules[at].path), m->modules[at].build_id);
}

static uint64_t hash_of_frame(const struct gt_model *m, size_t at)
{
    const struct gt_stack_frame *f = &m->frames[at];
    uint64_t h = mix(f->kind, f->exact | f->entry << 1 | f->inlined << 2 | (uint64_t)f->line << 8);
    h = mix(h, f->function | (uint64_t)f->file << 32);
    return mix(mix(h, f->module), f->offset);
}

static uint64_t hash_of_stack(const struct gt_model *m, size_t at)
{
    const struct gt_stack *s = &m->stacks[at];
    uint64_t h = mix(s->python.count, s->native.count);
    for (uint32_t i = 0; i < s->python.count; i++)
        h = mix(h, m->lists[s->python.first + i]);
    for (uint32_t i = 0; i < s->native.count; i++)
        h = mix(h, m->lists[s->native.first + i]);
    return h;
}

static void rebuild(const struct gt_model *m, const struct index *x, size_t count, size_t size)
{
    free(*x->slots);
    *x->slots = gt_mem_new(size, sizeof **x->slots);
    *x->size = size;
    for (size_t i = 0; i < count; i++) {
        size_t at = x->hash(m, i) & (size - 1);
        while ((*x->slots)[at])
            at = (at + 1) & (size - 1);
        (*x->slots)[at] = (uint32_t)i + 1;
    }
}

/* Makes room for one more than `count`. */
static void reserve(const struct gt_model *m, const struct index *x, size_t count)
{
    if (count * 2 >= *x->size)
        rebuild(m, x, count, *x->size ? *x->size * 2 : 256);
}

/* The id of the last element, which is taken away again where an equal one was there before. */
static uint32_t settle(const struct gt_model *m, const struct index *x, size_t *count,
                       int (*same)(const struct gt_model *m, size_t a, size_t b))
{
    size_t last = *count - 1, at = x->hash(m, last) & (*x->size - 1);
    for (; (*x->slots)[at]; at = (at + 1) & (*x->size - 1))
        if (same(m, (*x->slots)[at] - 1, last)) {
            --*count;
            return (*x->slots)[at];
        }
    return (*x->slots)[at] = (uint32_t)*count;
}

static int same_module(const struct gt_model *m, size_t a, size_t b)
{
    return m->modules[a].path == m->modules[b].path &&
           m->modules[a].build_id == m->modules[b].build_id;
}

uint32_t gt_stacks_module(struct gt_model *m, const struct gt_stack_module *module)
{
    struct index x = {&m->module_hash, &m->module_hash_size, hash_of_module};
    reserve(m, &x, m->module_count);
    gt_mem_grow(&m->modules, &m->module_room, m->module_count, sizeof *m->modules);
    m->modules[m->module_count++] = *module;
    return settle(m, &x, &m->module_count, same_module);
}

static int same_frame(const struct gt_model *m, size_t a, size_t b)
{
    const struct gt_stack_frame *f = &m->frames[a], *g = &m->frames[b];
    return f->kind == g->kind && f->exact == g->exact && f->entry == g->entry &&
           f->inlined == g->inlined && f->line == g->line && f->function == g->function &&
           f->file == g->file && f->module == g->module && f->offset == g->offset;
}

uint32_t gt_stacks_frame(struct gt_model *m, const struct gt_stack_frame *frame)
{
    struct index x = {&m->frame_hash, &m->frame_hash_size, hash_of_frame};
    reserve(m, &x, m->frame_count);
    gt_mem_grow(&m->frames, &m->frame_room, m->frame_count, sizeof *m->frames);
    m->frames[m->frame_count] = *frame;
    m->frames[m->frame_count++].text = 0;
    return settle(m, &x, &m->frame_count, same_frame) - 1;
}

static int same_list(const struct gt_model *m, struct gt_list a, struct gt_list b)
{
    return a.count == b.count && (!a.count || !memcmp(m->lists + a.first, m->lists + b.first,
                                                      a.count * sizeof *m->lists));
}

static int same_stack(const struct gt_model *m, size_t a, size_t b)
{
    return same_list(m, m->stacks[a].python, m->stacks[b].python) &&
           same_list(m, m->stacks[a].native, m->stacks[b].native);
}

uint32_t gt_stacks_add(struct gt_model *m, const uint32_t *python, size_t pythons,
                       const uint32_t *native, size_t natives)
{
    struct index x = {&m->stack_hash, &m->stack_hash_size, hash_of_stack};
    size_t lists = m->list_count, count = m->stack_count;
    if (!pythons && !natives)
        return 0;
    reserve(m, &x, m->stack_count);
    gt_mem_grow(&m->stacks, &m->stack_room, m->stack_count, sizeof *m->stacks);
    struct gt_stack *s = &m->stacks[m->stack_count++];
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < pythons; i++)
        gt_model_list(m, &s->python, python[i]);
    for (size_t i = 0; i < natives; i++)
        gt_model_list(m, &s->native, native[i]);
    uint32_t id = settle(m, &x, &m->stack_count, same_stack);
    if (m->stack_count == count)
        m->list_count = lists;
    return id;
}

uint32_t gt_stacks_texts(struct gt_model *m, const gt_text *texts, size_t count)
{
    uint32_t *ids = gt_mem_new(count, sizeof *ids);
    for (size_t i = 0; i < count; i++) {
        struct gt_stack_frame f = {.kind = GT_STACK_IS_TEXT, .function = texts[i]};
        ids[i] = gt_stacks_frame(m, &f);
        m->frames[ids[i]].text = texts[i];
    }
    uint32_t id = gt_stacks_add(m, ids, count, NULL, 0);
    if (id)
        m->stacks[id - 1].shown = m->stacks[id - 1].python;
    free(ids);
    return id;
}

static struct gt_list replaced(struct gt_model *m, struct gt_list old, const struct gt_list *by,
                               size_t count)
{
    struct gt_list new = {0};
    for (uint32_t i = 0; i < old.count; i++) {
        uint32_t frame = m->lists[old.first + i];
        struct gt_list l = {0};
        if (frame < count)
            l = by[frame];
        if (!l.count)
            gt_model_list(m, &new, frame);
        for (uint32_t k = 0; k < l.count; k++)
            gt_model_list(m, &new, m->lists[l.first + k]);
    }
    return new;
}

void gt_stacks_replace(struct gt_model *m, const struct gt_list *by, size_t count)
{
    for (size_t i = 0; i < m->stack_count; i++)
        m->stacks[i].native = replaced(m, m->stacks[i].native, by, count);
    /* other contents, other places */
    struct index x = {&m->stack_hash, &m->stack_hash_size, hash_of_stack};
    if (m->stack_count)
        rebuild(m, &x, m->stack_count, m->stack_hash_size);
}

uint8_t *gt_stacks_no_names(const struct gt_model *m)
{
    uint8_t *named = gt_mem_new(m->module_count + 1, 1);
    uint8_t *why = gt_mem_new(m->module_count + 1, 1);
    for (size_t i = 0; i < m->frame_count; i++)
        if (m->frames[i].module && m->frames[i].function)
            named[m->frames[i].module - 1] = 1;
    for (size_t i = 0; i < m->frame_count; i++) {
        uint32_t module = m->frames[i].module;
        if (module && !named[module - 1])
            why[module - 1] = m->modules[module - 1].no_names;
    }
    free(named);
    return why;
}

struct gt_list gt_stacks_shown(const struct gt_model *m, uint32_t stack, uint32_t most)
{
    struct gt_list none = {0}, all = stack ? m->stacks[stack - 1].shown : none;
    if (most && all.count > most)
        all.count = most;
    return all;
}

gt_text gt_stacks_text(const struct gt_model *m, struct gt_list shown, uint32_t i)
{
    return m->frames[m->lists[shown.first + i]].text;
}
