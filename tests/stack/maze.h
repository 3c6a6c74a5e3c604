/* A random walk through functions of all shapes, for the captures of tests/unit/test_stack*.c. The
 * same source is built by several compilers with several options, and the parts call each other. */
#ifndef MAZE_H
#define MAZE_H

#include <stdint.h>

struct maze;
typedef long maze_step(struct maze *m);

struct maze {
    uint64_t random;
    int depth;                              /* steps to go */
    int quiet;                              /* > 0: no further signal */
    long left;                              /* captures to go: at 0 everything just returns */
    void (*leaf)(struct maze *, void *arg); /* captures and compares */
    void *arg;
    maze_step **steps; /* of all parts */
    unsigned count;
};

/* What a part exports: its steps, ended by NULL. */
#ifdef __cplusplus
extern "C"
#endif
    maze_step *const *
    maze_part(void);

static inline unsigned maze_random(struct maze *m, unsigned below)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(m->random >> 33) % below;
}

/* On: another function, or the end. */
static inline long maze_on(struct maze *m)
{
    if (m->left <= 0)
        return 0;
    if (m->depth <= 0) {
        m->left--;
        m->leaf(m, m->arg);
        return 1;
    }
    m->depth--;
    long r = m->steps[maze_random(m, m->count)](m);
    m->depth++;
    return r + 1;
}

#endif
