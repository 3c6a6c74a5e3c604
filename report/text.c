/* Texts and numbers as the writers print them. See writer.h. */
#include "report/writer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gt_text_json(struct gt_sink *s, const char *text, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    size_t from = 0;
    gt_sink_put(s, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
            continue;
        char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        size_t n = 6;
        const char *at = strchr("\"\"\\\\\nn\tt\rr\bb\ff", c);
        /* the string holds pairs: the character, its letter */
        if (at && c) {
            escape[1] = at[1];
            n = 2;
        }
        gt_sink_put(s, text + from, i - from);
        gt_sink_put(s, escape, n);
        from = i + 1;
    }
    gt_sink_put(s, text + from, len - from);
    gt_sink_put(s, "\"", 1);
}

/* One character of a cell: its bytes in *out, how many characters they show; advances *p. */
static size_t shown(const char **p, char out[8], size_t *bytes)
{
    unsigned char c = (unsigned char)**p;
    if (c < 0x20 || c == 0x7f) {
        *bytes = (size_t)(c == '\n'   ? sprintf(out, "\\n")
                          : c == '\t' ? sprintf(out, "\\t")
                          : c == '\r' ? sprintf(out, "\\r")
                                      : sprintf(out, "\\x%02x", c));
        ++*p;
        return *bytes;
    }
    size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    /* U+0080..U+009F are controls too: some terminals obey them */
    if (n == 2 && c == 0xc2 && (unsigned char)(*p)[1] < 0xa0) {
        *bytes = (size_t)sprintf(out, "\\x%02x", (unsigned char)(*p)[1]);
        *p += 2;
        return *bytes;
    }
    memcpy(out, *p, n);
    *bytes = n;
    *p += n;
    return 1;
}

size_t gt_text_width(const char *text)
{
    size_t width = 0, bytes;
    char out[8];
    while (*text)
        width += shown(&text, out, &bytes);
    return width;
}

void gt_text_cell(struct gt_sink *s, const char *text, size_t width, size_t limit, int left)
{
    size_t full = gt_text_width(text), used = 0, bytes;
    int cut = full >= limit;
    size_t total = cut ? limit + 3 : full;
    char out[8];
    if (!left && total < width)
        gt_sink_fill(s, ' ', width - total);
    while (*text) {
        size_t n = shown(&text, out, &bytes);
        if (used + n > limit)
            break;
        gt_sink_put(s, out, bytes);
        used += n;
    }
    if (cut) {
        gt_sink_fill(s, ' ', limit - used);
        gt_sink_text(s, "...");
    }
    if (left && total < width)
        gt_sink_fill(s, ' ', width - total);
}

void gt_text_cut(struct gt_sink *s, const char *text, size_t width)
{
    size_t full = gt_text_width(text), used = 0, bytes;
    char out[8];
    if (full < width)
        gt_sink_fill(s, ' ', width - full);
    while (*text) {
        size_t n = shown(&text, out, &bytes);
        if (used + n > width)
            break;
        gt_sink_put(s, out, bytes);
        used += n;
    }
    if (full > width)
        gt_sink_fill(s, ' ', width - used);
}

void gt_text_tail(struct gt_sink *s, const char *text, size_t width)
{
    size_t left = gt_text_width(text), bytes;
    char out[8];
    int cut = left > width;
    while (cut && left > width - 3)
        left -= shown(&text, out, &bytes);
    if (cut)
        gt_sink_text(s, "...");
    gt_text_cell(s, text, width - (cut ? 3 : 0), SIZE_MAX, 1);
}

void gt_text_time(char *out, double ns)
{
    gt_text_us(out, ns / 1000);
}

void gt_text_us(char *out, double us)
{
    if (us >= 1e6)
        sprintf(out, "%.3fs", us / 1e6);
    else if (us >= 1e3)
        sprintf(out, "%.3fms", us / 1e3);
    else
        sprintf(out, "%.3fus", us);
}

void gt_text_memory(char *out, int64_t bytes)
{
    double b = (double)bytes, size = fabs(b);
    if (size >= 1 << 30)
        sprintf(out, "%.2f GB", b / (1 << 30));
    else if (size >= 1 << 20)
        sprintf(out, "%.2f MB", b / (1 << 20));
    else if (size >= 1 << 10)
        sprintf(out, "%.2f KB", b / (1 << 10));
    else
        sprintf(out, "%lld B", (long long)bytes);
}

void gt_text_share(char *out, double part, double whole)
{
    if (whole == 0)
        sprintf(out, "NaN");
    else
        sprintf(out, "%.2f%%", part * 100.0 / whole);
}

/* Bytes of `text`, at most `most`, that end between two characters. */
static size_t fit(const char *text, size_t most)
{
    size_t n = strlen(text);
    if (n <= most)
        return n;
    for (n = most; n && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
        ;
    return n;
}

void gt_text_thread(const struct gt_model *m, int64_t thread, char out[GT_THREAD_BYTES])
{
    const struct gt_thread *t = &m->threads[thread];
    const char *name = gt_model_string(m, t->name, NULL);
    char several[40] = "";
    if (t->threads > 1)
        snprintf(several, sizeof several, " (%lld threads)", (long long)t->threads);
    /* a session's names have 15 bytes, those of a JSON file any length */
    snprintf(out, GT_THREAD_BYTES, "%.*s/%u%s", (int)fit(name, 180), name, t->tid, several);
}

void gt_text_sources(char *out, size_t room, uint32_t sources)
{
    size_t n = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < 32; i++) {
        if (!(sources >> i & 1) || n + 16 > room)
            continue;
        n += (size_t)snprintf(out + n, room - n, "%s%s", n ? "," : "", gt_source_name(i));
    }
}
