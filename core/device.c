/* See device.h. One thread at a time counts: records come in buffers of thousands, on a thread of
 * the device's own, so there is nothing to gain from more. */
#include "core/device.h"

#include <errno.h>
#include <string.h>
#include "core/hot.h"
#include "core/session.h"
#include "core/strings.h"
#include "core/sys.h"

#define ORIGINS 65536u    /* a power of two */
#define CHUNK 62u         /* with its head, less than 12 KiB */
#define FOLD_LAUNCHES 64u /* sizes of launches of one kernel from one place */

/* ---- who launched it ---- */

/* Written by the launching thread, read by the collecting one. `key` is stored last and checked
 * before and after: an entry that is being overwritten is no match. */
struct known {
    _Atomic uint64_t key; /* source << 32 | id */
    _Atomic uint64_t place, ticks;
    _Atomic uint64_t generation; /* and flags << 32 */
};
static _Atomic(void *) origins;

static struct known *origin_at(enum gt_source source, uint32_t id)
{
    struct known *all = gt_sys_map_once(&origins, ORIGINS * sizeof *all);
    return all ? &all[(id ^ (uint32_t)source << 13) & (ORIGINS - 1)] : NULL;
}

struct gt_origin gt_origin_here(void)
{
    struct gt_origin o = {0};
    struct gt_thread *t = gt_enter();
    if (!t && !(t = gt_enter_slow()))
        return o;
    o.generation = t->generation;
    o.slot = t->slot->id;
    o.node = GT_RECORD_NODE(t->cur->record);
    o.flags = gt_is_paused() ? GT_ORIGIN_SILENT : 0;
    o.ticks = gt_clock_now();
    gt_leave(t);
    return o;
}

/* Told in the file all the time, so also of a process that is killed. */
void gt_device_waits(int change)
{
    struct gt_header *h = gt_session.header;
    if (atomic_load_explicit(&gt_fork.phase, memory_order_acquire) != GT_PHASE_OPEN)
        return;
    if (change > 0)
        atomic_fetch_add_explicit(&h->launches_open, 1, memory_order_relaxed);
    else if (atomic_load_explicit(&h->launches_open, memory_order_relaxed))
        atomic_fetch_sub_explicit(&h->launches_open, 1, memory_order_relaxed);
}

void gt_origin_put(enum gt_source source, uint32_t id, const struct gt_origin *o)
{
    struct known *k = origin_at(source, id);
    if (!k)
        return;
    if (!(o->flags & (GT_ORIGIN_SEEN | GT_ORIGIN_SILENT)))
        gt_device_waits(1);
    atomic_store_explicit(&k->key, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* a reader that sees new fields sees no old key */
    atomic_store_explicit(&k->place, (uint64_t)o->slot << 32 | o->node, memory_order_relaxed);
    atomic_store_explicit(&k->ticks, o->ticks, memory_order_relaxed);
    atomic_store_explicit(&k->generation, (uint64_t)o->flags << 32 | o->generation,
                          memory_order_relaxed);
    atomic_store_explicit(&k->key, (uint64_t)source << 32 | id, memory_order_release);
}

struct gt_origin gt_origin_take(enum gt_source source, uint32_t id, int *waits)
{
    struct gt_origin o = {0};
    *waits = 0;
    struct known *k = origin_at(source, id);
    uint64_t key = (uint64_t)source << 32 | id;
    if (!k || atomic_load_explicit(&k->key, memory_order_acquire) != key)
        return o;
    uint64_t place = atomic_load_explicit(&k->place, memory_order_relaxed);
    uint64_t ticks = atomic_load_explicit(&k->ticks, memory_order_relaxed);
    uint64_t generation = atomic_load_explicit(&k->generation, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&k->key, memory_order_relaxed) != key)
        return o;
    o.slot = (uint32_t)(place >> 32);
    o.node = (uint32_t)place;
    o.ticks = ticks;
    o.flags = (uint32_t)(generation >> 32);
    o.generation = (uint32_t)generation;
    /* a put in between takes it away again at most */
    if (!(o.flags & (GT_ORIGIN_SEEN | GT_ORIGIN_SILENT)) &&
        !(atomic_fetch_or_explicit(&k->generation, (uint64_t)GT_ORIGIN_SEEN << 32,
                                   memory_order_relaxed) >>
              32 &
          GT_ORIGIN_SEEN))
        *waits = 1;
    return o;
}

struct gt_origin gt_origin_get(enum gt_source source, uint32_t id)
{
    int waits;
    struct gt_origin o = gt_origin_take(source, id, &waits);
    if (waits)
        gt_device_waits(-1);
    return o;
}

