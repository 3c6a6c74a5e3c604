/* See memory.h. The table lies in the session file: its reader finds what was never freed. */
#include "core/memory.h"
#include <errno.h>
#include <string.h>
#include "core/session.h"
#include "core/thread.h"

#define PROBES 64u /* places that an address may have; blocks that find none are counted */
#define BUSY GT_ALLOCATION_BUSY

static struct gt_memory_table *make_table(void)
{
    struct gt_header *h = gt_session.header;
    gt_ref ref, none = 0;
    struct gt_memory_table *table = NULL;
    uint32_t capacity = GT_ALLOCATIONS;

    /* on little memory fewer are followed */
    for (; !table && capacity >= PROBES; capacity /= 8)
        table = gt_session_alloc(sizeof *table + capacity * sizeof *table->entries, &ref);
    if (!table)
        return NULL;
    table->capacity = capacity * 8;
    if (!atomic_compare_exchange_strong_explicit(&h->memory, &none, ref, memory_order_acq_rel,
                                                 memory_order_acquire))
        ref = none; /* another thread was first */
    return gt_session_at(ref);
}

/* NULL where nothing is recorded, or there is no memory for it. */
static struct gt_memory_table *table_of(int make)
{
    gt_ref ref;

    if (atomic_load_explicit(&gt_fork.phase, memory_order_acquire) != GT_PHASE_OPEN)
        return NULL;
    ref = atomic_load_explicit(&gt_session.header->memory, memory_order_acquire);
    return ref ? gt_session_at(ref) : make ? make_table() : NULL;
}

static struct gt_allocation *place(struct gt_memory_table *table, uint64_t address, uint32_t probe)
{
    return &table->entries[((uint32_t)(address * 0x9e3779b97f4a7c15u >> 40) + probe) &
                           (table->capacity - 1)];
}

static struct gt_device_memory *device_of(struct gt_memory_table *table, uint32_t device)
{
    return &table->devices[device < GT_MEMORY_DEVICES ? device : GT_MEMORY_DEVICES - 1];
}

/* To the innermost open range of this thread; says which that is. */
static void charge(int64_t bytes, struct gt_memory_block *b)
{
    struct gt_thread *t = gt_enter();

    if (b)
        b->slot = b->node = UINT32_MAX;
    if (!t)
        return; /* paused: nobody's */
    if (t->cur != t->root)
        t->cur->node->driver_memory += bytes;
    if (b) {
        b->slot = t->slot->id;
        b->node = GT_RECORD_NODE(t->cur->record);
    }
    gt_leave(t);
}

/* Takes it out of the table. 0: it is not there any more. */
static int claim(struct gt_allocation *a, uint64_t address, struct gt_memory_block *b)
{
    uint64_t wanted = address;

    if (!atomic_compare_exchange_strong_explicit(&a->address, &wanted, BUSY, memory_order_acquire,
                                                 memory_order_relaxed))
        return 0;
    *b = (struct gt_memory_block){
        .address = address,
        .bytes = a->bytes,
        .owner = atomic_load_explicit(&a->owner, memory_order_relaxed),
        .slot = a->slot,
        .node = a->node,
        .device = a->device,
        .source = a->source,
    };
    atomic_store_explicit(&a->address, 0, memory_order_release);
    return 1;
}

/* 0 if there is no place for it. */
static int insert(struct gt_memory_table *table, const struct gt_memory_block *b)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        struct gt_allocation *a = place(table, b->address, i);
        uint64_t none = 0;

        if (!atomic_compare_exchange_strong_explicit(&a->address, &none, BUSY, memory_order_acquire,
                                                     memory_order_relaxed))
            continue;
        a->bytes = b->bytes;
        a->slot = b->slot;
        a->node = b->node;
        a->device = b->device;
        a->source = b->source;
        atomic_store_explicit(&a->owner, b->owner, memory_order_relaxed);
        /* pairs with the reader's, and with acquire in gt_memory_freeing */
        atomic_store_explicit(&a->address, b->address, memory_order_release);
        return 1;
    }
    return 0;
}

