/* See arrange.h. */
#include "report/arrange.h"
#include "core/layout.h"
#include "report/group.h"
#include "report/mem.h"
#include <stdlib.h>
#include <string.h>

/* Rows for frames, at most: 300 MB. Only a file made for it has more; what is beyond has none. */
#define MOST_FRAMES (1u << 20)

struct arrange {
    const struct gt_model *m;
    struct gt_model *to;
    uint32_t *hash; /* 1 + row of `to` */
    size_t hash_size, frames;
    unsigned by;
};

/* What keeps two places apart, but for the row above. */
static const uint32_t identity_flags =
    GT_ROW_FOLDED | GT_ROW_ASYNC | GT_ROW_ANNOTATION | GT_ROW_LEGACY | GT_ROW_REMOTE | GT_ROW_FRAME;

/* How a device's row was launched: kernels of other sizes are other places. */
static const struct gt_launched *launch_of(const struct arrange *a, const struct gt_row *r)
{
    static const struct gt_launched none;
    return r->launched ? &a->m->launched[r->launched - 1] : &none;
}

static uint64_t hash_of(const struct arrange *a, const struct gt_row *r)
{
    const struct gt_launched *l = launch_of(a, r);
    uint64_t h = ((uint64_t)(uint32_t)r->parent << 32 | r->key) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29 ^ r->domain ^ (uint64_t)r->category << 32) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 31 ^ r->shapes ^ (uint64_t)r->overload << 32) * 0xc4ceb9fe1a85ec53u;
    h ^= (uint64_t)r->thread << 32 ^ (uint64_t)r->source << 24 ^ (uint64_t)r->kind << 16 ^
         (uint64_t)r->scope << 8 ^ (r->flags & identity_flags);
    h ^= l->grid[0] ^ (uint64_t)l->block[0] << 20 ^ (uint64_t)l->shared_dynamic << 40;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

static int same(const struct arrange *of, const struct gt_row *a, const struct gt_row *b)
{
    return a->parent == b->parent && a->thread == b->thread && a->key == b->key &&
           a->domain == b->domain && a->category == b->category && a->shapes == b->shapes &&
           a->overload == b->overload && a->source == b->source && a->kind == b->kind &&
           a->scope == b->scope && a->device == b->device &&
           (a->flags & identity_flags) == (b->flags & identity_flags) &&
           !memcmp(launch_of(of, a), launch_of(of, b), offsetof(struct gt_launched, delays));
}

static void grow(struct arrange *a)
{
    free(a->hash);
    a->hash_size = a->hash_size ? a->hash_size * 2 : 1024;
    a->hash = gt_mem_new(a->hash_size, sizeof *a->hash);
    for (size_t i = 0; i < a->to->row_count; i++) {
        size_t at = hash_of(a, &a->to->rows[i]) & (a->hash_size - 1);
        while (a->hash[at])
            at = (at + 1) & (a->hash_size - 1);
        a->hash[at] = (uint32_t)i + 1;
    }
}

/* The row of that identity; *made tells whether it is a new one, and a copy of *want. */
static int32_t place(struct arrange *a, const struct gt_row *want, int *made)
{
    if (a->to->row_count * 2 >= a->hash_size)
        grow(a);
    size_t at = hash_of(a, want) & (a->hash_size - 1);
    for (; a->hash[at]; at = (at + 1) & (a->hash_size - 1))
        if (same(a, &a->to->rows[a->hash[at] - 1], want)) {
            *made = 0;
            return (int32_t)a->hash[at] - 1;
        }
    *made = 1;
    *gt_model_row(a->to) = *want;
    a->hash[at] = (uint32_t)a->to->row_count;
    return (int32_t)a->to->row_count - 1;
}

static void add(struct gt_row *to, const struct gt_row *r)
{
    if (r->count > 0) {
        to->min_ns = !to->count || r->min_ns < to->min_ns ? r->min_ns : to->min_ns;
        to->max_ns = !to->count || r->max_ns > to->max_ns ? r->max_ns : to->max_ns;
    }
#define ADD(field) to->field = gt_add(to->field, r->field)
    GT_SUMMED(ADD);
#undef ADD
    to->sumsq_ns2 += r->sumsq_ns2;
    to->flags |= r->flags;
    gt_values_add(&to->values, &r->values);
}

