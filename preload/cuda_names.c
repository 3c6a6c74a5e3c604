/* Names of kernels by the handle that launches them, as the program or the runtime gave them when
 * it asked for the handle: known without a call into the driver, which an old one may not even
 * have. Written by the wrappers that hand out kernels, read where something is launched; any
 * thread, no lock. A handle that was given away again gets its new name when that happens. */
#include "cuda.h"

#include "core/record.h"

/* 64 KiB. A full neighbourhood loses its oldest kernel, whose name is asked of the driver then. */
#define PLACES 4096u
#define PROBES 8u

/* `check` is handle ^ name: a place that two threads wrote at once, or that is being written, is no
 * match for any handle. Release: the text is there before it can be found. */
static struct place {
    _Atomic uintptr_t name, check;
} places[PLACES];

static struct place *place(uintptr_t handle, uint32_t probe)
{
    return &places[((uint32_t)(handle * 0x9e3779b97f4a7c15u >> 40) + probe) % PLACES];
}

static uintptr_t name_in(const struct place *p, uintptr_t handle)
{
    uintptr_t check = atomic_load_explicit(&p->check, memory_order_acquire);
    uintptr_t name = atomic_load_explicit(&p->name, memory_order_relaxed);

    return name && (check ^ name) == handle ? name : 0;
}

static void put(uintptr_t handle, uintptr_t name)
{
    /* the place it has, a free one, or one of the eight in turn */
    static _Atomic uint32_t turn;
    struct place *to = NULL;

    for (uint32_t i = 0; i < PROBES && !to; i++)
        if (name_in(place(handle, i), handle))
            to = place(handle, i);
    for (uint32_t i = 0; i < PROBES && !to; i++)
        if (!atomic_load_explicit(&place(handle, i)->name, memory_order_relaxed))
            to = place(handle, i);
    if (!to)
        to = place(handle, atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed) % PROBES);
    atomic_store_explicit(&to->name, name, memory_order_relaxed);
    atomic_store_explicit(&to->check, handle ^ name, memory_order_release);
}

void gt_cuda_named(const void *handle, const char *name)
{
    if (handle && name)
        put((uintptr_t)handle, (uintptr_t)gt_keep(name));
}

void gt_cuda_named_as(const void *handle, const void *other)
{
    const char *name = gt_cuda_name_of(other);

    if (handle && name)
        put((uintptr_t)handle, (uintptr_t)name);
}

const char *gt_cuda_name_of(const void *handle)
{
    uintptr_t name = 0;

    for (uint32_t i = 0; i < PROBES && handle && !name; i++)
        name = name_in(place((uintptr_t)handle, i), (uintptr_t)handle);
    return (const char *)name;
}
