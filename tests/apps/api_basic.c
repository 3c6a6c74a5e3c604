/* Client of include/gputally.h: everything in it, with counts that are known. Without the library
 * every call returns 0, which it checks. --expect prints what the report must hold (nvtx_basic.c
 * tells the format). Built twice: as a position-independent program and, as api_nopie, as one that
 * is not. No _GNU_SOURCE: the header must do without. */
#undef _GNU_SOURCE
#include "gputally.h"

#include <stdio.h>
#include <string.h>

#define EXPECT(...)                                                                                \
    do {                                                                                           \
        if (expecting)                                                                             \
            printf(__VA_ARGS__);                                                                   \
    } while (0)

/* The library is there and records what we say: an id is never 0 then. */
static int heard(void)
{
    uint64_t id = gputally_range_start("probe");

    return dlsym((void *)0, "gputally_range_push") && gputally_range_end(id) == 0 && id != 0;
}

int main(int argc, char **argv)
{
    int expecting = argc > 1 && strcmp(argv[1], "--expect") == 0;
    struct gputally_attributes a = GPUTALLY_ATTRIBUTES_INIT;
    struct gputally_attributes none = GPUTALLY_ATTRIBUTES_INIT;
    uint64_t id[3];
    int there = heard(), bad = 0;

    for (int i = 0; i < 4; i++) {
        bad |= gputally_range_push("outer") != 0;
        for (int j = 0; j < 25; j++) {
            bad |= gputally_range_push("inner") != (there ? 1 : 0);
            bad |= gputally_range_pop() != (there ? 1 : 0);
        }
        bad |= gputally_range_pop() != 0;
    }
    EXPECT("expect probe 1\nexpect outer 4\nexpect inner 100\n");

    a.name = "gemm";
    a.domain = "blas";
    a.shapes = "[[2, 3], [3, 4]]";
    a.bytes = 80;
    a.flops = 48;
    a.scope = 7;
    for (int i = 0; i < 6; i++) {
        gputally_range_push_ex(&a);
        gputally_range_pop_domain("blas");
    }
    EXPECT("expect blas:gemm 6\nsum blas:gemm bytes 480\nsum blas:gemm flops 288\n");

    /* a program built against an older header, with garbage behind what it knows; and nonsense */
    a.size = offsetof(struct gputally_attributes, domain);
    a.name = "old header";
    a.domain = (const char *)1;
    a.shapes = (const char *)1;
    gputally_range_push_ex(&a);
    gputally_range_pop();
    a.size = 0;
    a.name = (const char *)1;
    gputally_range_push_ex(&a);
    gputally_range_pop();
    a.size = (size_t)-1;
    gputally_range_push_ex(&a);
    gputally_range_pop();
    gputally_range_push_ex(NULL);
    gputally_range_pop();
    gputally_range_push_ex(&none);
    gputally_range_pop();
    gputally_range_push(NULL);
    gputally_range_pop();
    EXPECT("expect old header 1\nexpect (null) 5\n");

    for (int i = 0; i < 3; i++)
        id[i] = gputally_range_start("transfer");
    for (int i = 0; i < 3; i++)
        bad |= gputally_range_end(id[i]) != 0;
    EXPECT("expect transfer 3\n");

    for (int i = 0; i < 5; i++)
        gputally_mark("checkpoint");
    for (int i = 0; i < 4; i++)
        gputally_counter("queue", i * 1.5 - 1);
    gputally_counter("queue", 0.0 / (double)(argc - argc));
    EXPECT("expect checkpoint 5\nexpect queue 4\nvalue queue 4 5 -1 3.5\n");

    /* the range is open over the pause: counted in full; what opens inside never counts */
    gputally_range_push("around");
    gputally_pause();
    gputally_pause();
    gputally_resume();
    gputally_range_push("hidden");
    gputally_range_pop();
    gputally_mark("hidden");
    gputally_resume();
    gputally_resume(); /* one too many */
    gputally_range_pop();
    gputally_range_push("after");
    gputally_range_pop();
    EXPECT("expect around 1\nexpect hidden 0\nexpect after 1\n");

    /* ends without a beginning */
    gputally_range_end(0);
    bad |= gputally_range_end(123456789) != (there ? -1 : 0);
    bad |= gputally_range_pop() != (there ? -1 : 0);
    bad |= gputally_range_pop_domain("never seen") != (there ? -1 : 0);
    EXPECT("total unbalanced 3\n");

    puts(bad ? "wrong results" : "done");
    return bad;
}