int gt_origin_flags(enum gt_source source, uint32_t id)
{
    struct known *k = origin_at(source, id);
    uint64_t key = (uint64_t)source << 32 | id;
    if (!k || atomic_load_explicit(&k->key, memory_order_acquire) != key)
        return -1;
    uint64_t generation = atomic_load_explicit(&k->generation, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&k->key, memory_order_relaxed) == key ? (int)(generation >> 32)
                                                                      : -1;
}

/* ---- counting ---- */

/* Of the thread that holds the lock. */
static struct {
    _Atomic uint32_t holder; /* its process: one that a fork left behind is of another */
    uint32_t generation;     /* of the session that the rest is about */
    struct gt_activity_chunk *chunk;
    struct entry {
        uint32_t hash;
        uint32_t variants; /* not 0: no activity, but how many sizes there were */
        struct gt_activity *at;
    } * entries;
    uint32_t mask, used;
    struct gt_activity *other;
} all;

static int lock(void)
{
    uint32_t pid = gt_session.pid, before = 0;
    while (!atomic_compare_exchange_weak_explicit(&all.holder, &before, pid, memory_order_acquire,
                                                  memory_order_relaxed)) {
        if (before == pid)
            gt_sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        before = before == pid ? 0 : before;
    }
    return atomic_load_explicit(&gt_fork.phase, memory_order_acquire) == GT_PHASE_OPEN;
}

static void unlock(void)
{
    atomic_store_explicit(&all.holder, 0, memory_order_release);
}

static struct gt_activity *new_activity(void)
{
    struct gt_header *h = gt_session.header;
    uint32_t n = atomic_load_explicit(&h->activity_count, memory_order_relaxed);
    struct gt_activity_chunk *c = all.chunk;
    if (!c || n == c->first + c->capacity) {
        gt_ref ref;
        struct gt_activity_chunk *next =
            gt_session_alloc(sizeof *c + CHUNK * sizeof *c->activities, &ref);
        if (!next)
            return NULL;
        next->first = n;
        next->capacity = CHUNK;
        /* readers follow these only as far as the count says */
        if (c)
            c->next = ref;
        else
            atomic_store_explicit(&h->activities, ref, memory_order_relaxed);
        all.chunk = c = next;
    }
    return &c->activities[n - c->first];
}

/* Release: the fields that do not change are there. */
static void publish(struct gt_activity *at)
{
    at->min_ns = UINT64_MAX;
    atomic_fetch_add_explicit(&gt_session.header->activity_count, 1, memory_order_release);
}

/* The table doubles at 3/4; the old one is left behind. Returns 0 or -ENOMEM. */
static int room(void)
{
    uint32_t size = all.entries ? all.mask + 1 : 0, more = size ? 2 * size : 256;
    if (all.entries && 4 * (all.used + 2) <= 3 * size)
        return 0;
    struct entry *e = gt_private_alloc(more * sizeof *e), *old = all.entries;
    if (!e)
        return -ENOMEM;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t k = old[i].hash;
        if (!old[i].at && !old[i].variants)
            continue;
        while (e[k & (more - 1)].at || e[k & (more - 1)].variants)
            k++;
        e[k & (more - 1)] = old[i];
    }
    all.entries = e;
    all.mask = more - 1;
    return 0;
}

/* First use in this session. */
static int begin(void)
{
    if (all.generation == gt_session.generation)
        return 0;
    all.chunk = NULL;
    all.entries = NULL;
    all.mask = all.used = 0;
    gt_ref name;
    if (room() < 0 || !gt_strings_session("(other)", 7, &name) || !(all.other = new_activity()))
        return -ENOMEM;
    all.other->slot = GT_ACTIVITY_NOBODY;
    all.other->name = name;
    all.other->kind = GT_ACTIVITY_KERNEL;
    all.other->type = GT_DEVICE_CUDA;
    all.other->flags = GT_ACTIVITY_FOLDED;
    publish(all.other);
    all.generation = gt_session.generation;
    return 0;
}

static int same(const struct gt_activity *a, const struct gt_activity *b, const char *name)
{
    return a->slot == b->slot && a->node == b->node && a->device == b->device &&
           a->kind == b->kind && a->type == b->type && a->source == b->source &&
           a->flags == b->flags && memcmp(&a->launch, &b->launch, sizeof a->launch) == 0 &&
           strcmp(gt_session_text(a->name), name) == 0;
}

