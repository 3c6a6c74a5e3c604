/* Client of include/gputally.h that is killed while everything is open: its session file, left
 * behind under plain LD_PRELOAD, is what the tests of bad input damage. Exact counts: work 40, deep
 * 5 and an open chain of 6, queue 4 samples, tick 3. */
#include "gputally.h"

#include <pthread.h>
#include <signal.h>

static void *other(void *unused)
{
    (void)unused;
    gputally_range_push("worker");
    for (int i = 0; i < 20; i++) {
        gputally_range_push("work");
        gputally_range_pop();
    }
    gputally_range_pop();
    return NULL;
}

int main(void)
{
    struct gputally_attributes a = GPUTALLY_ATTRIBUTES_INIT;
    pthread_t t;

    a.name = "gemm";
    a.domain = "blas";
    a.shapes = "[[2, 3], [3, 4]]";
    a.bytes = 80;
    a.flops = 48;
    for (int i = 0; i < 20; i++) {
        gputally_range_push("work");
        gputally_range_pop();
    }
    if (pthread_create(&t, NULL, other, NULL) != 0)
        return 3;
    pthread_join(t, NULL);
    for (int i = 0; i < 5; i++)
        gputally_range_push("deep");
    for (int i = 0; i < 5; i++)
        gputally_range_pop();
    gputally_range_end(gputally_range_start("async"));
    gputally_range_start("never ended");
    for (int i = 0; i < 4; i++)
        gputally_counter("queue", i);
    for (int i = 0; i < 3; i++)
        gputally_mark("tick");
    gputally_range_pop(); /* one too many */
    for (int i = 0; i < 6; i++)
        gputally_range_push_ex(&a);
    raise(SIGKILL);
    return 4;
}
