/* Where a writer's bytes go: a file descriptor or memory. Remembers the first write error, so that
 * a writer need not look after each piece. Single thread. */
#ifndef GT_SINK_H
#define GT_SINK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct gt_sink {
    int fd;    /* -1: memory */
    int error; /* first -errno, 0 while all is well; later bytes are dropped */
    char *data;
    size_t used, room;
};

/* Borrows fd until gt_sink_close; -1 collects in memory. */
void gt_sink_open(struct gt_sink *s, int fd);
void gt_sink_flush(struct gt_sink *s);
/* Writes what is left, frees the buffer, returns 0 or the first -errno. */
int gt_sink_close(struct gt_sink *s);
/* Memory sinks: the NUL-terminated text; the caller frees it. The sink is empty after it. */
char *gt_sink_take(struct gt_sink *s, size_t *len);

void gt_sink_put(struct gt_sink *s, const char *data, size_t len);
static inline void gt_sink_text(struct gt_sink *s, const char *text)
{
    gt_sink_put(s, text, strlen(text));
}
void gt_sink_fill(struct gt_sink *s, char c, size_t count);
void gt_sink_int(struct gt_sink *s, int64_t value);
/* ns as µs with exactly three decimals: 1234567 -> 1234.567 */
void gt_sink_us(struct gt_sink *s, int64_t ns);
/* The shortest text that reads back as the same number, always with `.` or `e`; "null" if the
 * number is none (JSON has neither NaN nor infinity). */
void gt_sink_real(struct gt_sink *s, double value);
void gt_sink_format(struct gt_sink *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
