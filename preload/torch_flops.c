/* FLOPs of the operators that PyTorch has a formula for (torch/csrc/profiler/util.cpp,
 * computeFlops). Called when an operator starts, on its thread. */
#include "torch_flops.h"

#include <string.h>
#include "torch.h"

static uint64_t elements(const struct gt_torch_dims *d)
{
    uint64_t n = 1;

    for (const int64_t *p = d->begin; p < d->end; p++)
        n *= (uint64_t)*p;
    return n;
}

/* `first` is the index of the first matrix among the inputs, `dims` how many dimensions both must
 * have. */
static uint64_t product(const struct gt_torch_sizes *sizes, ptrdiff_t first, ptrdiff_t dims)
{
    const struct gt_torch_dims *a = sizes->begin + first, *b = a + 1;

    if (sizes->end - sizes->begin < first + 2 || a->end - a->begin != dims ||
        b->end - b->begin != dims || a->end[-1] != b->end[-2])
        return 0;
    return 2 * elements(a) * (uint64_t)b->end[-1];
}

uint64_t gt_torch_flops_of(const char *name, const struct gt_torch_sizes *sizes)
{
    if (strncmp(name, "aten::", 6) != 0)
        return 0;
    name += 6;
    switch (name[0]) {
    case 'a':
        if (strcmp(name, "addmm") == 0)
            return product(sizes, 1, 2);
        if (strcmp(name, "add") == 0)
            break;
        return 0;
    case 'b':
        if (strcmp(name, "bmm") == 0)
            return product(sizes, 0, 3);
        if (strcmp(name, "baddbmm") == 0)
            return product(sizes, 1, 3);
        return 0;
    case 'm':
        if (strcmp(name, "mm") == 0)
            return product(sizes, 0, 2);
        if (strcmp(name, "mul") == 0)
            break;
        return 0;
    default:
        return 0;
    }
    /* add, mul */
    return sizes->begin < sizes->end ? elements(sizes->begin) : 0;
}

/* Stride, padding and dilation lie in lists whose form changes with the version, so PyTorch reads
 * them itself. Only for the inputs that its function knows: with others it would warn, or throw. */
static uint64_t conv2d(const struct gt_torch_rf *rf, const char *name,
                       const struct gt_torch_sizes *sizes)
{
    const struct gt_torch_calls *c = &gt_torch_calls;
    const struct gt_torch_dims *in = sizes->begin, *weight = in + 1;
    struct gt_torch_string key = {.text = name, .length = strlen(name)};
    struct gt_torch_map extra;
    uint64_t n;

    if (!c->extra_args || !c->flops || !c->free_map || !c->overload_name)
        return 0;
    if (sizes->end - sizes->begin != 7 || in->end - in->begin != 4 ||
        weight->end - weight->begin != 4)
        return 0;
    if (*c->overload_name(rf)) /* conv2d.padding: a word where the numbers would be */
        return 0;
    extra = c->extra_args(rf);
    n = c->flops(&key, &extra);
    c->free_map(&extra);
    return n;
}

uint64_t gt_torch_flops(const struct gt_torch_rf *rf, const char *name,
                        const struct gt_torch_sizes *sizes)
{
    if (!name)
        return 0;
    if (strcmp(name, "aten::conv2d") == 0)
        return conv2d(rf, name, sizes);
    return gt_torch_flops_of(name, sizes);
}
