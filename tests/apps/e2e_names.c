/* Client of include/gputally.h with the names that break tools. e2e_names WHAT [N]:
 *   odd       quotes, control characters, bad UTF-8, 64 kB, formulas: one call each, known lengths
 *   fold      N names `step 0`, `step 1`, ...
 *   distinct  N names without digits
 *   nest      N ranges inside each other, then their ends
 *   zero      ranges without time between, a counter of zeros, a name that is never used
 * Prints how many calls it made. */
#include "gputally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const odd[] = {
    "double \" quote",
    "single ' quote",
    "back\\slash",
    "new\nline",
    "tab\there",
    "one \x01 byte",
    "bell \a",
    "escape \x1b[31mred",
    "del \x7f",
    "operator\"\"_kg",
    "=cmd()",
    "+1",
    "-1",
    "@sum",
    "comma, here",
    "semi; colon",
    "bad \xff\xfe utf-8",
    "cut \xe2\x82",
    "overlong \xc0\xaf",
    "surrogate \xed\xa0\x80",
    "too high \xf5\x80\x80\x80",
    "snow \xe2\x98\x83",
    "c1 \xc2\x9b",
    "null \\u0000",
    "</script><b>",
    "%s%n%d",
    "",
    " ",
    "carriage\rreturn",
    "rtl \xe2\x80\xae",
    "bom \xef\xbb\xbf",
    "a:b",
    ":",
    "domain:",
    "\xf0\x9f\x98\x80",
};
#define ODD (sizeof(odd) / sizeof(*odd))

static void pair(const char *name)
{
    gputally_range_push(name);
    gputally_range_pop();
}

static long odd_names(void)
{
    static char longer[65537];
    struct gputally_attributes a = GPUTALLY_ATTRIBUTES_INIT;

    for (size_t i = 0; i < ODD; i++)
        pair(odd[i]);
    memset(longer, 'y', sizeof(longer) - 1);
    pair(longer);
    /* in a domain, too */
    a.domain = "do\"main\n\xff";
    a.name = "in it";
    a.shapes = "[[1, \"x\"]]";
    gputally_range_push_ex(&a);
    gputally_range_pop_domain(a.domain);
    gputally_mark("mark \x01\"");
    gputally_counter("counter \xff,", 0.1);
    return (long)ODD + 4;
}

static long numbered(long n)
{
    char name[64];

    for (long i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "step %ld", i);
        pair(name);
    }
    return n;
}

static long distinct(long n)
{
    for (long i = 0; i < n; i++) {
        char name[32] = "name ";
        size_t at = 5;

        for (long k = i; k || at == 5; k /= 20)
            name[at++] = (char)('g' + k % 20); /* neither digits nor hex */
        name[at] = 0;
        pair(name);
    }
    return n;
}

static long nest(long n)
{
    for (long i = 0; i < n; i++)
        gputally_range_push(i % 2 ? "odd" : "even");
    for (long i = 0; i < n; i++)
        gputally_range_pop();
    return n;
}

static long zero(void)
{
    for (int i = 0; i < 100000; i++)
        pair("nothing");
    for (int i = 0; i < 3; i++)
        gputally_counter("zeros", 0);
    gputally_range_end(gputally_range_start("async nothing"));
    return 100004;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    long n = argc > 2 ? atol(argv[2]) : 1000;

    if (!strcmp(what, "odd"))
        n = odd_names();
    else if (!strcmp(what, "fold"))
        n = numbered(n);
    else if (!strcmp(what, "distinct"))
        n = distinct(n);
    else if (!strcmp(what, "nest"))
        n = nest(n);
    else if (!strcmp(what, "zero"))
        n = zero();
    else
        return 2;
    printf("%ld\n", n);
    return 0;
}
