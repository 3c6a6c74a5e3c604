/* Kokkos Tools: called by the program's Kokkos on its own threads, from Kokkos::initialize to
 * Kokkos::finalize. How Kokkos comes to us: kokkos_ask.c, and the OWN lines in hook.h.
 *
 * Regions, sections and events were named by the user. The rest is what Kokkos does: parallel
 * dispatches, fences and copies are ranges of the thread that asks for them, so on a device they
 * are the time to launch; we ask Kokkos not to wait for the device at every event, which would
 * change the program. An event is told from the others by its category. */
#include "hook.h"

#include <stdatomic.h>
#include <string.h>
#include "abi/kokkos.h"
#include "core/record.h"
#include "kokkos_ask.h"

#define TAG(category) GT_TAG(GT_SOURCE_KOKKOS, 0, category)
#define GROUP GT_TAG_GROUP(TAG(0))

/* The bodies below must be as the table says. */
#define OWN(name, parameters) static void on_##name parameters;
#include "hooks/kokkos.def"
#undef OWN

/* ---- categories ---- */

enum kind { REGION, FOR, REDUCE, SCAN, FENCE, COPY, ALLOCATE, DEALLOCATE, DUAL_VIEW, KINDS };
static const char *const kinds[KINDS] = {
    "",          "parallel_for", "parallel_reduce", "parallel_scan", "fence",
    "deep_copy", "allocate",     "deallocate",      "dual_view"};
static const char *const devices[] = {"Serial", "OpenMP",  "Cuda", "HIP",    "OpenMPTarget",
                                      "HPX",    "Threads", "SYCL", "OpenACC"};
#define DEVICES (sizeof(devices) / sizeof(*devices))

static _Atomic uint64_t interface_version; /* 0: nobody called init; relaxed, it stands alone */

/* Names are joined here and cut if longer; C++ template names may be thousands of bytes long, and
 * the stack may be a fibre's. */
#define TEXT_BYTES 512
struct text {
    char s[TEXT_BYTES];
    size_t n;
};

static void add(struct text *t, const char *s, size_t n)
{
    size_t room = sizeof(t->s) - 1 - t->n;

    if (n > room)
        n = room;
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}

static void add_text(struct text *t, const char *s)
{
    if (!s)
        s = "(null)";
    add(t, s, strlen(s));
}

static __attribute__((noinline)) void name_category(uint32_t category, enum kind kind,
                                                    const char *device)
{
    struct text t = {.n = 0};

    add_text(&t, kinds[kind]);
    if (device) {
        add_text(&t, " on ");
        add_text(&t, device);
    }
    gt_name_category(GT_SOURCE_KOKKOS, 0, category, t.s);
}

/* Kind and execution space. Its name is written when it is met first. */
static uint32_t category_on(enum kind kind, uint32_t device)
{
    static atomic_uint named[KINDS]; /* bit: device; relaxed, twice does no harm */
    uint32_t category = (uint32_t)kind | device << 8;

    if (!(atomic_load_explicit(&named[kind], memory_order_relaxed) & 1u << device)) {
        name_category(category, kind, device ? devices[device - 1] : NULL);
        atomic_fetch_or_explicit(&named[kind], 1u << device, memory_order_relaxed);
    }
    return category;
}

static uint32_t category_of(enum kind kind)
{
    return category_on(kind, 0);
}

/* ---- what has an id ---- */

/* The id that Kokkos gives back is the token of the frame: an end finds its own begin, whatever
 * regions or other events were left open or closed in between. */
static void begin(enum kind kind, const char *name, uint32_t device_id, uint64_t *id)
{
    static _Atomic uint64_t last;
    uint64_t token = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    uint32_t type = GT_KOKKOS_DEVICE_TYPE(device_id), device = 0;

    if (type < DEVICES &&
        atomic_load_explicit(&interface_version, memory_order_relaxed) >= GT_KOKKOS_DEVICE_TYPES)
        device = type + 1;
    gt_push_attr(TAG(category_on(kind, device)),
                 &(struct gt_attr){.name = name, .token = token, .stack = GT_STACK_RANGE});
    if (id)
        *id = token;
    else
        gt_pop_token(GROUP, token); /* nobody can end it: a call without a duration */
}

static void end(uint64_t id)
{
    gt_pop_token(GROUP, id);
}

static void on_kokkosp_begin_parallel_for(const char *name, uint32_t device_id, uint64_t *id)
{
    begin(FOR, name, device_id, id);
}
static void on_kokkosp_end_parallel_for(uint64_t id)
{
    end(id);
}
static void on_kokkosp_begin_parallel_reduce(const char *name, uint32_t device_id, uint64_t *id)
{
    begin(REDUCE, name, device_id, id);
}
static void on_kokkosp_end_parallel_reduce(uint64_t id)
{
    end(id);
}
static void on_kokkosp_begin_parallel_scan(const char *name, uint32_t device_id, uint64_t *id)
{
    begin(SCAN, name, device_id, id);
}
static void on_kokkosp_end_parallel_scan(uint64_t id)
{
    end(id);
}
static void on_kokkosp_begin_fence(const char *name, uint32_t device_id, uint64_t *id)
{
    begin(FENCE, name, device_id, id);
}
static void on_kokkosp_end_fence(uint64_t id)
{
    end(id);
}

