/* CUPTI's buffers: counts the records of kernels, copies and sets, and copies those that the
 * program asked for into a buffer of its own, so that it sees what it would see alone. Called by
 * CUPTI, on a thread of its own or on one that flushes. */
#include "cupti.h"

#include <string.h>
#include <time.h>
#include "core/device.h"
#include "core/record.h"
#include "core/session.h"

/* ---- buffers ---- */

#define BUFFERS 64u
#define BUFFER_BYTES (256u * 1024u)
#define LEAST_BYTES (4u * 1024u)

/* Used again and again; more only come when all are with CUPTI. `at` is NULL until the first use.
 * In the child of a fork CUPTI may still have what it had, so they stay where they are. */
static struct {
    _Atomic(uint8_t *) at;
    size_t bytes;
    atomic_flag taken;
} buffers[BUFFERS];

/* NULL makes CUPTI drop records, which it counts. */
void gt_cupti_our_request(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
    *buffer = NULL;
    *bytes = *most_records = 0;
    if (!gt_session.generation) /* the program is here before its first recorded call */
        gt_origin_here();
    for (uint32_t i = 0; i < BUFFERS && !*buffer; i++) {
        if (atomic_flag_test_and_set_explicit(&buffers[i].taken, memory_order_acquire))
            continue;
        /* a smaller one where memory is little: all of them are to fit */
        size_t size = buffers[i].at || !gt_session.generation ? 0 : BUFFER_BYTES;
        while (size > LEAST_BYTES && size > gt_config.memory_bytes / BUFFERS)
            size /= 4;
        for (; size >= LEAST_BYTES && !buffers[i].at; size /= 4) {
            buffers[i].bytes = size;
            buffers[i].at = gt_private_lasting(size);
        }
        *buffer = buffers[i].at;
        if (!*buffer) {
            atomic_flag_clear_explicit(&buffers[i].taken, memory_order_release);
            return;
        }
        *bytes = buffers[i].bytes;
    }
}

static void give_back(const uint8_t *buffer)
{
    for (uint32_t i = 0; i < BUFFERS; i++)
        if (buffers[i].at == buffer) {
            atomic_flag_clear_explicit(&buffers[i].taken, memory_order_release);
            return;
        }
}

/* ---- clocks ---- */

/* The same moment on three clocks. */
struct moment {
    uint64_t record; /* that of the records */
    uint64_t ticks;  /* of gt_now */
    uint64_t ns;
};
/* The clock that records are in, since `begin`; and the one before. Read without the lock: a record
 * that is converted just while the clock changes may be off, none is lost. */
static struct epoch {
    gt_cupti_clock *clock; /* NULL: ns */
    struct moment begin;
} epochs[2];
static atomic_uint epoch;

static struct moment now_of(gt_cupti_clock *clock)
{
    struct moment m = {0};
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    m.ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    m.ticks = gt_now();
    if (clock)
        m.record = clock();
    else if (gt_cupti.call.time(&m.record))
        m.record = 0;
    return m;
}

void gt_cupti_clock_is(gt_cupti_clock *clock)
{
    unsigned next = !atomic_load_explicit(&epoch, memory_order_relaxed);
    if (epochs[!next].begin.record && epochs[!next].clock == clock)
        return;
    epochs[next] = (struct epoch){clock, now_of(clock)};
    atomic_store_explicit(&epoch, next, memory_order_release);
}

/* How times of one buffer become ns and launches. */
struct times {
    const struct epoch *e;
    struct moment now;
    double ns_a_record, record_a_tick;
};

static struct times times_of(unsigned which)
{
    struct times t = {.e = &epochs[which], .ns_a_record = 1};
    t.now = now_of(t.e->clock);
    double records = (double)(t.now.record - t.e->begin.record);
    double ticks = (double)(t.now.ticks - t.e->begin.ticks);
    if (t.e->clock && records > 0)
        t.ns_a_record = (double)(t.now.ns - t.e->begin.ns) / records;
    if (t.e->begin.ticks && ticks > 0)
        t.record_a_tick = records / ticks;
    return t;
}

/* A buffer may be older than the clock: its records lie outside of what the clock has been since.
 */
static int fits(const struct times *t, uint64_t start)
{
    return start >= t->e->begin.record && start <= t->now.record;
}

