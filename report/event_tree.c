/* Events -> call tree -> rows, with the results of PyTorch's EventList._build_tree and
 * FunctionEvent but for two. What a duplicate launched is added to what its parent did, not put in
 * its place. And a thread of one node is one thread, also where another node has one of that number
 * (there they fall to pieces unless the list has them apart). Passes over the events in order of
 * their start: reading them takes longer. Called by load_events.c; single thread. */
#include "report/load_events.h"
#include "core/layout.h"
#include "report/mem.h"
#include <stdlib.h>
#include <string.h>

struct build {
    struct gt_model *m;
    struct gt_event *events;
    size_t count;
    int32_t *order; /* by node, thread, start, the longer first, place in the list */
    /* rows by what they stand for */
    int32_t *slots;
    size_t slot_count, row0;
};

static int by_start(const void *pa, const void *pb, void *events)
{
    int32_t ia = *(const int32_t *)pa, ib = *(const int32_t *)pb;
    const struct gt_event *a = (struct gt_event *)events + ia, *b = (struct gt_event *)events + ib;
#define BY(x, y)                                                                                   \
    do {                                                                                           \
        if ((x) != (y))                                                                            \
            return (x) < (y) ? -1 : 1;                                                             \
    } while (0)
    BY(a->node, b->node);
    BY(a->thread, b->thread);
    BY(a->start_ns, b->start_ns);
    BY(b->end_ns, a->end_ns);
    BY(ia, ib);
#undef BY
    return 0;
}

static int nests(const struct gt_event *e)
{
    return e->device == GT_CPU && !(e->flags & GT_ROW_ASYNC);
}

static uint32_t new_process(struct build *b, const struct gt_events *list, int64_t node,
                            const char *id)
{
    struct gt_process *p = gt_model_process(b->m);
    p->rank = node;
    p->boot_id = gt_model_textz(b->m, id);
    p->clock = gt_model_textz(b->m, "events");
    p->sequence = node + 1;
    p->ended = GT_ENDED_EXIT;
    p->end_known = p->crash_safe = 1;
    p->profile_memory = list->profile_memory;
    p->device = list->device;
    return (uint32_t)(b->m->process_count - 1);
}

static void new_thread(struct gt_model *m, uint32_t process, uint32_t slot, int64_t number)
{
    struct gt_thread *t = gt_model_thread(m);
    t->process = process;
    t->slot = slot;
    t->threads = 1;
    if (number >= 0 && number <= UINT32_MAX) {
        t->tid = (uint32_t)number;
    } else {
        char text[24], *p = text + sizeof text;
        uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
        for (; left; left /= 10)
            *--p = (char)('0' + left % 10);
        if (number < 0)
            *--p = '-';
        t->name = gt_model_text(m, p, (size_t)(text + sizeof text - p));
    }
}

/* A process for each node and a thread for each of its thread numbers; `id` tells this list from
 * others, see once.c. */
static void places(struct build *b, const struct gt_events *list, const char *id)
{
    const struct gt_event *before = NULL;
    struct gt_model *m = b->m;
    int64_t from = 0, to = 0;
    uint32_t process = 0, slot = 0;
    for (size_t i = 0; i < b->count; i++) {
        struct gt_event *e = &b->events[b->order[i]];
        int first = !before || before->node != e->node;
        if (first) {
            process = new_process(b, list, e->node, id);
            slot = 0;
        }
        if (first || before->thread != e->thread)
            new_thread(m, process, slot++, e->thread);
        from = first || e->start_ns < from ? e->start_ns : from;
        to = first || e->end_ns > to ? e->end_ns : to;
        m->processes[process].duration_ns = to - from;
        e->place = (uint32_t)(m->thread_count - 1);
        before = e;
    }
    if (!b->count)
        new_process(b, list, -1, id);
}

/* Who is below whom: the innermost of those still open that holds all of it. An event that ends
 * after one that is still open closes that one, and is counted. */
static void nest(struct build *b)
{
    const struct gt_event *before = NULL;
    int32_t top = -1;
    for (size_t i = 0; i < b->count; i++) {
        struct gt_event *e = &b->events[b->order[i]], *p;
        int overlaps = 0;
        if (!nests(e))
            continue;
        if (!before || before->place != e->place)
            top = -1;
        before = e;
        for (; top >= 0; top = p->parent) {
            p = &b->events[top];
            if (e->start_ns < p->end_ns && e->end_ns <= p->end_ns) {
                p->kids++;
                p->latest = b->order[i];
                break;
            }
            overlaps |= e->start_ns < p->end_ns;
        }
        b->m->processes[b->m->threads[e->place].process].lost[GT_LOST_INDEX_overlapped] += overlaps;
        e->parent = top;
        top = b->order[i];
    }
}

/* An only child of its parent's name is the same call seen twice: the parent stands for both, and
 * what was below the child is below the parent. Children first: so a child has taken over its own
 * before it is looked at, and once is enough. */
static void drop_duplicates(struct build *b)
{
    for (size_t i = b->count; i-- > 0;) {
        struct gt_event *e = &b->events[b->order[i]];
        if (e->kids != 1 || b->events[e->latest].name != e->name)
            continue;
        struct gt_event *child = &b->events[e->latest];
        child->gone = 1;
        e->kernel_ns = gt_add(e->kernel_ns, child->kernel_ns);
        e->kids = child->kids;
        e->latest = child->latest;
    }
    /* parents first: a parent that is gone knows already who stands for it */
    for (size_t i = 0; i < b->count; i++) {
        struct gt_event *e = &b->events[b->order[i]];
        if (e->parent >= 0 && b->events[e->parent].gone)
            e->parent = b->events[e->parent].parent;
    }
}

/* What is its own: all of it but what its children have. Where children overlap each other that can
 * be less than nothing, as in PyTorch; so the sum of all stays that of the outermost. */