static uint32_t hash_of(const struct gt_activity *a, uint32_t name, int sizes)
{
    uint32_t words[] = {a->slot, a->node, a->device,
                        a->kind | (uint32_t)a->source << 8 | (uint32_t)a->flags << 16,
                        (uint32_t)sizes};
    uint32_t h = gt_hash(words, sizeof words, name);
    if (sizes)
        h = gt_hash(&a->launch, sizeof a->launch, h);
    return h | 1;
}

/* Its entry, or the empty one where it belongs. */
static struct entry *find(const struct gt_activity *want, const char *name, uint32_t hash)
{
    for (uint32_t i = hash;; i++) {
        struct entry *e = &all.entries[i & all.mask];
        if ((!e->at && !e->variants) || (e->hash == hash && e->at && same(e->at, want, name)))
            return e;
    }
}

/* One more size of the same; returns how many there were. */
static uint32_t variants(const struct gt_activity *want, uint32_t name_hash)
{
    uint32_t hash = hash_of(want, name_hash, 0);
    for (uint32_t i = hash;; i++) {
        struct entry *e = &all.entries[i & all.mask];
        if (!e->at && !e->variants) {
            *e = (struct entry){.hash = hash, .variants = 1};
            all.used++;
            return 0;
        }
        if (e->hash == hash && e->variants)
            return e->variants < FOLD_LAUNCHES ? e->variants++ : e->variants;
    }
}

static struct gt_activity *place(struct gt_activity *want, const char *name)
{
    size_t n = strlen(name);
    uint32_t name_hash = gt_hash(name, n, 0), hash = hash_of(want, name_hash, 1);
    if (room() < 0)
        return all.other;
    struct entry *e = find(want, name, hash);
    if (e->at)
        return e->at;
    if (want->kind == GT_ACTIVITY_KERNEL && variants(want, name_hash) >= FOLD_LAUNCHES) {
        memset(&want->launch, 0, sizeof want->launch);
        want->flags |= GT_ACTIVITY_FOLDED;
        hash = hash_of(want, name_hash, 1);
    }
    e = find(want, name, hash);
    if (e->at)
        return e->at;
    struct gt_activity *at = new_activity();
    if (!at || !gt_strings_session(name, n, &want->name))
        return all.other;
    *at = *want;
    publish(at);
    *e = (struct entry){.hash = hash, .at = at};
    all.used++;
    return at;
}

static void add(struct gt_activity *at, const struct gt_device_activity *a)
{
    uint64_t ns = a->end_ns > a->start_ns ? a->end_ns - a->start_ns : 0;
    struct gt_header *h = gt_session.header;
    gt_hot_add64(&h->activity_seq, 1);
    atomic_thread_fence(memory_order_release); /* a live reader sees it odd before what follows */
    at->total_ns += ns;
    at->min_ns = ns < at->min_ns ? ns : at->min_ns;
    at->max_ns = ns > at->max_ns ? ns : at->max_ns;
    at->sumsq_ns2 += (double)ns * (double)ns;
    at->bytes += a->bytes;
    if (a->delay_ns >= 0) {
        at->delays++;
        at->delay_ns += (uint64_t)a->delay_ns;
        if ((uint64_t)a->delay_ns > at->delay_max_ns)
            at->delay_max_ns = (uint64_t)a->delay_ns;
    }
    at->count++;
    gt_hot_add64(&h->activity_seq, 1);
}

void gt_device_count(const struct gt_device_activity *a, const struct gt_origin *o)
{
    int saved = errno;
    struct gt_activity want = {.slot = GT_ACTIVITY_NOBODY,
                               .device = a->device,
                               .kind = (uint8_t)a->kind,
                               .type = (uint8_t)a->type,
                               .source = (uint8_t)a->source,
                               .flags = a->flags,
                               .launch = a->launch};
    if (o->flags & GT_ORIGIN_SILENT)
        return;
    if (!lock()) {
        /* after the end: the launch has been told as open */
    } else if (begin() < 0) {
        atomic_fetch_add_explicit(&gt_session.header->lost[GT_LOST_MEMORY], 1,
                                  memory_order_relaxed);
    } else {
        if (o->generation == gt_session.generation) {
            want.slot = o->slot;
            want.node = o->node;
        } else {
            gt_session.header->activities_nobodys++;
            gt_device_waits(-1); /* another's place was taken, not its wait */
        }
        add(place(&want, a->name ? a->name : "(null)"), a);
    }
    unlock();
    errno = saved;
}

void gt_device_lost(uint64_t n)
{
    if (lock())
        gt_session.header->activities_lost += n;
    unlock();
}
