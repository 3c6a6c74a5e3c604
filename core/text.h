/* Building short texts without stdio: what does not fit is cut, the text stays NUL-terminated. */
#ifndef GT_TEXT_H
#define GT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct gt_text {
    char *buf;
    size_t size, len;
    int cut; /* something did not fit */
};

static inline void gt_text_init(struct gt_text *t, char *buf, size_t size)
{
    *t = (struct gt_text){.buf = buf, .size = size};
    buf[0] = 0;
}

static inline void gt_text_add_n(struct gt_text *t, const char *s, size_t n)
{
    if (n > t->size - 1 - t->len) {
        n = t->size - 1 - t->len;
        t->cut = 1;
    }
    memcpy(t->buf + t->len, s, n);
    t->len += n;
    t->buf[t->len] = 0;
}

static inline void gt_text_add(struct gt_text *t, const char *s)
{
    gt_text_add_n(t, s, strlen(s));
}

static inline void gt_text_add_u64(struct gt_text *t, uint64_t v)
{
    char digits[20];
    size_t n = sizeof digits;
    do
        digits[--n] = (char)('0' + v % 10);
    while (v /= 10);
    gt_text_add_n(t, digits + n, sizeof digits - n);
}

#endif
