/* Preloaded into gputally by test_malloc.py: the allocation with the number FAIL_AT (and, with
 * FAIL_ALL, every later one) returns NULL. FAIL_COUNT names a file that gets how many there were.
 * Allocations that happen before main, by the loader and its constructors, are not counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static long fail_at = -1, all, count;
static int ready;

static int fails(void)
{
    if (!ready)
        return 0;
    count++;
    if (count != fail_at && !(all && count > fail_at))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return fails() ? NULL : __libc_realloc(p, size);
}

__attribute__((constructor)) static void start(void)
{
    const char *at = getenv("FAIL_AT");

    all = getenv("FAIL_ALL") != NULL;
    if (at && atol(at) > 0)
        fail_at = atol(at);
    ready = 1;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAIL_COUNT");
    char text[32];
    int fd, n;

    ready = 0;
    if (!path || (fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600)) < 0)
        return;
    n = snprintf(text, sizeof text, "%ld", count);
    if (write(fd, text, (size_t)n) < 0)
        _exit(99);
    close(fd);
}
