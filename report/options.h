/* Command-line options of the commands that use getopt_long, with our own messages. */
#ifndef GT_OPTIONS_H
#define GT_OPTIONS_H

#include <getopt.h>

/* As getopt_long, but a mistake is told as `gputally: --nope: unknown option; see gputally COMMAND
 * --help`: getopt would begin with the command's name and give no hint. `shorts` must begin with a
 * colon. argv[0] is the command. Returns '?' for any mistake. Single thread. */
int gt_options_next(int argc, char **argv, const char *shorts, const struct option *longs);

#endif
