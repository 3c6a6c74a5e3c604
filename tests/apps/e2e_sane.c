/* Client of include/gputally.h that the sanitizer tests build with -fsanitize: work 100 and leaf
 * 300 on four threads each, heap traffic between. Argument `overflow`, `race`, `undefined`: does
 * that once, so that the sanitizer's own report and status can be seen to stay the same with the
 * profiler there. */
#include "gputally.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int shared;
static const char *mistake = "";

static void *worker(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        char *p = malloc(64);

        gputally_range_push("work");
        for (int j = 0; j < 3; j++) {
            gputally_range_push("leaf");
            if (p)
                memset(p, j, 64);
            gputally_range_pop();
        }
        gputally_range_end(gputally_range_start("async"));
        gputally_mark("mark");
        gputally_range_pop();
        if (!strcmp(mistake, "race"))
            shared++;
        free(p);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[4];

    if (argc > 1)
        mistake = argv[1];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&t[i], NULL, worker, NULL) != 0)
            return 3;
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    if (!strcmp(mistake, "overflow")) {
        char *volatile p = malloc(8);

        p[8] = 1;
        free(p);
    }
    if (!strcmp(mistake, "undefined")) {
        volatile int most = INT_MAX;

        most = most + argc;
    }
    puts("done");
    return shared > 1000000;
}