/* ---- regions, events ---- */

static void on_kokkosp_push_profile_region(const char *name)
{
    gt_push(TAG(REGION), name);
}
static void on_kokkosp_pop_profile_region(void)
{
    gt_pop(GROUP);
}
static void on_kokkosp_profile_event(const char *name)
{
    gt_mark(TAG(REGION),
            &(struct gt_attr){.name = name, .scope = GT_SCOPE_USER, .stack = GT_STACK_RANGE});
}

/* ---- memory ---- */

/* "Host:label" */
static void add_view(struct text *t, const struct gt_kokkos_space *space, const char *label)
{
    add(t, space->name, strnlen(space->name, GT_KOKKOS_SPACE_BYTES));
    add_text(t, ":");
    add_text(t, label);
}

/* An end has no id: the token stands for all copies, the topmost ends. Not an id of begin(). */
#define COPY_TOKEN (UINT64_C(1) << 63)

static void on_kokkosp_begin_deep_copy(struct gt_kokkos_space to, const char *to_label,
                                       const void *to_p, struct gt_kokkos_space from,
                                       const char *from_label, const void *from_p, uint64_t bytes)
{
    struct text t = {.n = 0};

    (void)to_p;
    (void)from_p;
    add_text(&t, "deep_copy ");
    add_view(&t, &to, to_label);
    add_text(&t, " <- ");
    add_view(&t, &from, from_label);
    gt_push_attr(TAG(category_of(COPY)),
                 &(struct gt_attr){
                     .name = t.s, .bytes = bytes, .token = COPY_TOKEN, .stack = GT_STACK_RANGE});
}
static void on_kokkosp_end_deep_copy(void)
{
    gt_pop_token(GROUP, COPY_TOKEN);
}

/* Bytes that are allocated in each memory space now, of all threads. Found by the kept name of the
 * space's counter; a slot is written once, release of the CAS pairs with the acquire. The last one
 * stands for all that no longer fit. */
#define SPACES 16u
static struct live {
    _Atomic(const char *) counter;
    _Atomic uint64_t bytes;
} spaces[SPACES] = {[SPACES - 1] = {.counter = "(other) memory"}};

static struct live *live_in(const struct gt_kokkos_space *space)
{
    struct text t = {.n = 0};
    const char *counter;
    uint32_t i = 0;

    add(&t, space->name, strnlen(space->name, GT_KOKKOS_SPACE_BYTES));
    add_text(&t, " memory");
    counter = gt_keep(t.s);
    for (; i < SPACES - 1; i++) {
        const char *there = NULL;

        if (atomic_compare_exchange_strong_explicit(&spaces[i].counter, &there, counter,
                                                    memory_order_acq_rel, memory_order_acquire) ||
            there == counter)
            break;
    }
    return &spaces[i];
}

/* Each allocation is a mark where it was made, its size the value. Each also samples the space's
 * counter: the largest sample is the peak. Below zero: freed was what we did not see allocated. */
static void memory(enum kind kind, const struct gt_kokkos_space *space, const char *label,
                   uint64_t bytes)
{
    struct live *live = live_in(space);
    uint64_t change = kind == ALLOCATE ? bytes : 0 - bytes;
    int64_t now =
        (int64_t)(atomic_fetch_add_explicit(&live->bytes, change, memory_order_relaxed) + change);
    struct text t = {.n = 0};

    add_text(&t, kinds[kind]);
    add_text(&t, " ");
    add_view(&t, space, label);
    gt_mark(TAG(category_of(kind)),
            &(struct gt_attr){
                .name = t.s, .has_value = 1, .value = (double)bytes, .stack = GT_STACK_RANGE});
    gt_counter(TAG(0),
               &(struct gt_attr){.name = atomic_load_explicit(&live->counter, memory_order_acquire),
                                 .has_value = 1,
                                 .value = (double)now});
}

static void on_kokkosp_allocate_data(struct gt_kokkos_space space, const char *label, const void *p,
                                     uint64_t bytes)
{
    (void)p;
    memory(ALLOCATE, &space, label, bytes);
}
static void on_kokkosp_deallocate_data(struct gt_kokkos_space space, const char *label,
                                       const void *p, uint64_t bytes)
{
    (void)p;
    memory(DEALLOCATE, &space, label, bytes);
}

