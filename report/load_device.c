/* What devices did -> rows of the model, each below the row that launched it, whose device times it
 * adds to. Called by load.c after the slots; single thread. */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "report/load_slot.h"
#include "report/mem.h"
#include "report/symbols_name.h"

static int64_t whole(uint64_t v)
{
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

/* Copies all of them, of a living process without an update in between. Returns how many. */
static int copy(struct gt_loader *l, struct gt_activity *to, size_t want)
{
    const struct gt_activity_chunk *c;
    size_t count = 0;
    for (gt_ref ref = l->h->activities; count < want; ref = c->next) {
        if (l->live && !gt_load_again(l, ref, sizeof *c))
            break;
        if (!(c = gt_input_at(l->in, ref, sizeof *c)))
            break;
        size_t n = c->capacity < want - count ? c->capacity : want - count;
        if (!n || c->first != count ||
            (l->live && !gt_load_again(l, ref, sizeof *c + n * sizeof *to)))
            break;
        if (!(c = gt_input_at(l->in, ref, sizeof *c + n * sizeof *to)))
            break;
        memcpy(to + count, c->activities, n * sizeof *to);
        count += n;
    }
    return count == want ? 0 : -ENODATA;
}

static uint64_t sequence(const struct gt_loader *l)
{
    uint64_t v = 0;
    if (pread(l->in->fd, &v, sizeof v, (off_t)offsetof(struct gt_header, activity_seq)) != sizeof v)
        return 1;
    return v;
}

static int copy_all(struct gt_loader *l, struct gt_activity *to, size_t want)
{
    for (int tries = 0; l->live && tries < 200; tries++) {
        uint64_t before = sequence(l);
        if (!(before & 1) && !copy(l, to, want) && sequence(l) == before)
            return 0;
        sched_yield();
    }
    if (l->live || l->h->activity_seq & 1)
        l->lost[GT_LOST_INDEX_torn]++;
    return copy(l, to, want);
}

static const struct gt_load_place *place_of(const struct gt_loader *l, const struct gt_activity *a)
{
    for (size_t i = 0; i < l->place_count; i++)
        if (l->places[i].slot == a->slot && a->node < l->places[i].count)
            return &l->places[i];
    return NULL;
}

/* A thread for what nobody is known to have launched. */
static uint32_t nobody(struct gt_loader *l)
{
    struct gt_thread *t = &l->m->threads[l->m->thread_count - 1];
    uint32_t slot = l->h->slot_count;
    if (t->process == l->process && t->slot == slot)
        return (uint32_t)(l->m->thread_count - 1);
    t = gt_model_thread(l->m);
    t->process = l->process;
    t->slot = slot;
    t->name = gt_model_textz(l->m, "(launched by nobody known)");
    return (uint32_t)(l->m->thread_count - 1);
}

static void charge(struct gt_model *m, int32_t row, int64_t ns)
{
    if (row >= 0)
        m->rows[row].self_device_ns = gt_add(m->rows[row].self_device_ns, ns);
    for (; row >= 0; row = m->rows[row].parent)
        m->rows[row].device_ns = gt_add(m->rows[row].device_ns, ns);
}

static gt_text demangled(struct gt_model *m, gt_text linkage)
{
    char *name = gt_symbols_name(gt_model_string(m, linkage, NULL));
    gt_text text = gt_model_textz(m, name);
    free(name);
    return text;
}

static int emit(struct gt_loader *l, const struct gt_activity *a)
{
    struct gt_model *m = l->m;
    const struct gt_load_place *place = place_of(l, a);
    int64_t ns = whole(a->total_ns);
    int rc;
    if (!a->count)
        return 0;
    if (m->row_count >= INT32_MAX)
        return gt_load_damaged(l, "too many activities of devices");
    int32_t above = place ? place->rows[a->node] : -1;
    uint32_t thread = place ? place->thread : nobody(l);
    struct gt_row *r = gt_model_row(m);
    if ((rc = gt_load_text(l, a->name, &r->key)))
        return rc;
    if (a->kind == GT_ACTIVITY_KERNEL)
        r->key = demangled(m, r->key);
    r->parent = above;
    r->thread = thread;
    r->kind = GT_KIND_RANGE;
    r->source = a->source < GT_SOURCES ? a->source : GT_SOURCE_NONE;
    r->device = a->type == GT_DEVICE_XPU ? GT_XPU : GT_CUDA;
    r->flags = (a->flags & GT_ACTIVITY_LEGACY ? GT_ROW_LEGACY : 0) |
               (a->flags & GT_ACTIVITY_FOLDED ? GT_ROW_FOLDED : 0);
    r->count = whole(a->count);
    r->self_device_ns = r->device_ns = ns;
    r->max_ns = whole(a->max_ns);
    r->min_ns = whole(a->min_ns < a->max_ns ? a->min_ns : a->max_ns);
    r->sumsq_ns2 = a->sumsq_ns2 >= 0 ? a->sumsq_ns2 : 0;
    r->bytes = whole(a->bytes);
    struct gt_launched *launched = gt_model_launched(m);
    memcpy(launched->grid, a->launch.grid, sizeof launched->grid);
    memcpy(launched->block, a->launch.block, sizeof launched->block);
    launched->shared_static = a->launch.shared_static;
    launched->shared_dynamic = a->launch.shared_dynamic;
    launched->registers = a->launch.registers;
    launched->device = a->device;
    launched->delays = whole(a->delays);
    launched->delay_ns = whole(a->delay_ns);
    launched->delay_max_ns = whole(a->delay_max_ns);
    r->launched = (uint32_t)m->launched_count;
    charge(m, above, ns);
    return 0;
}

int gt_load_activities(struct gt_loader *l)
{
    size_t want = l->h->activity_count;
    int rc = 0;
    l->lost[GT_LOST_INDEX_unattributed] = whole(l->h->activities_nobodys);
    l->lost[GT_LOST_INDEX_device_records] = whole(l->h->activities_lost);
    l->lost[GT_LOST_INDEX_unfinished] = whole(l->h->launches_open);
    if (!want || !l->m->thread_count)
        return 0;
    if (want > l->in->bytes / sizeof(struct gt_activity))
        return gt_load_damaged(l, "more activities of devices than fit");
    struct gt_activity *all = gt_mem_new(want, sizeof *all);
    if (copy_all(l, all, want))
        rc = gt_load_damaged(l, "bad activities of devices");
    for (size_t i = 0; i < want && !rc; i++)
        rc = emit(l, &all[i]);
    free(all);
    return rc;
}
