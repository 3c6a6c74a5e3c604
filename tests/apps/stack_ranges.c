/* Ranges whose callers are known: main calls work three times, which pushes "outer" and calls part
 * to push "inner"; then main calls part itself. With an argument it waits for the end of standard
 * input inside the last range, so that it can be looked at or killed. */
#include <gputally.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))

static volatile int spent;

FUNCTION static void part(int wait)
{
    char c;
    gputally_range_push("inner");
    for (int i = 0; i < 20000; i++)
        spent++;
    if (wait) {
        puts("waiting");
        fflush(stdout);
        while (read(0, &c, 1) > 0)
            ;
    }
    gputally_range_pop();
    spent++; /* no tail call */
}

FUNCTION static void work(void)
{
    gputally_range_push("outer");
    part(0);
    gputally_range_pop();
    spent++;
}

int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 0; i < 3; i++)
        work();
    part(argc > 1);
    return spent == 0;
}
