/* Lines of a code object, by the three forms that its table has had. Called by python_code.c.
 *
 * PyCode_Addr2Line would tell the same, but is not made for threads without the GIL. */
#include "preload/python.h"

/* 3.9: pairs (bytes of code, signed lines): the line changes behind so many bytes. */
static int64_t by_lnotab(const unsigned char *p, const unsigned char *end, int64_t line, int64_t at)
{
    int64_t reached = 0;

    for (; end - p >= 2; p += 2) {
        reached += p[0];
        if (reached > at)
            break;
        line += (signed char)p[1];
    }
    return line;
}

/* 3.10: pairs (bytes of code, signed lines): the line changes before them; -128: they have none. */
static int64_t by_pairs(const unsigned char *p, const unsigned char *end, int64_t line, int64_t at)
{
    int64_t reached = 0;

    for (; end - p >= 2; p += 2) {
        int change = (signed char)p[1];

        if (change != -128)
            line += change;
        reached += p[0];
        if (at < reached)
            return change == -128 ? 0 : line;
    }
    return 0;
}

/* 3.11 and later: entries that begin with a byte above 127: four bits of form, three of how many
 * words of code. Columns follow, which we pass over. */
enum { FORM_LINE_0 = 10, FORM_LINE_2 = 12, FORM_NO_COLUMNS = 13, FORM_LONG = 14, FORM_NONE = 15 };

/* Six bits a byte, the lowest first; the lowest of all is the sign. */
static int64_t signed_number(const unsigned char *p, const unsigned char *end)
{
    uint64_t v = 0;

    for (unsigned shift = 0; p < end && shift < 42; shift += 6) {
        v |= (uint64_t)(*p & 63) << shift;
        if (!(*p++ & 64))
            break;
    }
    return v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
}

static int64_t by_entries(const unsigned char *p, const unsigned char *end, int64_t line,
                          int64_t at)
{
    int64_t reached = 0;

    while (p < end) {
        int form = *p >> 3 & 15;

        reached += ((*p & 7) + 1) * 2;
        if (form >= FORM_LINE_0 && form <= FORM_LINE_2)
            line += form - FORM_LINE_0;
        else if (form == FORM_NO_COLUMNS || form == FORM_LONG)
            line += signed_number(p + 1, end);
        if (at < reached)
            return form == FORM_NONE ? 0 : line;
        do
            p++;
        while (p < end && !(*p & 128));
    }
    return 0;
}

uint32_t gt_python_line(unsigned minor, const unsigned char *table, size_t n, int64_t first_line,
                        int64_t at)
{
    const unsigned char *end = table + n;
    int64_t line;

    if (at < 0) /* before its first instruction */
        line = first_line;
    else if (minor < 10)
        line = by_lnotab(table, end, first_line, at);
    else if (minor == 10)
        line = by_pairs(table, end, first_line, at);
    else
        line = by_entries(table, end, first_line, at);
    return line > 0 && line <= 0xffffff ? (uint32_t)line : 0;
}
