/* The driver's objects: zeroed memory with a mark in its first word, reused by objects of its kind
   and never given back, so that a handle of something destroyed is told from one that lives. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

struct dead {
    uint32_t mark;
    struct dead *next;
};
struct kind {
    uint32_t mark;
    size_t size;
    int live;
    struct dead *dead;
};

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken last */
static struct kind kinds[16];

static struct kind *kind_of(uint32_t mark)
{
    int i = 0;

    while (kinds[i].mark && kinds[i].mark != mark)
        i++;
    kinds[i].mark = mark;
    return &kinds[i];
}

void *sim_new(uint32_t mark, size_t size)
{
    pthread_mutex_lock(&lock);
    struct kind *k = kind_of(mark);
    struct dead *d = k->dead;
    if (d)
        k->dead = d->next;
    else
        d = malloc(size < sizeof *d ? sizeof *d : size);
    if (d) {
        k->size = size;
        k->live++;
        memset(d, 0, size);
        d->mark = mark;
    }
    pthread_mutex_unlock(&lock);
    return d;
}

void sim_drop(void *object)
{
    struct dead *d = object;

    pthread_mutex_lock(&lock);
    struct kind *k = kind_of(d->mark);
    k->live--;
    d->mark = 0;
    d->next = k->dead;
    k->dead = d;
    pthread_mutex_unlock(&lock);
}

bool sim_is(const void *object, uint32_t mark)
{
    /* small numbers are default streams and the like */
    return (uintptr_t)object > 4096 && *(const uint32_t *)object == mark;
}

int sim_live(uint32_t mark)
{
    pthread_mutex_lock(&lock);
    int n = kind_of(mark)->live;
    pthread_mutex_unlock(&lock);
    return n;
}
