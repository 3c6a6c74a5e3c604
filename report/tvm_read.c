/* See tvm_read.h. Believes nothing in the text. */
#include "report/tvm_read.h"
#include "report/mem.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void gt_tvm_start(struct gt_tvm_text *t, const char *text, size_t bytes, int raw)
{
    memset(t, 0, sizeof *t);
    t->begin = t->at = text;
    t->end = text + bytes;
    t->raw = raw;
}

void gt_tvm_end(struct gt_tvm_text *t)
{
    free(t->string);
    t->string = NULL;
}

int gt_tvm_fail(struct gt_tvm_text *t, const char *at, const char *why)
{
    if (!t->why) {
        t->why = why;
        t->bad = at;
    }
    return 0;
}

static const char *blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

char gt_tvm_peek(struct gt_tvm_text *t)
{
    t->at = blanks(t->at, t->end);
    return (char)(t->at < t->end ? *t->at : 0);
}

int gt_tvm_enter(struct gt_tvm_text *t, char c)
{
    if (t->why)
        return 0;
    if (gt_tvm_peek(t) != c || t->depth == GT_TVM_DEEPEST)
        return gt_tvm_fail(t, t->at,
                           t->at == t->end ? "the file ends too early"
                           : c == '{'      ? "a { is missing"
                                           : "a [ is missing");
    t->at++;
    t->open[t->depth++] = c;
    return 1;
}

static char closing(char open)
{
    return open == '{' ? '}' : ']';
}

int gt_tvm_next(struct gt_tvm_text *t, int *first)
{
    char c;
    if (t->why)
        return 0;
    if ((c = gt_tvm_peek(t)) == closing(t->open[t->depth - 1]) && c) {
        t->at++;
        t->depth--;
        return 0;
    }
    if (!*first) {
        if (c != ',')
            return gt_tvm_fail(t, t->at,
                               c ? "a comma or the end of the list is missing"
                                 : "the file ends too early");
        t->at++;
    }
    *first = 0;
    if (!gt_tvm_peek(t))
        return gt_tvm_fail(t, t->at, "the file ends too early");
    return 1;
}

static void add(struct gt_tvm_text *t, const char *text, size_t n)
{
    if (t->room - t->length < n + 1) {
        t->room = (t->length + n + 1) * 2;
        t->string = gt_mem_resize(t->string, t->room, 1);
    }
    memcpy(t->string + t->length, text, n);
    t->length += n;
    t->string[t->length] = 0;
}

/* A character as it is. What a terminal would obey becomes visible: TVM's own reader keeps such
 * bytes, but no JSON may have them. */
static void add_byte(struct gt_tvm_text *t, char c)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char u = (unsigned char)c;
    if (u >= 0x20 || c == '\n' || c == '\t' || c == '\r')
        add(t, &c, 1);
    else
        add(t, (char[4]){'\\', 'x', hex[u >> 4], hex[u & 15]}, 4);
}

static int hex4(const char *p, const char *end, uint32_t *v)
{
    *v = 0;
    if (end - p < 4)
        return 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        if (c >= '0' && c <= '9')
            *v = *v << 4 | (uint32_t)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            *v = *v << 4 | (uint32_t)((c | 0x20) - 'a' + 10);
        else
            return 0;
    }
    return 1;
}

/* \uXXXX behind the u; half of a pair becomes U+FFFD, a control character visible. Returns the
 * bytes taken, 0 if it is none. */
static size_t unicode(struct gt_tvm_text *t, const char *p)
{
    uint32_t v, low;
    size_t used = 4;
    if (!hex4(p, t->end, &v))
        return 0;
    if (v >= 0xd800 && v < 0xdc00 && t->end - p >= 10 && p[4] == '\\' && p[5] == 'u' &&
        hex4(p + 6, t->end, &low) && low >= 0xdc00 && low < 0xe000) {
        v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
        used = 10;
    }
    if ((v >= 0xd800 && v < 0xe000) || !v)
        v = 0xfffd;
    if (v < 0x80)
        add_byte(t, (char)v);
    else if (v < 0x800)
        add(t, (char[2]){(char)(0xc0 | v >> 6), (char)(0x80 | (v & 63))}, 2);
    else if (v < 0x10000)
        add(t,
            (char[3]){(char)(0xe0 | v >> 12), (char)(0x80 | (v >> 6 & 63)),
                      (char)(0x80 | (v & 63))},
            3);
    else
        add(t,
            (char[4]){(char)(0xf0 | v >> 18), (char)(0x80 | (v >> 12 & 63)),
                      (char)(0x80 | (v >> 6 & 63)), (char)(0x80 | (v & 63))},
            4);
    return used;
}

