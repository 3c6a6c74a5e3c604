/* See sink.h. Numbers are written by hand: printf took two thirds of the time of a 10,000-key
 * report. */
#include "report/sink.h"
#include "report/mem.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FLUSH_BYTES (256u << 10)

void gt_sink_open(struct gt_sink *s, int fd)
{
    memset(s, 0, sizeof *s);
    s->fd = fd;
}

void gt_sink_flush(struct gt_sink *s)
{
    size_t done = 0;
    while (s->fd >= 0 && !s->error && done < s->used) {
        ssize_t n = write(s->fd, s->data + done, s->used - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0)
            s->error = -EIO;
        else if (errno != EINTR)
            s->error = -errno;
    }
    if (s->fd >= 0)
        s->used = 0;
}

int gt_sink_close(struct gt_sink *s)
{
    gt_sink_flush(s);
    free(s->data);
    s->data = NULL;
    s->used = s->room = 0;
    return s->error;
}

char *gt_sink_take(struct gt_sink *s, size_t *len)
{
    char *text;
    if (len)
        *len = s->used;
    gt_sink_put(s, "", 1);
    text = s->data;
    s->data = NULL;
    s->used = s->room = 0;
    return text;
}

static char *room(struct gt_sink *s, size_t len)
{
    if (s->room - s->used < len) {
        size_t want = s->room ? s->room * 2 : 4096;
        while (want - s->used < len)
            want *= 2;
        s->data = gt_mem_resize(s->data, want, 1);
        s->room = want;
    }
    return s->data + s->used;
}

static void added(struct gt_sink *s, size_t len)
{
    s->used += len;
    if (s->fd >= 0 && s->used >= FLUSH_BYTES)
        gt_sink_flush(s);
}

void gt_sink_put(struct gt_sink *s, const char *data, size_t len)
{
    if (len) {
        memcpy(room(s, len), data, len);
        added(s, len);
    }
}

void gt_sink_fill(struct gt_sink *s, char c, size_t count)
{
    if (count) {
        memset(room(s, count), c, count);
        added(s, count);
    }
}

static size_t digits(char *end, uint64_t v)
{
    char *p = end;
    do {
        *--p = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    return (size_t)(end - p);
}

void gt_sink_int(struct gt_sink *s, int64_t value)
{
    char b[24];
    size_t n = digits(b + sizeof b, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    if (value < 0)
        b[sizeof b - ++n] = '-';
    gt_sink_put(s, b + sizeof b - n, n);
}

void gt_sink_us(struct gt_sink *s, int64_t ns)
{
    uint64_t v = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    unsigned rest = (unsigned)(v % 1000);
    char b[32], *end = b + sizeof b - 4;
    size_t n = digits(end, v / 1000);
    end[0] = '.';
    end[1] = (char)('0' + rest / 100);
    end[2] = (char)('0' + rest / 10 % 10);
    end[3] = (char)('0' + rest % 10);
    if (ns < 0)
        end[-(ptrdiff_t)++n] = '-';
    gt_sink_put(s, end - n, n + 4);
}

void gt_sink_real(struct gt_sink *s, double value)
{
    char b[40];
    if (!isfinite(value)) {
        gt_sink_text(s, "null");
        return;
    }
    if (value == floor(value) && fabs(value) < 9e15) {
        if (value == 0 && signbit(value))
            gt_sink_text(s, "-");
        gt_sink_int(s, (int64_t)value);
        gt_sink_text(s, ".0");
        return;
    }
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(b, sizeof b, "%.*g", precision, value);
        if (precision == 17 || strtod(b, NULL) == value)
            break;
    }
    gt_sink_text(s, b);
    if (!strpbrk(b, ".e"))
        gt_sink_text(s, ".0");
}

void gt_sink_format(struct gt_sink *s, const char *format, ...)
{
    char small[512];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(small, sizeof small, format, ap);
    va_end(ap);
    if (n < 0) {
        s->error = s->error ? s->error : -EINVAL;
    } else if ((size_t)n < sizeof small) {
        gt_sink_put(s, small, (size_t)n);
    } else {
        va_start(ap, format);
        vsnprintf(room(s, (size_t)n + 1), (size_t)n + 1, format, ap);
        va_end(ap);
        added(s, (size_t)n);
    }
}
