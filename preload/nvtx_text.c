/* Parser of PyTorch's emit_nvtx names, and wide text. Called by nvtx.c on the program's threads,
 * and only for names that were not seen last, so it is off the fast path. The text is the
 * program's: it may hold anything, and is read once from left to right. */
#include "nvtx_text.h"

#include <errno.h>
#include <string.h>

/* The text after `prefix`, or NULL if `p` does not begin with it. */
static const char *after(const char *p, const char *prefix)
{
    size_t n = strlen(prefix);

    return strncmp(p, prefix, n) == 0 ? p + n : NULL;
}

/* Digits at `p` -> *value; NULL if there are none or too many for an int64_t. */
static const char *number(const char *p, int64_t *value)
{
    int64_t v = 0;

    if (*p < '0' || *p > '9')
        return NULL;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v))
            return NULL;
    *value = v;
    return p;
}

/* A bracketed list of integers, pairs of them if `pairs`, and lists at `p`; the end of it, or NULL
 * if it never closes. */
static const char *list(const char *p, int pairs)
{
    size_t depth = 0;

    if (*p != '[')
        return NULL;
    for (;; p++) {
        if (*p == '[')
            depth++;
        else if (*p == ']') {
            if (--depth == 0)
                return p + 1;
        } else if (!(*p >= '0' && *p <= '9') && *p != ',' && *p != ' ' && *p != '-' &&
                   !(pairs && (*p == '(' || *p == ')')))
            return NULL;
    }
}

/* All fields from `p` (a comma) to the end of the text, in PyTorch's order. */
static int fields(const char *p, struct gt_nvtx_op *op)
{
    const char *q;

    op->shapes = NULL;
    op->shapes_len = 0;
    op->seq = op->op_id = -1;
    if ((q = after(p, ", seq = ")) && !(p = number(q, &op->seq)))
        return -EINVAL;
    if ((q = after(p, ", op_id = ")) && !(p = number(q, &op->op_id)))
        return -EINVAL;
    if ((q = after(p, ", sizes = "))) {
        if (!(p = list(q, 0)))
            return -EINVAL;
        op->shapes = q;
        op->shapes_len = (size_t)(p - q);
    }
    /* input_op_ids alone is no operator: PyTorch never writes it without an op_id */
    if (op->op_id >= 0 && (q = after(p, ", input_op_ids = ")) && !(p = list(q, 1)))
        return -EINVAL;
    return *p ? -EINVAL : 0;
}

int gt_nvtx_parse(const char *text, struct gt_nvtx_op *op)
{
    /* A name may hold commas itself (a C++ template): the first one from which all fits wins. No
     * field may come twice, so each try ends at the next bad field and the whole stays linear. */
    for (const char *p = strchr(text, ','); p; p = strchr(p + 1, ',')) {
        if (p != text && p[1] == ' ' && (p[2] == 's' || p[2] == 'o') && fields(p, op) == 0) {
            op->key_len = (size_t)(p - text);
            return 0;
        }
    }
    return -EINVAL;
}

const char *gt_nvtx_utf8(char *out, size_t size, const wchar_t *text)
{
    char *o = out, *end = out + size - 1;

    if (!text)
        return NULL;
    for (; *text; text++) {
        uint32_t c = (uint32_t)*text;
        int n;

        if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            c = 0xfffd;
        n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (end - o < n)
            break;
        if (n == 1) {
            *o++ = (char)c;
            continue;
        }
        *o++ = (char)(0xf00u >> n | c >> 6 * (n - 1));
        for (int i = n - 2; i >= 0; i--)
            *o++ = (char)(0x80 | (c >> 6 * i & 0x3f));
    }
    *o = 0;
    return out;
}