/* How many outer frames of a stack the one above it has too. The function that opened the range
 * above stands below it again, with the line from which it called on. */
static uint32_t shared(const struct gt_model *m, struct gt_list of, struct gt_list above)
{
    uint32_t n = 0, most = of.count < above.count ? of.count : above.count;
    while (n < most &&
           gt_stacks_text(m, of, of.count - 1 - n) == gt_stacks_text(m, above, above.count - 1 - n))
        n++;
    return n;
}

/* The row that `r` is to be below. */
static int32_t put_frames(struct arrange *a, const struct gt_row *r, int32_t parent, uint32_t above)
{
    struct gt_list frames = gt_stacks_shown(a->m, r->stack, 0);
    uint32_t n = frames.count - shared(a->m, frames, gt_stacks_shown(a->m, above, 0));
    int made;
    if (GT_BY_FRAMES(a->by) && n > GT_BY_FRAMES(a->by))
        n = GT_BY_FRAMES(a->by);
    while (n-- && a->frames < MOST_FRAMES) {
        struct gt_row f = {.parent = parent,
                           .thread = r->thread,
                           .key = gt_stacks_text(a->m, frames, n),
                           .label = gt_stacks_text(a->m, frames, n),
                           .kind = GT_KIND_RANGE,
                           .flags = GT_ROW_FRAME};
        parent = place(a, &f, &made);
        a->frames += (size_t)made;
    }
    return parent;
}

static void arrange_rows(struct arrange *a, int32_t *to)
{
    const struct gt_model *m = a->m;
    uint32_t *above = gt_mem_new(m->row_count, sizeof *above); /* the innermost stack so far */
    for (size_t i = 0; i < m->row_count; i++) {
        struct gt_row r = m->rows[i];
        uint32_t outer = r.parent >= 0 ? above[r.parent] : 0;
        int made;
        r.parent = r.parent >= 0 ? to[r.parent] : -1;
        above[i] = r.stack ? r.stack : outer;
        if (a->by & GT_BY_STACK && r.stack && (r.kind == GT_KIND_RANGE || r.kind == GT_KIND_ASYNC))
            r.parent = put_frames(a, &r, r.parent, outer);
        if (m->processes[m->threads[r.thread].process]
                .tvm) { /* of a TVM report: each row is a call of its own */
            to[i] = (int32_t)a->to->row_count;
            *gt_model_row(a->to) = r;
            continue;
        }
        r.stack = 0;
        to[i] = place(a, &r, &made);
        if (!made)
            add(&a->to->rows[to[i]], &r);
    }
    free(above);
    for (size_t i = a->to->row_count; i-- > 0;) {
        const struct gt_row *r = &a->to->rows[i];
        struct gt_row *p = r->parent >= 0 ? &a->to->rows[r->parent] : NULL;
        if (!p || !(p->flags & GT_ROW_FRAME))
            continue;
        p->total_ns = gt_add(p->total_ns, r->total_ns);
        p->device_ns = gt_add(p->device_ns, r->device_ns);
    }
}

const struct gt_model *gt_arrange(struct gt_model *room, const struct gt_model *m, unsigned by)
{
    struct arrange a = {.m = m, .to = room, .by = by};
    size_t i = 0;
    memset(room, 0, sizeof *room);
    while (i < m->row_count && !m->rows[i].stack)
        i++;
    if (i == m->row_count)
        return m;
    *room = *m;
    room->row_count = 0;
    room->row_room = m->row_count;
    room->rows = gt_mem_new(room->row_room, sizeof *room->rows);
    int32_t *to = gt_mem_new(m->row_count, sizeof *to);
    arrange_rows(&a, to);
    room->open = gt_mem_new(m->open_count, sizeof *room->open);
    for (i = 0; i < m->open_count; i++)
        room->open[i] = (struct gt_open){to[m->open[i].row], m->open[i].since_ns};
    free(to);
    free(a.hash);
    return room;
}

void gt_arrange_fini(struct gt_model *room)
{
    if (room->rows) {
        free(room->rows);
        free(room->open);
    }
    memset(room, 0, sizeof *room);
}
