/* The library's side of include/gputally.h: the program's calls, on its own threads, at any time.
 */
#define GPUTALLY_IMPLEMENTATION
#include "gputally.h"

#include "core/record.h"

#define TAG(domain_id) GT_TAG(GT_SOURCE_API, domain_id, 0)
#define GROUP(domain_id) GT_TAG_GROUP(TAG(domain_id))

/* 1 if the program's struct reaches to the end of `field`. An absurd size is no struct of ours. */
#define HAS(a, field)                                                                              \
    ((a)->size >= offsetof(struct gputally_attributes, field) + sizeof((a)->field) &&              \
     (a)->size <= 4096)

static int on(void)
{
    return gt_source_on(GT_SOURCE_API);
}

int gputally_range_push(const char *name)
{
    if (!on())
        return 0;
    return gt_push(TAG(0), name);
}

int gputally_range_push_ex(const struct gputally_attributes *a)
{
    struct gt_attr out = {.scope = GT_SCOPE_USER, .stack = GT_STACK_RANGE};
    uint32_t domain_id = 0;

    if (!on())
        return 0;
    if (a) {
        if (HAS(a, name))
            out.name = a->name;
        if (HAS(a, domain))
            domain_id = gt_domain(a->domain);
        if (HAS(a, shapes))
            out.shapes = a->shapes;
        if (HAS(a, bytes))
            out.bytes = a->bytes;
        if (HAS(a, flops))
            out.flops = a->flops;
        if (HAS(a, scope) && a->scope && a->scope < 256)
            out.scope = (uint8_t)a->scope;
    }
    return gt_push_attr(TAG(domain_id), &out);
}

int gputally_range_pop(void)
{
    return on() ? gt_pop(GROUP(0)) : 0;
}

int gputally_range_pop_domain(const char *domain)
{
    return on() ? gt_pop(GROUP(gt_domain(domain))) : 0;
}

uint64_t gputally_range_start(const char *name)
{
    return on() ? gt_start(TAG(0), &(struct gt_attr){.scope = GT_SCOPE_USER, .name = name}) : 0;
}

int gputally_range_end(uint64_t id)
{
    return on() && id ? gt_end(id) : 0;
}

int gputally_mark(const char *name)
{
    if (on())
        gt_mark(TAG(0),
                &(struct gt_attr){.name = name, .scope = GT_SCOPE_USER, .stack = GT_STACK_RANGE});
    return 0;
}

int gputally_counter(const char *name, double value)
{
    if (on() && value == value)
        gt_counter(TAG(0),
                   &(struct gt_attr){
                       .scope = GT_SCOPE_USER, .name = name, .has_value = 1, .value = value});
    return 0;
}

int gputally_pause(void)
{
    if (on())
        gt_pause();
    return 0;
}

int gputally_resume(void)
{
    if (on())
        gt_resume();
    return 0;
}
