/* The clock, and what is still to end on it. gpu.h tells how it turns. Any thread. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* what is in streams and has not ended: a heap by end, under sim_lock */
static struct gtsim_activity **heap, **spare;
static _Atomic size_t count; /* read without the lock as well */
static size_t room, spares;
static uint64_t kernels; /* that ended */

static atomic_ullong virtual_ns;
static atomic_ullong first_end = UINT64_MAX; /* of the heap: nothing to hand out before */
static bool wall, started;
static uint64_t poll_ns, copy_bytes;

static uint64_t realtime(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void sim_clock_start(void)
{
    const char *kind = getenv("GTSIM_CLOCK"), *epoch = getenv("GTSIM_EPOCH");

    if (started)
        return;
    started = true;
    wall = kind && !strcmp(kind, "wall");
    poll_ns = (uint64_t)sim_number("GTSIM_POLL_NS", 1000);
    copy_bytes = (uint64_t)sim_number("GTSIM_COPY_BPNS", 16);
    if (!copy_bytes)
        copy_bytes = 1;
    atomic_store(&virtual_ns, epoch ? strtoull(epoch, NULL, 0) : realtime());
}

uint64_t sim_clock(void)
{
    return wall ? realtime() : atomic_load_explicit(&virtual_ns, memory_order_acquire);
}

/* 0: this thread has not looked at it yet */
static __thread uint64_t thread_ns;

uint64_t sim_host_clock(void)
{
    if (wall)
        return realtime();
    if (!thread_ns)
        thread_ns = sim_clock();
    return thread_ns;
}

void sim_wait_until(uint64_t ns)
{
    if (sim_host_clock() < ns)
        thread_ns = ns;
    if (wall) {
        struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

        while (realtime() < ns)
            (void)clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
        return;
    }
    unsigned long long now = atomic_load(&virtual_ns);
    while (now < ns && !atomic_compare_exchange_weak(&virtual_ns, &now, ns))
        ;
}

CUresult sim_poll_answer(uint64_t ns)
{
    if (sim_clock() >= ns)
        return CUDA_SUCCESS;
    if (!wall) {
        sim_host_clock();
        thread_ns += poll_ns;
        atomic_fetch_add(&virtual_ns, poll_ns);
    }
    return CUDA_ERROR_NOT_READY;
}

uint64_t sim_copy_ns(uint64_t bytes)
{
    uint64_t ns = bytes / copy_bytes;

    return ns < 1000 ? 1000 : ns;
}

uint64_t sim_set_ns(uint64_t bytes)
{
    uint64_t ns = bytes / copy_bytes / 4;

    return ns < 1000 ? 1000 : ns;
}

static void swap(size_t i, size_t j)
{
    struct gtsim_activity *a = heap[i];

    heap[i] = heap[j];
    heap[j] = a;
}

static bool before(size_t i, size_t j)
{
    return heap[i]->end_ns < heap[j]->end_ns;
}

static void note_first(void)
{
    atomic_store_explicit(&first_end, count ? heap[0]->end_ns : UINT64_MAX, memory_order_release);
}

void sim_push(const struct gtsim_activity *a)
{
    if (count == room) {
        size_t more = room ? room * 2 : SIM_QUEUE;

        heap = realloc(heap, more * sizeof *heap);
        spare = realloc(spare, more * sizeof *spare);
        if (!heap || !spare)
            abort();
        room = more;
    }
    struct gtsim_activity *mine = spares ? spare[--spares] : malloc(sizeof *mine);
    if (!mine)
        abort();
    *mine = *a;
    if (!sim_listener())
        mine->kind = 0;
    kernels += a->kind == GTSIM_KERNEL;
    size_t i = count++;
    heap[i] = mine;
    for (; i && before(i, (i - 1) / 2); i = (i - 1) / 2)
        swap(i, (i - 1) / 2);
    note_first();
}

/* the first to end, if it has ended by then */
static bool take(uint64_t now, struct gtsim_activity *out)
{
    if (!count || heap[0]->end_ns > now)
        return false;
    *out = *heap[0];
    spare[spares++] = heap[0];
    heap[0] = heap[--count];
    for (size_t i = 0;;) {
        size_t least = i;

        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < count; child++)
            least = before(child, least) ? child : least;
        if (least == i)
            break;
        swap(i, least);
        i = least;
    }
    note_first();
    return true;
}

void sim_deliver(void)
{
    struct gtsim_activity a;

    for (;;) {
        uint64_t full = 0;

        if (atomic_load_explicit(&first_end, memory_order_acquire) > sim_clock() &&
            count <= SIM_QUEUE)
            return;
        pthread_mutex_lock(&sim_lock);
        bool got = take(sim_clock(), &a);
        if (!got && count > SIM_QUEUE)
            full = heap[0]->end_ns;
        pthread_mutex_unlock(&sim_lock);
        if (full)
            sim_wait_until(full);
        else if (!got)
            return;
        const struct gtsim_listener *l = got && a.kind ? sim_listener() : NULL;
        if (l && l->activity)
            l->activity(&a);
    }
}

SIM_API uint64_t gtsim_now(void)
{
    return sim_clock();
}

SIM_API void gtsim_poll(void)
{
    sim_deliver();
}

SIM_API void gtsim_advance(uint64_t ns)
{
    sim_wait_until(sim_clock() + ns);
    sim_deliver();
}

SIM_API void gtsim_settle(void)
{
    uint64_t end = 0;

    pthread_mutex_lock(&sim_lock);
    for (CUcontext c = sim_contexts(); c; c = c->next)
        end = c->all_ns > end ? c->all_ns : end;
    pthread_mutex_unlock(&sim_lock);
    sim_wait_until(end);
    sim_deliver();
}

SIM_API uint64_t gtsim_kernels(void)
{
    pthread_mutex_lock(&sim_lock);
    uint64_t n = kernels;
    for (size_t i = 0; i < count; i++)
        n -= heap[i]->kind == GTSIM_KERNEL && heap[i]->end_ns > sim_clock();
    pthread_mutex_unlock(&sim_lock);
    return n;
}
