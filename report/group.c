/* See group.h. */
#include "report/group.h"
#include "core/layout.h"
#include "report/mem.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct link {
    uint32_t from, to;
};

struct table {
    uint32_t *slots;
    size_t size;
};

static const struct gt_process *process_of(const struct gt_model *m, const struct gt_row *r)
{
    return &m->processes[m->threads[r->thread].process];
}

/* PyTorch's key_averages() has no is_async in its key: a name that ended here on its own thread and
 * there on another is one row, and says what the first one was. */
static uint32_t split(const struct gt_row *r)
{
    uint32_t by = GT_ROW_ANNOTATION | GT_ROW_LEGACY;
    return r->flags & (r->source == GT_SOURCE_TORCH ? by : by | GT_ROW_ASYNC);
}

/* 1 if the process ran on another host than the one of rank 0. */
static int is_remote(const struct gt_model *m, const struct gt_process *p)
{
    for (size_t i = 0; i < m->process_count; i++)
        if (m->processes[i].rank == 0)
            return m->processes[i].host != p->host;
    return 0;
}

static void identity(const struct gt_model *m, const struct gt_row *r, unsigned by,
                     struct gt_avg *want)
{
    const struct gt_process *p = process_of(m, r);
    memset(want, 0, sizeof *want);
    want->key = r->label;
    /* to PyTorch an operator without inputs is one whose inputs nobody saw */
    want->shapes = by & GT_BY_SHAPE && r->shapes != GT_TEXT_NO_SHAPES ? r->shapes : 0;
    want->overload = by & GT_BY_OVERLOAD ? r->overload : 0;
    if (by & GT_BY_STACK)
        want->stack = gt_stacks_shown(m, r->stack, GT_BY_FRAMES(by));
    want->device = r->device;
    want->flags = r->flags & (GT_ROW_ANNOTATION | GT_ROW_LEGACY | GT_ROW_ASYNC | GT_ROW_REMOTE);
    want->split = split(r);
    want->rank = p->rank;
    want->thread = by & GT_BY_THREAD ? (int64_t)r->thread : -1;
    want->host = p->host;
    want->scope = r->scope;
}

static uint64_t hash_of(const struct gt_model *m, const struct gt_avg *a, unsigned by)
{
    uint64_t h = a->key * 0x9e3779b97f4a7c15u;
    h = (h ^ a->shapes ^ (uint64_t)a->overload << 32) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 29 ^ (uint64_t)a->thread << 12 ^ a->device ^ a->split << 4) * 0xc4ceb9fe1a85ec53u;
    for (uint32_t i = 0; i < a->stack.count; i++)
        h = (h ^ h >> 31 ^ gt_stacks_text(m, a->stack, i)) * 0xff51afd7ed558ccdu;
    if (by & GT_BY_RANK)
        h = (h ^ (uint64_t)a->rank) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 31;
}

static int same(const struct gt_model *m, const struct gt_avg *a, const struct gt_avg *b,
                unsigned by)
{
    if (a->stack.count != b->stack.count)
        return 0;
    for (uint32_t i = 0; i < a->stack.count; i++)
        if (gt_stacks_text(m, a->stack, i) != gt_stacks_text(m, b->stack, i))
            return 0;
    return a->key == b->key && a->shapes == b->shapes && a->overload == b->overload &&
           a->device == b->device && a->split == b->split && a->thread == b->thread &&
           (!(by & GT_BY_RANK) || a->rank == b->rank);
}

static void grow(struct table *t, const struct gt_groups *g, unsigned by)
{
    free(t->slots);
    t->size = t->size ? t->size * 2 : 256;
    t->slots = gt_mem_new(t->size, sizeof *t->slots);
    for (size_t i = 0; i < g->count; i++) {
        size_t at = hash_of(g->model, &g->avgs[i], by) & (t->size - 1);
        while (t->slots[at])
            at = (at + 1) & (t->size - 1);
        t->slots[at] = (uint32_t)i + 1;
    }
}

/* The average that a row belongs to; made at its first row. */
static uint32_t place(struct gt_groups *g, struct table *t, const struct gt_row *r, unsigned by)
{
    struct gt_avg want;
    if (g->count * 2 >= t->size)
        grow(t, g, by);
    identity(g->model, r, by, &want);
    size_t at = hash_of(g->model, &want, by) & (t->size - 1);
    for (; t->slots[at]; at = (at + 1) & (t->size - 1))
        if (same(g->model, &g->avgs[t->slots[at] - 1], &want, by))
            return t->slots[at] - 1;
    if (is_remote(g->model, process_of(g->model, r)))
        want.flags |= GT_ROW_REMOTE;
    gt_mem_grow(&g->avgs, &g->room, g->count, sizeof *g->avgs);
    g->avgs[g->count] = want;
    t->slots[at] = (uint32_t)++g->count;
    return (uint32_t)(g->count - 1);
}

static void add(struct gt_avg *a, const struct gt_row *r, int64_t rank)
{
    a->min_ns = !a->count || r->min_ns < a->min_ns ? r->min_ns : a->min_ns;
    a->max_ns = !a->count || r->max_ns > a->max_ns ? r->max_ns : a->max_ns;
#define ADD(field) a->field = gt_add(a->field, r->field)
    GT_SUMMED(ADD);
#undef ADD
    a->sumsq_ns2 += r->sumsq_ns2;
    a->sources |= 1u << r->source;
    a->flags |= r->flags & (GT_ROW_FOLDED | GT_ROW_TORN);
    if (a->rank != rank)
        a->rank = -1;
    gt_values_add(&a->values, &r->values);
}

