/* gputally: the command line. Picks the command by its name. */
#include "core/config.h"
#include "report/commands.h"

#include <stdio.h>
#include <string.h>

struct command {
    const char *name, *help;
    int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
    {"run", "run a program and report what it did", gt_cmd_run},
    {"report", "show saved reports: sort, group, other formats", gt_cmd_report},
    {"finish", "turn a session into its report", gt_cmd_finish},
    {"recover", "find sessions that were left behind and finish them", gt_cmd_recover},
    {"list", "list formats, sources, collectors or variables", gt_cmd_list},
    {"doctor", "check whether recording works here", gt_cmd_doctor},
};
#define COMMANDS (sizeof commands / sizeof *commands)

static void help(FILE *f)
{
    fputs("Usage: gputally COMMAND [ARGUMENTS]\n"
          "Profiles programs that nobody changed: PyTorch's operators, Kokkos' kernels, and "
          "annotations\n"
          "(NVTX, ITT, ROCTX), per thread, as a table or a tree.\n"
          "\nCommands:\n",
          f);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(f, "  %-9s %s\n", commands[i].name, commands[i].help);
    fputs("\n  -h, --help     this text; gputally COMMAND --help tells about one command\n"
          "  --version      the version\n"
          "\nExample:\n"
          "  gputally run -- python train.py\n",
          f);
}

static int unknown(const char *name)
{
    const struct command *near = NULL;
    unsigned best = 3; /* two typing errors away is a guess, three is not */

    for (size_t i = 0; i < COMMANDS; i++) {
        unsigned d =
            gt_config_distance(name, strlen(name), commands[i].name, strlen(commands[i].name));
        if (d < best)
            best = d, near = &commands[i];
    }
    if (near)
        fprintf(stderr, "gputally: unknown command '%s', did you mean '%s'?\n", name, near->name);
    else
        fprintf(stderr, "gputally: unknown command '%s'; to profile it: gputally run -- %s\n", name,
                name);
    return 2;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return 1;
    }
    if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
        help(stdout);
        return fflush(stdout) ? 2 : 0;
    }
    if (!strcmp(argv[1], "--version")) {
        puts("gputally " GT_VERSION);
        return fflush(stdout) ? 2 : 0;
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    return unknown(argv[1]);
}
