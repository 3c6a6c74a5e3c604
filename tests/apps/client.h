/* What test clients share that tell what they do: with --expect, the rows and totals that the
 * report must have. */
#ifndef CLIENT_H
#define CLIENT_H

#include <stdio.h>
#include <string.h>

static int expecting;

static __attribute__((unused)) void client_start(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--expect") == 0)
            expecting = 1;
}

static __attribute__((unused)) void expect(const char *row, long count)
{
    if (expecting)
        printf("expect %s %ld\n", row, count);
}

static __attribute__((unused)) void total(const char *what, long count)
{
    if (expecting)
        printf("total %s %ld\n", what, count);
}

#endif