static void dual_view(const char *what, const char *label, const char *where)
{
    struct text t = {.n = 0};

    add_text(&t, what);
    add_text(&t, label);
    add_text(&t, where);
    gt_mark(TAG(category_of(DUAL_VIEW)), &(struct gt_attr){.name = t.s, .stack = GT_STACK_RANGE});
}

static void on_kokkosp_dual_view_sync(const char *label, const void *p, bool to_device)
{
    (void)p;
    dual_view("sync ", label, to_device ? " to device" : " to host");
}
static void on_kokkosp_dual_view_modify(const char *label, const void *p, bool on_device)
{
    (void)p;
    dual_view("modify ", label, on_device ? " on device" : " on host");
}

/* ---- sections ---- */

/* A section is made once and may run many times, on any thread. Its id is its place. `name` is
 * written by whoever makes it and taken away by whoever destroys it; `open` is the running range,
 * 0 if none: exchanged, so that each range has one who ends it. Section 0 stands for all that no
 * longer fit. */
#define SECTIONS 4096u
#define NOT_KEPT UINT64_MAX /* it runs, but recording was paused or out of memory */
static struct section {
    _Atomic(const char *) name;
    _Atomic uint64_t open;
} sections[SECTIONS] = {{.name = "(other)"}};

static void unbalanced(void)
{
    gt_end(0); /* no range has this id */
}

static void end_range(uint64_t open)
{
    if (open && open != NOT_KEPT)
        gt_end(open);
}

static void on_kokkosp_create_profile_section(const char *name, uint32_t *id)
{
    static atomic_uint next; /* where to look first; any value will do */
    const char *kept = gt_keep(name ? name : "(null)");
    uint32_t first = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);

    if (!id)
        return;
    *id = 0;
    for (uint32_t i = 0; i < SECTIONS; i++) {
        uint32_t at = (first + i) % SECTIONS;
        const char *none = NULL;

        if (atomic_compare_exchange_strong_explicit(&sections[at].name, &none, kept,
                                                    memory_order_acq_rel, memory_order_relaxed)) {
            *id = at;
            return;
        }
    }
}

/* One that is running ends and begins anew: each start is a call. */
static void on_kokkosp_start_profile_section(uint32_t id)
{
    const char *name =
        id < SECTIONS ? atomic_load_explicit(&sections[id].name, memory_order_acquire) : NULL;
    uint64_t open;

    if (!name) {
        unbalanced();
        return;
    }
    open = gt_start(TAG(REGION), &(struct gt_attr){.name = name, .scope = GT_SCOPE_USER});
    end_range(
        atomic_exchange_explicit(&sections[id].open, open ? open : NOT_KEPT, memory_order_acq_rel));
}

static void on_kokkosp_stop_profile_section(uint32_t id)
{
    uint64_t open =
        id < SECTIONS ? atomic_exchange_explicit(&sections[id].open, 0, memory_order_acq_rel) : 0;

    if (!open)
        unbalanced();
    end_range(open);
}

static void on_kokkosp_destroy_profile_section(uint32_t id)
{
    if (id >= SECTIONS || !atomic_load_explicit(&sections[id].name, memory_order_relaxed)) {
        unbalanced();
        return;
    }
    if (id == 0)
        return; /* others are using it */
    end_range(atomic_exchange_explicit(&sections[id].open, 0, memory_order_acq_rel));
    atomic_store_explicit(&sections[id].name, NULL, memory_order_release);
}

/* ---- the library ---- */

static void on_kokkosp_init_library(int sequence, uint64_t version, uint32_t device_count,
                                    void *device_info)
{
    (void)sequence;
    (void)device_count;
    (void)device_info;
    atomic_store_explicit(&interface_version, version, memory_order_relaxed);
}

/* The report is made at the end of the process, not here: other sources go on. */
static void on_kokkosp_finalize_library(void) {}

static void on_kokkosp_request_tool_settings(uint32_t count, struct gt_kokkos_settings *settings)
{
    if (count >= 1 && settings)
        settings->requires_global_fencing = false;
}

#define OWN(name, parameters) {#name, (void (*)(void))on_##name, NULL},
static const struct gt_hook by_name[] = {
#include "hooks/kokkos.def"
};
#undef OWN

const struct gt_hooks gt_kokkos_hooks = {
    .prefix = "kokkosp_",
    .prefix_len = 8,
    .hooks = by_name,
    .count = sizeof(by_name) / sizeof(*by_name),
    .own = 1,
    .source = GT_SOURCE_KOKKOS,
    .variable = GT_KOKKOS_VARIABLE,
    .asked = gt_kokkos_asked,
};

/* For versions before 3.7; the functions are the same. */
const struct gt_hooks gt_kokkos_old_hooks = {
    .source = GT_SOURCE_KOKKOS,
    .variable = GT_KOKKOS_OLD_VARIABLE,
    .asked = gt_kokkos_asked,
};
