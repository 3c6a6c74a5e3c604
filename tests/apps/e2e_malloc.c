/* A program with an allocator of its own that counts its calls: after a warm-up, 100,000 pairs,
 * marks, samples, start/end ranges and deep nests must call none of it, on the main thread and on
 * another. Prints `warm N` (calls while warming up, may be any) and `hot 0`. --wrap: through NVTX
 * too, where its headers are there. Exit 0; 1: something was allocated. */
#include "nvtx_client.h"
#include "gputally.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A bump allocator: nothing is given back. The size lies before each block for realloc. */
static char arena[64 << 20] __attribute__((aligned(64)));
static size_t used;
static long calls;

static void *take(size_t size, size_t align)
{
    size_t at, end;

    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    if (align < 16)
        align = 16;
    /* room to align and for the size */
    at = __atomic_fetch_add(&used, size + align + 32, __ATOMIC_RELAXED);
    at = (at + 16 + align - 1) / align * align;
    end = at + size;
    if (end > sizeof(arena) || end < size) {
        errno = ENOMEM;
        return NULL;
    }
    ((size_t *)(void *)(arena + at))[-1] = size;
    return arena + at;
}

void *malloc(size_t size)
{
    return take(size, 16);
}

void free(void *p)
{
    (void)p;
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}

void *calloc(size_t n, size_t size)
{
    /* fresh memory of a static array is zero */
    return n && size > SIZE_MAX / n ? NULL : take(n * size, 16);
}

void *realloc(void *p, size_t size)
{
    void *q = take(size, 16);
    size_t old = p ? ((size_t *)p)[-1] : 0;

    if (q && p)
        memcpy(q, p, old < size ? old : size);
    return q;
}

void *memalign(size_t align, size_t size);
void *memalign(size_t align, size_t size)
{
    return take(size, align);
}

void *aligned_alloc(size_t align, size_t size)
{
    return take(size, align);
}

int posix_memalign(void **p, size_t align, size_t size)
{
    *p = take(size, align);
    return *p ? 0 : ENOMEM;
}

static void work(int times)
{
    struct gputally_attributes a = GPUTALLY_ATTRIBUTES_INIT;

    a.name = "attributes";
    a.domain = "domain";
    a.bytes = 8;
    for (int i = 0; i < times; i++) {
        uint64_t one, two;

        gputally_range_push("outer");
        gputally_range_push("inner");
        gputally_range_pop();
        gputally_range_push_ex(&a);
        gputally_range_pop_domain("domain");
        gputally_range_pop();
        gputally_mark("mark");
        gputally_counter("counter", i);
        one = gputally_range_start("async");
        two = gputally_range_start("async");
        gputally_range_end(one);
        gputally_range_end(two);
        gputally_range_pop(); /* unbalanced */
#if HAVE_NVTX
        nvtxEventAttributes_t e = text_attr("nvtx ex");
        nvtxRangePushA("nvtx");
        nvtxRangePushEx(&e);
        nvtxRangePop();
        nvtxRangePop();
        nvtxMarkA("nvtx mark");
        nvtxRangeEnd(nvtxRangeStartA("nvtx async"));
#endif
    }
    for (int i = 0; i < 300; i++)
        gputally_range_push("deep");
    for (int i = 0; i < 300; i++)
        gputally_range_pop();
}

static long hot(void)
{
    long before;

    work(10);
    before = __atomic_load_n(&calls, __ATOMIC_RELAXED);
    work(100000);
    return __atomic_load_n(&calls, __ATOMIC_RELAXED) - before;
}

static void *other(void *result)
{
    *(long *)result = hot();
    return NULL;
}

int main(void)
{
    static char out[BUFSIZ];
    long first, second = -1, warm;
    pthread_t t;

    setvbuf(stdout, out, _IOFBF, sizeof(out));
    work(1);
    warm = calls;
    first = hot();
    if (pthread_create(&t, NULL, other, &second) != 0)
        return 3;
    pthread_join(t, NULL);
    printf("hot %ld %ld\n", first, second);
    fprintf(stderr, "warm %ld\n", warm);
    return first != 0 || second != 0;
}
