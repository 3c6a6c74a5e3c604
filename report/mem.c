/* See mem.h. */
#include "report/mem.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

jmp_buf *gt_mem_trap;
long gt_mem_fail_at;
int gt_mem_failed;

void gt_mem_out(void)
{
    static const char text[] = "gputally: out of memory\n";
    if (gt_mem_trap)
        longjmp(*gt_mem_trap, 1);
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(2);
    _exit(2);
}

static int fails(void)
{
    return gt_mem_fail_at > 0 && --gt_mem_fail_at == 0;
}

void *gt_mem_try(size_t size)
{
    void *p = fails() ? NULL : malloc(size ? size : 1);
    gt_mem_failed |= !p;
    return p;
}

void *gt_mem_resize(void *old, size_t count, size_t size)
{
    size_t bytes;
    void *p;
    if (fails() || __builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX)
        gt_mem_out();
    p = realloc(old, bytes ? bytes : 1);
    if (!p)
        gt_mem_out();
    return p;
}

void *gt_mem_new(size_t count, size_t size)
{
    void *p = fails() ? NULL : calloc(count ? count : 1, size ? size : 1);
    if (!p)
        gt_mem_out();
    return p;
}

void gt_mem_grow(void *array, size_t *room, size_t used, size_t size)
{
    void **p = array;
    if (used < *room)
        return;
    size_t want = *room ? *room * 2 : 16;
    if (want <= used)
        want = used + 1;
    *p = gt_mem_resize(*p, want, size);
    *room = want;
}

char *gt_mem_copy(const char *text, size_t len)
{
    char *p = gt_mem_resize(NULL, len + 1, 1);
    memcpy(p, text, len);
    p[len] = 0;
    return p;
}

char *gt_mem_format(const char *format, ...)
{
    char *p = NULL;
    va_list ap;
    if (fails())
        gt_mem_out();
    va_start(ap, format);
    if (vasprintf(&p, format, ap) < 0)
        gt_mem_out();
    va_end(ap);
    return p;
}
