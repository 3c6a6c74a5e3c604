/* What the tests of windows, filters and snapshots watch. Each mode prints "done" at its end.
 *   nest THREADS     on each, 10 times step{layer{op, op}, op}
 *   names N          all{id K{work}} for K < N */
#include "gputally.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void op(void)
{
    gputally_range_push("op");
    gputally_range_pop();
}

static void step(void)
{
    gputally_range_push("step");
    gputally_range_push("layer");
    op();
    op();
    gputally_range_pop();
    op();
    gputally_range_pop();
}

static void *steps(void *unused)
{
    for (int i = 0; i < 10; i++)
        step();
    return unused;
}

static void nest(int threads)
{
    pthread_t t[64];
    for (int i = 0; i < threads; i++)
        pthread_create(&t[i], NULL, steps, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
}

static void names(int n)
{
    char name[32];
    gputally_range_push("all");
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "id %d", i);
        gputally_range_push(name);
        gputally_range_push("work");
        gputally_range_pop();
        gputally_range_pop();
    }
    gputally_range_pop();
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int n = argc > 2 ? atoi(argv[2]) : 1;

    if (!strcmp(mode, "nest"))
        nest(n);
    else if (!strcmp(mode, "names"))
        names(n);
    else
        return 2;
    puts("done");
    return 0;
}
