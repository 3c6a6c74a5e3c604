/* ITT's instants: markers, marks, and events, which may have an end. Called by the program's ITT
 * on its own threads. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include "itt.h"

#define NOT_USED(x) (void)(x)
#define TAG(domain_id) GT_TAG(GT_SOURCE_ITT, domain_id, 0)
#define NAME_BYTES 1024 /* of an event; longer ones are cut */

static void mark(gt_tag tag, const char *name)
{
    gt_mark(tag, &(struct gt_attr){.name = name, .scope = GT_SCOPE_USER, .stack = GT_STACK_RANGE});
}

/* ---- markers: whatever their scope, they lie where they were made ---- */

void on_marker(const struct gt_itt_domain *d, struct gt_itt_id id, const struct gt_itt_string *name,
               int scope)
{
    int info = gt_itt_info(d);

    NOT_USED(id), NOT_USED(scope);
    if (!(info & GT_ITT_OFF))
        mark(gt_itt_tag(info), gt_itt_text(name));
}

void on_marker_ex(const struct gt_itt_domain *d, void *clock, unsigned long long timestamp,
                  struct gt_itt_id id, const struct gt_itt_string *name, int scope)
{
    NOT_USED(clock), NOT_USED(timestamp);
    on_marker(d, id, name, scope);
}

/* A group is what tasks may name as their parent; it has no time of its own. */
void on_task_group(const struct gt_itt_domain *d, struct gt_itt_id id, struct gt_itt_id parent,
                   const struct gt_itt_string *name)
{
    NOT_USED(parent);
    on_marker(d, id, name, 0);
}

/* ---- marks and events: older ways without a domain ---- */

static int itt_on(void)
{
    return gt_source_on(GT_SOURCE_ITT);
}

int on_mark_create(const char *name)
{
    return name ? gt_itt_id_of(name) : 0;
}

int on_mark(int type, const char *parameter)
{
    const char *name = gt_itt_name_of(type);

    NOT_USED(parameter); /* another text each time: no key */
    if (itt_on())
        mark(TAG(0), name ? name : "(invalid mark)");
    return 0;
}

int on_mark_global(int type, const char *parameter)
{
    return on_mark(type, parameter);
}

int on_event_create(const char *name, int length)
{
    char text[NAME_BYTES];
    size_t n = length > 0 ? (size_t)length : 0;

    if (!name || !n)
        return 0; /* as without a collector */
    n = strnlen(name, n < sizeof(text) ? n : sizeof(text) - 1);
    memcpy(text, name, n);
    text[n] = 0;
    return gt_itt_id_of(text);
}

/* An event may have no end: then it is an instant. That shows only when the next one starts, for an
 * event that has never had an end; of those that have, the ends belong to the youngest start. */
#define EVENTS 4096
static _Atomic uint8_t ends[EVENTS]; /* 1: the event with this id has ended once */

/* An event belongs to its thread: the address of its errno tells threads apart. */
static struct gt_itt_key event_key(int event)
{
    return (struct gt_itt_key){.words = {(uint64_t)(uint32_t)event, (uintptr_t)&errno},
                               .kind = GT_ITT_EVENT};
}

int on_event_start(int event)
{
    struct gt_itt_key key = event_key(event);
    const char *name = gt_itt_name_of(event);
    uint64_t open = 0;

    if (!itt_on())
        return 0;
    if (!name)
        name = "(invalid event)";
    if (!atomic_load_explicit(&ends[(uint32_t)event % EVENTS], memory_order_relaxed) &&
        gt_itt_find(&key, 1, &open) == 0 && open)
        gt_end_instant(open);
    open = gt_start(TAG(0), &(struct gt_attr){.name = name, .scope = GT_SCOPE_USER});
    gt_itt_put(&key, open);
    return 0;
}

int on_event_end(int event)
{
    struct gt_itt_key key = event_key(event);
    uint64_t open = 0;

    if (!itt_on())
        return 0;
    atomic_store_explicit(&ends[(uint32_t)event % EVENTS], 1, memory_order_relaxed);
    if (gt_itt_find(&key, 1, &open) != 0)
        gt_end(0); /* counted as unbalanced */
    else if (open) /* 0: it could not be kept, or began while paused */
        gt_end(open);
    return 0;
}
