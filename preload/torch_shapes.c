/* Text of input sizes. Called for every operator when shapes are recorded, on the thread that runs
 * it, so it writes digits itself. */
#include "torch_shapes.h"

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

const char *gt_torch_shapes(char *out, const struct gt_torch_inputs *in)
{
    char *o = out, *limit = out + GT_TORCH_SHAPES_BYTES - 2 * NUMBER_BYTES;

    *o++ = '[';
    for (size_t i = 0; i < in->count; i++) {
        const struct gt_torch_view *v = &in->views[i];

        if (o > limit)
            return NULL;
        if (i) {
            *o++ = ',';
            *o++ = ' ';
        }
        *o++ = '[';
        for (size_t d = 0; d < v->count; d++) {
            if (o > limit)
                return NULL;
            if (d) {
                *o++ = ',';
                *o++ = ' ';
            }
            o = put_number(o, v->dims[d]);
        }
        *o++ = ']';
    }
    *o++ = ']';
    *o = 0;
    return out;
}