/* As JSON; raw control characters but newlines pass, as in TVM's reader. */
static int strict_string(struct gt_tvm_text *t)
{
    static const char letters[] = "\"\"\\\\//n\nt\tr\rb\bf\f";
    const char *start = t->at++;
    for (; t->at < t->end && *t->at != '"'; t->at++) {
        size_t n = 0;
        while (t->at + n < t->end && (unsigned char)t->at[n] >= 0x20 && t->at[n] != '"' &&
               t->at[n] != '\\')
            n++;
        if (n) {
            add(t, t->at, n);
            t->at += n - 1;
            continue;
        }
        if (*t->at == '\n' || *t->at == '\r')
            return gt_tvm_fail(t, t->at, "a line ends inside a name");
        if (*t->at != '\\') {
            add_byte(t, *t->at);
            continue;
        }
        if (++t->at == t->end)
            break;
        const char *pair = NULL;
        for (size_t i = 0; i < sizeof letters - 1 && !pair; i += 2)
            if (letters[i] == *t->at)
                pair = letters + i + 1;
        if (pair)
            add_byte(t, *pair);
        else if (*t->at != 'u' || !(n = unicode(t, t->at + 1)))
            return gt_tvm_fail(t, t->at - 1, "a backslash that begins no escape");
        else
            t->at += n;
    }
    if (t->at >= t->end)
        return gt_tvm_fail(t, start, "a quote opens here and nothing closes it");
    t->at++;
    return 1;
}

/* A name can stand here: its first quote is followed by what TVM puts behind every name. */
static int key_follows(const char *p, const char *end)
{
    if (p == end || *p++ != '"')
        return 0;
    const char *quote = memchr(p, '"', (size_t)(end - p));
    if (!quote)
        return 0;
    p = blanks(quote + 1, end);
    if (p == end || *p++ != ':')
        return 0;
    p = blanks(p, end);
    return p < end && (*p == '{' || *p == '[');
}

/* 1 if the report can go on at p, behind the quote of a value. */
static int value_ends(const struct gt_tvm_text *t, const char *p)
{
    unsigned depth = t->depth;
    for (p = blanks(p, t->end); p < t->end; p = blanks(p + 1, t->end)) {
        char open = depth ? t->open[depth - 1] : 0;
        if (*p == ',') {
            p = blanks(p + 1, t->end);
            /* a value of the innermost level has no second member */
            if (!depth || depth == GT_TVM_DEEPEST)
                return 0;
            return open == '{' ? key_follows(p, t->end) : p < t->end && *p == '{';
        }
        if (!depth || *p != closing(open))
            return 0;
        depth--;
    }
    return depth == 0;
}

/* The text up to a quote behind which the report goes on. Each byte is looked at once: what is
 * asked behind a quote reaches to the next one at most. */
static int raw_value(struct gt_tvm_text *t)
{
    const char *start = t->at++, *p = t->at;
    while ((p = memchr(p, '"', (size_t)(t->end - p)))) {
        if (value_ends(t, p + 1)) {
            for (; t->at < p; t->at++)
                add_byte(t, *t->at);
            t->at = p + 1;
            return 1;
        }
        p++;
    }
    return gt_tvm_fail(t, start, "it can't be told where this text ends");
}

static int raw_key(struct gt_tvm_text *t)
{
    const char *start = t->at;
    if (!key_follows(start, t->end))
        return gt_tvm_fail(t, start, "it can't be told where this name ends");
    for (t->at++; *t->at != '"'; t->at++)
        add_byte(t, *t->at);
    t->at++;
    return 1;
}

static int begin_string(struct gt_tvm_text *t, const char *why)
{
    if (t->why)
        return 0;
    if (gt_tvm_peek(t) != '"')
        return gt_tvm_fail(t, t->at, t->at == t->end ? "the file ends too early" : why);
    t->length = 0;
    add(t, "", 0);
    return 1;
}

int gt_tvm_key(struct gt_tvm_text *t)
{
    if (!begin_string(t, "a name in quotes is missing") ||
        !(t->raw ? raw_key(t) : strict_string(t)))
        return 0;
    t->behind = t->at;
    if (gt_tvm_peek(t) != ':')
        return gt_tvm_fail(t, t->at, "a colon is missing");
    t->at++;
    return 1;
}

int gt_tvm_string(struct gt_tvm_text *t)
{
    int read = begin_string(t, "a text in quotes is missing") &&
               (t->raw ? raw_value(t) : strict_string(t));
    t->behind = t->at;
    return read;
}

int gt_tvm_number(struct gt_tvm_text *t, double *real, int64_t *count, int *whole)
{
    char copy[512], *end;
    size_t n = 0;
    if (t->why)
        return 0;
    gt_tvm_peek(t);
    while (t->at + n < t->end && strchr("+-.0123456789eE", t->at[n]) && t->at[n])
        n++;
    /* TVM writes a ratio of 1e300 with all its digits */
    if (!n || n >= sizeof copy)
        return gt_tvm_fail(t, t->at, t->at == t->end ? "the file ends too early" : "no number");
    memcpy(copy, t->at, n);
    copy[n] = 0;
    *real = strtod(copy, &end);
    if (*end || !isfinite(*real))
        return gt_tvm_fail(t, t->at, *end ? "no number" : "too large a number");
    errno = 0;
    *count = strtoll(copy, &end, 10);
    *whole = !*end && !errno;
    if (*end && *real == floor(*real) && fabs(*real) < 9e15) {
        *count = (int64_t)*real;
        *whole = 1;
    }
    t->at += n;
    return 1;
}