static void take_apart(struct build *b)
{
    for (size_t i = b->count; i-- > 0;) {
        struct gt_event *e = &b->events[b->order[i]];
        int64_t kids_device_ns = e->device_ns;
        if (e->gone)
            continue;
        if (!nests(e)) {
            e->self_ns = e->self_memory = e->self_device_memory = 0;
            e->self_device_ns = e->device_ns =
                e->device != GT_CPU && !(e->flags & GT_ROW_ASYNC) ? e->end_ns - e->start_ns : 0;
            continue;
        }
        e->self_ns = gt_add(e->self_ns, e->end_ns - e->start_ns);
        e->self_memory = gt_add(e->self_memory, e->memory);
        e->self_device_memory = gt_add(e->self_device_memory, e->device_memory);
        /* the event pairs of the legacy profiler lie around the children's */
        e->device_ns =
            e->flags & GT_ROW_LEGACY ? e->kernel_ns : gt_add(e->kernel_ns, kids_device_ns);
        e->self_device_ns = e->device_ns > kids_device_ns ? e->device_ns - kids_device_ns : 0;
        if (e->parent < 0)
            continue;
        struct gt_event *p = &b->events[e->parent];
        p->self_ns = gt_add(p->self_ns, e->start_ns - e->end_ns);
        p->self_memory = gt_add(p->self_memory, -e->memory);
        p->self_device_memory = gt_add(p->self_device_memory, -e->device_memory);
        p->device_ns = gt_add(p->device_ns, e->device_ns);
    }
}

static uint64_t hash_of(const struct gt_row *r)
{
    uint64_t h = ((uint64_t)(uint32_t)r->parent << 32 | r->key) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29 ^ r->stack) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29 ^ r->shapes ^ (uint64_t)r->overload << 32) * 0xff51afd7ed558ccdu;
    h ^= (uint64_t)r->thread << 40 ^ r->flags << 8 ^ (uint64_t)r->scope << 20 ^ r->device;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 31;
}

static int same(const struct gt_row *a, const struct gt_row *b)
{
    return a->parent == b->parent && a->key == b->key && a->stack == b->stack &&
           a->shapes == b->shapes && a->overload == b->overload && a->thread == b->thread &&
           a->flags == b->flags && a->scope == b->scope && a->device == b->device;
}

/* The row that an event counts at; made for the first one. */
static int32_t find_row(struct build *b, const struct gt_event *e)
{
    struct gt_model *m = b->m;
    struct gt_row want = {.parent = e->parent < 0 ? -1 : b->events[e->parent].row,
                          .thread = e->place,
                          .key = e->name,
                          .shapes = e->shapes,
                          .stack = e->stack,
                          .overload = e->overload,
                          .scope = e->scope,
                          .device = e->device,
                          .flags = e->flags,
                          .source = GT_SOURCE_TORCH};
    size_t at = hash_of(&want) & (b->slot_count - 1);
    for (; b->slots[at] >= 0; at = (at + 1) & (b->slot_count - 1))
        if (same(&m->rows[b->slots[at]], &want))
            return b->slots[at];
    want.kind = e->flags & GT_ROW_ASYNC ? GT_KIND_ASYNC : GT_KIND_RANGE;
    b->slots[at] = (int32_t)m->row_count;
    *gt_model_row(m) = want;
    return b->slots[at];
}

static void count(struct build *b, struct gt_event *e)
{
    struct gt_row *r;
    int64_t ns = e->end_ns - e->start_ns;
    e->row = find_row(b, e);
    r = &b->m->rows[e->row];
    r->min_ns = !r->count || ns < r->min_ns ? ns : r->min_ns;
    r->max_ns = ns > r->max_ns ? ns : r->max_ns;
    r->sumsq_ns2 += (double)ns * (double)ns;
    r->count++;
    r->total_ns = gt_add(r->total_ns, e->device == GT_CPU ? ns : 0);
#define ADD(field) r->field = gt_add(r->field, e->field)
    ADD(self_ns);
    ADD(device_ns);
    ADD(self_device_ns);
    ADD(flops);
    ADD(memory);
    ADD(self_memory);
    ADD(device_memory);
    ADD(self_device_memory);
#undef ADD
}

/* In the order of the list, which is that of PyTorch's averages, but parents before what is below
 * them. */
static void make_rows(struct build *b)
{
    int32_t *path = gt_mem_new(b->count, sizeof *path);
    for (b->slot_count = 256; b->slot_count < b->count * 2; b->slot_count *= 2)
        ;
    b->slots = gt_mem_new(b->slot_count, sizeof *b->slots);
    memset(b->slots, -1, b->slot_count * sizeof *b->slots);
    for (size_t i = 0; i < b->count; i++) {
        size_t n = 0;
        for (int32_t k = (int32_t)i; k >= 0 && !b->events[k].gone && b->events[k].row < 0;
             k = b->events[k].parent)
            path[n++] = k;
        while (n)
            count(b, &b->events[path[--n]]);
    }
    free(b->slots);
    free(path);
}

void gt_events_build(struct gt_model *m, struct gt_events *list, const char *text, size_t len)
{
    struct build b = {.m = m, .events = list->events, .count = list->count};
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    char *id = gt_mem_format("events-%016llx", (unsigned long long)hash);
    b.order = gt_mem_new(b.count, sizeof *b.order);
    for (size_t i = 0; i < b.count; i++)
        b.order[i] = (int32_t)i;
    if (b.count)
        qsort_r(b.order, b.count, sizeof *b.order, by_start, b.events);
    places(&b, list, id);
    nest(&b);
    drop_duplicates(&b);
    take_apart(&b);
    make_rows(&b);
    free(b.order);
    free(id);
}
