/* Text of input sizes. Called for every operator when shapes are recorded, on the thread that runs
 * it, so it writes digits itself. */
#include "torch_shapes.h"

#include <stdlib.h>
#include <string.h>

/* The longest number, and what may stand around it. */
#define NUMBER_BYTES 24

static char *put_number(char *o, int64_t value)
{
    uint64_t v = (uint64_t)value;
    char digits[20];
    int n = 0;

    if (value < 0) {
        *o++ = '-';
        v = -v;
    }
    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    while (n)
        *o++ = digits[--n];
    return o;
}

const char *gt_torch_shapes(char *out, const struct gt_torch_sizes *sizes)
{
    char *o = out, *limit = out + GT_TORCH_SHAPES_BYTES - 2 * NUMBER_BYTES;

    *o++ = '[';
    for (const struct gt_torch_dims *d = sizes->begin; d < sizes->end; d++) {
        if (o > limit)
            return NULL;
        if (d != sizes->begin) {
            *o++ = ',';
            *o++ = ' ';
        }
        *o++ = '[';
        for (const int64_t *n = d->begin; n < d->end; n++) {
            if (o > limit)
                return NULL;
            if (n != d->begin) {
                *o++ = ',';
                *o++ = ' ';
            }
            o = put_number(o, *n);
        }
        *o++ = ']';
    }
    *o++ = ']';
    *o = 0;
    return out;
}

void gt_torch_shapes_free(struct gt_torch_sizes *sizes)
{
    for (struct gt_torch_dims *d = sizes->begin; d < sizes->end; d++)
        free(d->begin);
    free(sizes->begin);
}
