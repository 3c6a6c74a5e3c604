/* Memory that devices' drivers gave and took -> rows and devices of the model: what each row got
 * from a driver, what of it was never given back, and each device's live and peak bytes. Called by
 * load.c after all rows of the session; single thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "report/load_slot.h"

static int64_t whole(uint64_t v)
{
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

/* A row has what the rows below it have. */
static void sum_up(struct gt_model *m, size_t first)
{
    for (size_t i = first; i < m->row_count; i++)
        m->rows[i].driver_memory = m->rows[i].self_driver_memory;
    for (size_t i = m->row_count; i-- > first;) {
        const struct gt_row *r = &m->rows[i];
        if (r->parent >= 0)
            m->rows[r->parent].driver_memory =
                gt_add(m->rows[r->parent].driver_memory, r->driver_memory);
    }
}

static void leak(struct gt_loader *l, const struct gt_allocation *a)
{
    for (size_t i = 0; i < l->place_count; i++) {
        const struct gt_load_place *p = &l->places[i];
        if (p->slot != a->slot || a->node >= p->count || p->rows[a->node] < 0)
            continue;
        struct gt_row *r = &l->m->rows[p->rows[a->node]];
        r->leaked = gt_add(r->leaked, whole(a->bytes));
        return;
    }
}

static void metric(struct gt_model *m, struct gt_list *l, const char *name, int64_t count)
{
    struct gt_metric *v = gt_model_metric(m, l);
    v->name = gt_model_textz(m, name);
    v->kind = GT_METRIC_COUNT;
    v->count = count;
}

static void tell_device(struct gt_loader *l, const struct gt_device_memory *d, unsigned number)
{
    struct gt_device_metrics of = {.process = l->process};
    char name[32];
    if (!d->allocations)
        return;
    snprintf(name, sizeof name, "cuda%u", number);
    of.device = gt_model_textz(l->m, name);
    metric(l->m, &of.metrics, "Memory live (bytes)", d->live);
    metric(l->m, &of.metrics, "Memory peak (bytes)", d->peak);
    metric(l->m, &of.metrics, "Memory allocations", whole(d->allocations));
    metric(l->m, &of.metrics, "Memory frees", whole(d->frees));
    if (d->not_followed)
        metric(l->m, &of.metrics, "Memory not followed", whole(d->not_followed));
    *gt_model_device(l->m) = of;
}

int gt_load_driver_memory(struct gt_loader *l, size_t first_row)
{
    const struct gt_memory_table *t;
    size_t bytes = sizeof *t;
    gt_ref ref = l->h->memory;
    if (!ref)
        return 0;
    if (!(t = gt_input_at(l->in, ref, bytes)))
        return gt_load_damaged(l, "bad table of memory");
    bytes += (size_t)t->capacity * sizeof *t->entries;
    if (t->capacity > GT_ALLOCATIONS || !(t = gt_input_at(l->in, ref, bytes)) ||
        (l->live && !gt_load_again(l, ref, bytes)))
        return gt_load_damaged(l, "bad table of memory");
    for (size_t i = 0; i < t->capacity; i++)
        if (t->entries[i].address && t->entries[i].address != GT_ALLOCATION_BUSY)
            leak(l, &t->entries[i]);
    for (unsigned i = 0; i < GT_MEMORY_DEVICES; i++)
        tell_device(l, &t->devices[i], i);
    sum_up(l->m, first_row);
    return 0;
}
