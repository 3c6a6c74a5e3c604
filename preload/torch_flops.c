/* FLOPs of the operators that PyTorch has a formula for (torch/csrc/profiler/util.cpp,
 * computeFlops). Called when an operator starts, on its thread. */
#include "torch_flops.h"

#include <string.h>
#include "torch.h"

static uint64_t elements(const struct gt_torch_view *v)
{
    uint64_t n = v->dims ? 1 : 0;

    for (size_t i = 0; i < v->count; i++)
        n *= (uint64_t)v->dims[i];
    return n;
}

/* `first` is the index of the first matrix among the inputs, `dims` how many dimensions both must
 * have. */
static uint64_t product(const struct gt_torch_inputs *in, size_t first, size_t dims)
{
    const struct gt_torch_view *a = &in->views[first], *b = a + 1;

    if (in->count < first + 2 || a->count != dims || b->count != dims ||
        a->dims[dims - 1] != b->dims[dims - 2])
        return 0;
    return 2 * elements(a) * (uint64_t)b->dims[dims - 1];
}

uint64_t gt_torch_flops_of(const char *name, const struct gt_torch_inputs *in)
{
    if (strncmp(name, "aten::", 6) != 0)
        return 0;
    name += 6;
    switch (name[0]) {
    case 'a':
        if (strcmp(name, "addmm") == 0)
            return product(in, 1, 2);
        if (strcmp(name, "add") == 0)
            break;
        return 0;
    case 'b':
        if (strcmp(name, "bmm") == 0)
            return product(in, 0, 3);
        if (strcmp(name, "baddbmm") == 0)
            return product(in, 1, 3);
        return 0;
    case 'm':
        if (strcmp(name, "mm") == 0)
            return product(in, 0, 2);
        if (strcmp(name, "mul") == 0)
            break;
        return 0;
    default:
        return 0;
    }
    /* add, mul */
    return in->count ? elements(&in->views[0]) : 0;
}

/* Stride, padding and dilation lie in lists whose form changes with the version, so PyTorch reads
 * them itself. Only for the inputs that its function knows: with others it would warn, or throw. */
static uint64_t conv2d(const struct gt_torch_rf *rf, const char *name,
                       const struct gt_torch_inputs *in)
{
    const struct gt_torch_calls *c = &gt_torch_calls;
    struct gt_torch_string key = {.text = name, .length = strlen(name)};
    struct gt_torch_map extra;
    uint64_t n;

    if (!c->extra_args || !c->flops || !c->free_map || !c->overload_name)
        return 0;
    if (!in->plain || in->count != 7 || in->views[0].count != 4 || in->views[1].count != 4)
        return 0;
    if (*c->overload_name(rf)) /* conv2d.padding: a word where the numbers would be */
        return 0;
    extra = c->extra_args(rf);
    n = c->flops(&key, &extra);
    c->free_map(&extra);
    return n;
}

uint64_t gt_torch_flops(const struct gt_torch_rf *rf, const char *name,
                        const struct gt_torch_inputs *in)
{
    if (!name)
        return 0;
    if (strcmp(name, "aten::conv2d") == 0)
        return conv2d(rf, name, in);
    return gt_torch_flops_of(name, in);
}