static int by_link(const void *pa, const void *pb)
{
    const struct link *a = pa, *b = pb;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

static size_t distinct(struct link *links, size_t count)
{
    size_t n = 0;
    if (count)
        qsort(links, count, sizeof *links, by_link);
    for (size_t i = 0; i < count; i++)
        if (!n || by_link(&links[n - 1], &links[i]))
            links[n++] = links[i];
    return n;
}

/* (above, below) pairs -> the two lists of every average. */
static void link_up(struct gt_groups *g, struct link *links, size_t count)
{
    size_t n = distinct(links, count);
    g->links = gt_mem_new(n * 2, sizeof *g->links);
    for (size_t i = 0; i < n; i++) {
        struct gt_avg *a = &g->avgs[links[i].from];
        if (!a->children_count++)
            a->children_first = (uint32_t)g->link_count;
        g->links[g->link_count++] = links[i].to;
        links[i] = (struct link){links[i].to, links[i].from};
    }
    n = distinct(links, n);
    for (size_t i = 0; i < n; i++) {
        struct gt_avg *a = &g->avgs[links[i].from];
        if (!a->parents_count++)
            a->parents_first = (uint32_t)g->link_count;
        g->links[g->link_count++] = links[i].to;
    }
}

/* Distinct threads; rows of one thread come together in every loader, and where they do not the
 * sort settles it. */
static void count_threads(struct gt_groups *g, struct link *seen, size_t count)
{
    size_t n = distinct(seen, count);
    for (size_t i = 0; i < n; i++)
        g->avgs[seen[i].from].threads++;
}

/* The one average that has no key of its own. */
static void start_total(struct gt_groups *g)
{
    int64_t rank = g->model->process_count ? g->model->processes[0].rank : -1;
    gt_mem_grow(&g->avgs, &g->room, 0, sizeof *g->avgs);
    g->avgs[0] = (struct gt_avg){.key = GT_TEXT_TOTAL, .rank = rank, .thread = -1};
    g->count = 1;
}

static void note_device(struct gt_groups *g, const struct gt_row *r)
{
    if (r->device != GT_CPU)
        g->device = r->device;
    else if (!g->device && process_of(g->model, r)->device)
        g->device = process_of(g->model, r)->device;
    else if (!g->device && (r->device_ns || r->self_device_memory))
        g->device = GT_CUDA;
}

void gt_group_rows(struct gt_groups *g, const struct gt_model *m, unsigned by)
{
    struct table t = {0};
    uint32_t *avg_of = gt_mem_new(m->row_count, sizeof *avg_of);
    struct link *links = gt_mem_new(m->row_count, sizeof *links);
    struct link *seen = gt_mem_new(m->row_count, sizeof *seen);
    size_t link_count = 0, seen_count = 0;
    memset(g, 0, sizeof *g);
    g->model = m;
    if (by & GT_BY_NOTHING)
        start_total(g);
    for (size_t i = 0; i < m->row_count; i++) {
        const struct gt_row *r = &m->rows[i];
        /* a place that never counted stands for the one above it */
        avg_of[i] = r->parent >= 0 ? avg_of[r->parent] : UINT32_MAX;
        if (!gt_row_counts(r))
            continue;
        uint32_t id = by & GT_BY_NOTHING ? 0 : place(g, &t, r, by), above = avg_of[i];
        struct gt_avg *a = &g->avgs[id];
        add(a, r, process_of(m, r)->rank);
        /* what a device did is nobody's child: PyTorch's events of devices have no tree */
        if (above == UINT32_MAX || r->device != GT_CPU)
            a->root = 1;
        else if (!(by & GT_BY_NOTHING))
            links[link_count++] = (struct link){above, id};
        note_device(g, r);
        seen[seen_count++] = (struct link){id, r->thread};
        avg_of[i] = id;
    }
    link_up(g, links, link_count);
    count_threads(g, seen, seen_count);
    free(t.slots);
    free(avg_of);
    free(links);
    free(seen);
}

void gt_group_events(struct gt_groups *g, const struct gt_model *m, int kind)
{
    struct table t = {0};
    memset(g, 0, sizeof *g);
    g->model = m;
    for (size_t i = 0; i < m->row_count; i++) {
        const struct gt_row *r = &m->rows[i];
        if (r->kind != kind || (r->count <= 0 && r->values.count <= 0))
            continue;
        uint32_t id = place(g, &t, r, 0);
        add(&g->avgs[id], r, process_of(m, r)->rank);
    }
    free(t.slots);
}

void gt_groups_fini(struct gt_groups *g)
{
    free(g->avgs);
    free(g->links);
    memset(g, 0, sizeof *g);
}

double gt_avg_stddev_ns(const struct gt_avg *a)
{
    if (a->count <= 0)
        return 0;
    double mean = (double)(a->device == GT_CPU ? a->total_ns : a->device_ns) / (double)a->count;
    double variance = a->sumsq_ns2 / (double)a->count - mean * mean;
    /* Squares were summed in ticks and lose digits here: a single call would deviate from itself.
     * No set deviates by more than half its span (Popoviciu), which also keeps it inside int64
     * whatever a file says. */
    double most = fmin(((double)a->max_ns - (double)a->min_ns) / 2, 9e18);
    return variance > 0 && most > 0 ? fmin(sqrt(variance), most) : 0;
}