/* From the launch to the start, in ns; -1 where it can't be told. The clocks meet within a few
 * hundred ns: a launch just before its start is not after it. */
static int64_t delay(const struct times *t, uint64_t start, uint64_t launched)
{
    if (t->record_a_tick <= 0 || !launched)
        return -1;
    double at = (double)(int64_t)(launched - t->e->begin.ticks) * t->record_a_tick;
    double d = ((double)(int64_t)(start - t->e->begin.record) - at) * t->ns_a_record;
    return d < 0 ? 0 : (int64_t)d;
}

/* ---- records ---- */

struct seen {
    uint64_t start, end;
    uint32_t correlation;
    struct gt_device_activity activity;
    char name[96];
};

static void read_kernel(struct seen *s, const struct gt_cupti_kernel *k)
{
    s->start = k->start;
    s->end = k->end;
    s->correlation = k->correlation;
    s->activity.name = k->name ? k->name : "(kernel without a name)";
    s->activity.kind = GT_ACTIVITY_KERNEL;
    s->activity.device = k->device;
    memcpy(s->activity.launch.grid, k->grid, sizeof k->grid);
    memcpy(s->activity.launch.block, k->block, sizeof k->block);
    s->activity.launch.shared_static = k->shared_static;
    s->activity.launch.shared_dynamic = k->shared_dynamic;
    s->activity.launch.registers = k->registers;
}

static const char *memory(unsigned kind)
{
    static const char *const names[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                        "Array",   "Managed",  "Device Static", "Managed Static"};
    return names[kind < sizeof names / sizeof *names ? kind : 0];
}

