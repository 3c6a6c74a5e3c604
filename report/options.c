/* See options.h. */
#include "report/options.h"
#include <stdio.h>
#include <string.h>

static int is_long(const struct option *longs, int value)
{
    while (longs->name && longs->val != value)
        longs++;
    return longs->name != NULL;
}

int gt_options_next(int argc, char **argv, const char *shorts, const struct option *longs)
{
    char letter[3] = "-";
    const char *option, *why = "unknown option";
    int c;

    opterr = 0;
    c = getopt_long(argc, argv, shorts, longs, NULL);
    if (c != '?' && c != ':')
        return c;
    option = argv[optind - 1];
    letter[1] = (char)optopt;
    /* getopt steps past a long option before it complains, past a letter only at the word's end */
    if (optopt && !(strncmp(option, "--", 2) == 0 && is_long(longs, optopt)))
        option = letter;
    if (c == ':')
        why = "needs a value";
    else if (optopt && option != letter)
        why = "takes no value";
    fprintf(stderr, "gputally: %.*s: %s; see gputally %s --help\n", (int)strcspn(option, "="),
            option, why, argv[0]);
    return '?';
}