static void in_use(struct gt_device_memory *d, int64_t bytes)
{
    int64_t now = atomic_fetch_add_explicit(&d->live, bytes, memory_order_relaxed) + bytes;
    int64_t peak = atomic_load_explicit(&d->peak, memory_order_relaxed);

    while (now > peak && !atomic_compare_exchange_weak_explicit(
                             &d->peak, &peak, now, memory_order_relaxed, memory_order_relaxed))
        ;
}

void gt_memory_allocated(enum gt_source source, uint32_t device, uint64_t address, uint64_t bytes)
{
    gt_memory_allocated_in(source, device, 0, address, bytes);
}

void gt_memory_allocated_in(enum gt_source source, uint32_t device, uint64_t owner,
                            uint64_t address, uint64_t bytes)
{
    int saved = errno;
    struct gt_memory_table *table = table_of(1);
    struct gt_memory_block b = {
        .address = address, .bytes = bytes, .owner = owner, .device = device, .source = source};

    if (table && address && address != BUSY) {
        charge((int64_t)bytes, &b);
        atomic_fetch_add_explicit(&device_of(table, device)->allocations, 1, memory_order_relaxed);
        if (insert(table, &b))
            in_use(device_of(table, device), (int64_t)bytes);
        else
            atomic_fetch_add_explicit(&device_of(table, device)->not_followed, 1,
                                      memory_order_relaxed);
    }
    errno = saved;
}

struct gt_memory_block gt_memory_freeing(enum gt_source source, uint64_t address)
{
    struct gt_memory_table *table = address && address != BUSY ? table_of(0) : NULL;
    struct gt_memory_block b = {0};

    for (uint32_t i = 0; table && i < PROBES; i++) {
        struct gt_allocation *a = place(table, address, i);

        if (atomic_load_explicit(&a->address, memory_order_acquire) == address &&
            a->source == (uint32_t)source && claim(a, address, &b))
            break;
    }
    return b;
}

void gt_memory_freed(const struct gt_memory_block *block, int failed)
{
    int saved = errno;
    struct gt_memory_table *table = block->bytes ? table_of(0) : NULL;

    if (table && failed) {
        if (!insert(table, block)) /* its place went to another one */
            atomic_fetch_add_explicit(&device_of(table, block->device)->not_followed, 1,
                                      memory_order_relaxed);
    } else if (table) {
        charge(-(int64_t)block->bytes, NULL);
        atomic_fetch_add_explicit(&device_of(table, block->device)->frees, 1, memory_order_relaxed);
        in_use(device_of(table, block->device), -(int64_t)block->bytes);
    }
    errno = saved;
}

static int is_followed(const struct gt_allocation *a, uint64_t *address)
{
    *address = atomic_load_explicit(&a->address, memory_order_acquire);
    return *address && *address != BUSY;
}

/* A block that another thread frees or puts there meanwhile is none of the old owner's. */
static void change_owner(struct gt_memory_table *table, enum gt_source source, uint64_t from,
                         uint64_t to)
{
    for (uint32_t i = 0; i < table->capacity; i++) {
        struct gt_allocation *a = &table->entries[i];
        uint64_t address, owner = from;

        if (is_followed(a, &address) && a->source == (uint32_t)source)
            atomic_compare_exchange_strong_explicit(&a->owner, &owner, to, memory_order_relaxed,
                                                    memory_order_relaxed);
    }
}

void gt_memory_ending(enum gt_source source, uint64_t owner, uint64_t token)
{
    struct gt_memory_table *table = table_of(0);

    if (table)
        change_owner(table, source, owner, token);
}

void gt_memory_ended(enum gt_source source, uint64_t owner, uint64_t token, int failed)
{
    struct gt_memory_table *table = table_of(0);
    struct gt_memory_block b;
    uint64_t address;

    if (table && failed)
        change_owner(table, source, token, owner);
    for (uint32_t i = 0; table && !failed && i < table->capacity; i++) {
        struct gt_allocation *a = &table->entries[i];

        if (is_followed(a, &address) && a->source == (uint32_t)source &&
            atomic_load_explicit(&a->owner, memory_order_relaxed) == token && claim(a, address, &b))
            gt_memory_freed(&b, 0);
    }
}
