/* CPU self time (or the device time that each range launched, its kernels below it) by call path,
 * `root;…;leaf N` with whole µs, as flame graphs take it and PyTorch's export_stacks writes it.
 * Equal paths of all threads and processes are one line. Walks without recursion. See writer.h. */
#include "core/layout.h"
#include "report/arrange.h"
#include "report/mem.h"
#include "report/writer.h"
#include <stdlib.h>

/* What lies deeper counts as `(deep)`: a path is as long as it is deep, so a chain of 10,000 ranges
 * would be 500 MB. */
#define DEEPEST 1000

struct path {
    uint32_t parent; /* 1 + its path, 0: outermost */
    uint32_t depth;
    gt_text label;
    int deep;
    int64_t self_ns;
};

struct paths {
    struct path *all;
    uint32_t *hash; /* 1 + path */
    size_t count, room, hash_size;
};

static size_t slot_of(const struct paths *t, const struct path *p)
{
    uint64_t h = ((uint64_t)p->parent << 32 | p->label) * 0x9e3779b97f4a7c15u;
    size_t at = (h ^ h >> 29 ^ (unsigned)p->deep) & (t->hash_size - 1);
    while (t->hash[at]) {
        const struct path *o = &t->all[t->hash[at] - 1];
        if (o->parent == p->parent && o->label == p->label && o->deep == p->deep)
            break;
        at = (at + 1) & (t->hash_size - 1);
    }
    return at;
}

/* 1 + the path of that label below `parent` (likewise). */
static uint32_t below(struct paths *t, uint32_t parent, gt_text label)
{
    struct path p = {.parent = parent, .label = label};
    if (parent && t->all[parent - 1].deep)
        return parent;
    p.depth = parent ? t->all[parent - 1].depth + 1 : 1;
    p.deep = p.depth > DEEPEST;
    p.label = p.deep ? 0 : label;
    if (t->count * 2 >= t->hash_size) {
        free(t->hash);
        t->hash_size *= 2;
        t->hash = gt_mem_new(t->hash_size, sizeof *t->hash);
        for (size_t i = 0; i < t->count; i++)
            t->hash[slot_of(t, &t->all[i])] = (uint32_t)i + 1;
    }
    size_t at = slot_of(t, &p);
    if (!t->hash[at]) {
        gt_mem_grow(&t->all, &t->room, t->count, sizeof *t->all);
        t->all[t->count++] = p;
        t->hash[at] = (uint32_t)t->count;
    }
    return t->hash[at];
}

/* A blank ends the path, a semicolon a name: what could be taken for them becomes `_`, as do
 * control characters. */
static void name(const struct gt_model *m, const struct path *p, struct gt_sink *s)
{
    const char *text = p->deep ? "(deep)" : gt_model_string(m, p->label, NULL);
    if (!*text)
        gt_sink_text(s, "_");
    while (*text) {
        size_t n = 0;
        while ((unsigned char)text[n] > ' ' && text[n] != ';' && text[n] != 0x7f)
            n++;
        gt_sink_put(s, text, n);
        text += n;
        if (*text) {
            gt_sink_text(s, "_");
            text++;
        }
    }
}

static void line(const struct gt_model *m, const struct paths *t, size_t leaf, uint32_t *stack,
                 struct gt_sink *s)
{
    size_t n = 0;
    for (uint32_t at = (uint32_t)leaf + 1; at; at = t->all[at - 1].parent)
        stack[n++] = at - 1;
    while (n--) {
        name(m, &t->all[stack[n]], s);
        gt_sink_text(s, n ? ";" : " ");
    }
    gt_sink_int(s, t->all[leaf].self_ns / 1000);
    gt_sink_text(s, "\n");
}

/* The time of a kernel is the call's that launched it, too: it moves from the call's path to one
 * below, so that all paths together stay what was launched. */
static void move_down(struct paths *t, uint32_t from, int64_t *left, const struct gt_row *kernel)
{
    int64_t ns = kernel->self_device_ns < *left ? kernel->self_device_ns : *left;
    if (!from || ns <= 0)
        return;
    *left -= ns;
    t->all[from - 1].self_ns -= ns;
    struct path *p = &t->all[below(t, from, kernel->label) - 1];
    p->self_ns = gt_add(p->self_ns, ns);
}

static void write_folded(const struct gt_model *m, int device, struct gt_sink *s)
{
    struct paths t = {.room = 64, .hash_size = 256};
    uint32_t *of = gt_mem_new(m->row_count, sizeof *of);    /* of a row: 1 + path */
    int64_t *left = gt_mem_new(m->row_count, sizeof *left); /* of a row: what no kernel took */
    uint32_t *stack = gt_mem_new(DEEPEST + 1, sizeof *stack);
    t.all = gt_mem_new(t.room, sizeof *t.all);
    t.hash = gt_mem_new(t.hash_size, sizeof *t.hash);
    for (size_t i = 0; i < m->row_count; i++) {
        const struct gt_row *r = &m->rows[i];
        if (r->kind != GT_KIND_RANGE)
            continue;
        if (r->device != GT_CPU) {
            if (device && r->parent >= 0 && m->rows[r->parent].device == GT_CPU)
                move_down(&t, of[r->parent], &left[r->parent], r);
            continue;
        }
        of[i] = below(&t, r->parent >= 0 ? of[r->parent] : 0, r->label);
        struct path *p = &t.all[of[i] - 1];
        left[i] = device ? r->self_device_ns : r->self_ns;
        p->self_ns = gt_add(p->self_ns, left[i]);
    }
    for (size_t i = 0; i < t.count; i++)
        if (t.all[i].self_ns >= 1000)
            line(m, &t, i, stack, s);
    free(of);
    free(left);
    free(stack);
    free(t.all);
    free(t.hash);
}

void gt_out_folded(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s)
{
    struct gt_model room;
    write_folded(gt_arrange(&room, m, o->group_by), o->device, s);
    gt_arrange_fini(&room);
}
