/* See missing.h. */
#include "report/missing.h"
#include <stdio.h>
#include <string.h>

static int shapes(const struct gt_row *r)
{
    return r->shapes != 0;
}

static int overloads(const struct gt_row *r)
{
    return r->overload != 0;
}

static int stacks(const struct gt_row *r)
{
    return r->stack != 0;
}

static int flops(const struct gt_row *r)
{
    return r->flops != 0;
}

static int memory(const struct gt_row *r)
{
    return r->memory || r->self_memory || r->device_memory || r->self_device_memory;
}

static int device_times(const struct gt_row *r)
{
    return r->device_ns || r->self_device_ns;
}

static int any(const struct gt_model *m, int (*has)(const struct gt_row *r))
{
    for (size_t i = 0; i < m->row_count; i++)
        if (has(&m->rows[i]))
            return 1;
    return 0;
}

void gt_missing_tell(const struct gt_model *m, const struct gt_write_options *o)
{
    static const struct {
        unsigned by;
        const char *word;
        int (*has)(const struct gt_row *r);
        const char *what;
    } groups[] = {
        {GT_BY_SHAPE, "shape", shapes,
         "no input shapes recorded; for PyTorch: gputally run --record-shapes"},
        {GT_BY_OVERLOAD, "overload", overloads,
         "no overloads recorded; for PyTorch: gputally run --capture-overload-names"},
        {GT_BY_STACK, "stack", stacks,
         "no stacks recorded; of ranges: gputally run --with-stack 1,ranges"},
    };
    /* of the names of fields, a part that all of a kind have */
    static const struct {
        const char *part;
        int (*has)(const struct gt_row *r);
        const char *what;
    } sorts[] = {
        {"flops", flops, "no FLOPs recorded; for PyTorch: gputally run --with-flops"},
        {"memory", memory, "no memory recorded"},
        {"device_time", device_times, "no device times recorded"},
        {"cuda_time", device_times, "no device times recorded"},
        {"xpu_time", device_times, "no device times recorded"},
        {"privateuse1_time", device_times, "no device times recorded"},
    };
    if (o->group_by & GT_BY_NOTHING)
        return;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (o->group_by & groups[i].by && !any(m, groups[i].has))
            fprintf(stderr, "gputally: --group-by %s: %s\n", groups[i].word, groups[i].what);
    if (o->device && !any(m, device_times))
        fprintf(stderr, "gputally: --metric device: no device times recorded\n");
    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++)
        if (o->sort_by && strstr(o->sort_by, sorts[i].part) && !any(m, sorts[i].has))
            fprintf(stderr, "gputally: --sort-by %s: %s\n", o->sort_by, sorts[i].what);
}