/* Named as PyTorch names them. */
static void read_copy(struct seen *s, const struct gt_cupti_copy *c)
{
    static const char *const ways[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                       "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
    _Static_assert(offsetof(struct gt_cupti_peer_copy, stream) ==
                       offsetof(struct gt_cupti_copy, stream),
                   "alike up to there");
    s->start = c->start;
    s->end = c->end;
    s->correlation = c->kind == GT_CUPTI_PEER_COPY
                         ? ((const struct gt_cupti_peer_copy *)(const void *)c)->correlation
                         : c->correlation;
    s->activity.device = c->device;
    s->activity.bytes = c->bytes;
    s->activity.name = s->name;
    const char *parts[7] = {"Memset (", "", ")", "", "", "", ""};
    s->activity.kind = GT_ACTIVITY_SET;
    if (c->kind == GT_CUPTI_SET) {
        parts[1] = memory(c->set_memory);
    } else {
        unsigned way = c->copy_kind < sizeof ways / sizeof *ways ? c->copy_kind : 0;
        s->activity.kind = GT_ACTIVITY_COPY;
        parts[0] = "Memcpy ";
        parts[1] = ways[way];
        parts[2] = " (";
        parts[3] = memory(c->source);
        parts[4] = " -> ";
        parts[5] = memory(c->target);
        parts[6] = ")";
    }
    size_t n = 0;
    for (int i = 0; i < 7; i++) {
        size_t len = strlen(parts[i]);
        memcpy(s->name + n, parts[i], len);
        n += len;
    }
    s->name[n] = 0;
}

/* Counts one; returns who launched it. */
static struct gt_origin count(const uint8_t *record, const struct times *t)
{
    struct seen s = {.activity = {.source = GT_SOURCE_CUDA, .type = GT_DEVICE_CUDA}};
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    if (kind == GT_CUPTI_KERNEL)
        read_kernel(&s, (const void *)record);
    else
        read_copy(&s, (const void *)record);
    int waits;
    struct gt_origin o = gt_origin_take(GT_SOURCE_CUDA, s.correlation, &waits);
    const struct times *at = fits(&t[0], s.start) || !t[1].now.record ? &t[0] : &t[1];
    uint64_t duration = s.end > s.start ? s.end - s.start : 0;
    s.activity.end_ns =
        at->e->clock ? (uint64_t)((double)duration * at->ns_a_record + 0.5) : duration;
    s.activity.delay_ns = s.start ? delay(at, s.start, o.ticks) : -1;
    gt_device_count(&s.activity, &o);
    if (waits)
        gt_device_waits(-1);
    return o;
}

/* ---- the program's share ---- */

/* A buffer of the program's that is being filled. */
struct share {
    uint8_t *buffer;
    size_t bytes, most, used, records;
    void *context;
    uint32_t stream;
};

static void hand_over(struct share *s)
{
    gt_cupti_complete *complete =
        atomic_load_explicit(&gt_cupti.program.complete, memory_order_acquire);
    if (s->buffer && complete)
        complete(s->context, s->stream, s->buffer, s->bytes, s->used);
    s->buffer = NULL;
}

static void add(struct share *s, const uint8_t *record, size_t bytes, uint32_t kind)
{
    gt_cupti_request *request =
        atomic_load_explicit(&gt_cupti.program.request, memory_order_acquire);
    if (s->buffer && (s->bytes - s->used < bytes || (s->most && s->records == s->most)))
        hand_over(s);
    if (!s->buffer && request) {
        s->used = s->records = 0;
        request(&s->buffer, &s->bytes, &s->most);
    }
    if (!s->buffer || s->bytes < bytes) {
        atomic_fetch_add_explicit(&gt_cupti.program.dropped, 1, memory_order_relaxed);
        return;
    }
    memcpy(s->buffer + s->used, record, bytes);
    memcpy(s->buffer + s->used, &kind, sizeof kind);
    s->used += bytes;
    s->records++;
}

/* A call of the driver's that we made to ask it something: as many of one id as we made. */
static int was_asked(const struct gt_cupti_api *call)
{
    int question = gt_cupti_question(GT_CUPTI_DRIVER, call->id);
    int flags = question < 0 ? -1 : gt_origin_flags(GT_SOURCE_CUDA, call->correlation);
    if (flags < 0 || !(flags & GT_CUPTI_ASKED))
        return 0;
    struct gt_origin o = gt_origin_get(GT_SOURCE_CUDA, call->correlation);
    if (!(o.slot >> 8 * question & 255))
        return 0;
    o.slot -= UINT32_C(1) << 8 * question;
    gt_origin_put(GT_SOURCE_CUDA, call->correlation, &o);
    return 1;
}

/* The kind as which the program would have this record if it were alone; 0: it would not. What we
 * enabled for ourselves it has if it had the kind enabled at the launch. */
static int programs_kind(uint32_t kind, const uint8_t *record, const struct gt_origin *o)
{
    if (kind == GT_CUPTI_DRIVER_CALL)
        return was_asked((const void *)record) ? 0 : (int)kind;
    if (!gt_cupti_is_ours(kind))
        return (int)kind;
    uint32_t flags = gt_cupti_programs_flags();
    if (o->generation && o->flags >> GT_CUPTI_LIFE_SHIFT != flags >> GT_CUPTI_LIFE_SHIFT)
        return 0;
    flags = o->generation ? o->flags : flags;
    if (kind == GT_CUPTI_KERNEL && flags & GT_CUPTI_SERIAL)
        return GT_CUPTI_SERIAL_KERNEL;
    return flags & gt_cupti_flag(kind) ? (int)kind : 0;
}

void gt_cupti_count_dropped(void *context, uint32_t stream)
{
    size_t lost = 0;
    if (gt_cupti.call.dropped(context, stream, &lost) || !lost)
        return;
    gt_device_lost(lost);
    atomic_fetch_add_explicit(&gt_cupti.program.dropped, lost, memory_order_relaxed);
}

void gt_cupti_our_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                           size_t valid)
{
    struct share share = {.context = context, .stream = stream};
    unsigned which = atomic_load_explicit(&epoch, memory_order_acquire);
    struct times t[2] = {times_of(which), {0}};
    uint8_t *record = NULL, *next = NULL;
    (void)bytes;
    if (epochs[!which].begin.record)
        t[1] = times_of(!which);
    int more = valid && gt_cupti.call.next_record(buffer, valid, &record) == 0;
    while (more) {
        struct gt_origin o = {0};
        uint32_t kind;
        memcpy(&kind, record, sizeof kind);
        next = record;
        more = gt_cupti.call.next_record(buffer, valid, &next) == 0;
        size_t size = (size_t)((more ? next : buffer + valid) - record);
        if (gt_cupti_is_ours(kind))
            o = count(record, t);
        int theirs = programs_kind(kind, record, &o);
        if (theirs)
            add(&share, record, size, (uint32_t)theirs);
        record = next;
    }
    hand_over(&share);
    give_back(buffer);
    gt_cupti_count_dropped(context, stream);
}
