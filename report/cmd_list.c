/* gputally list: what can be given to the options, one a line. */
#include "report/commands.h"
#include "report/writer.h"
#include "core/config.h"

#include <stdio.h>
#include <string.h>

struct row {
    const char *name, *what;
};

static const struct row sources[] = {
    {"all", "all of these"},
#define SOURCE(id, number, word, help) {word, help},
#include "core/sources.def"
#undef SOURCE
    {NULL, NULL},
};

static void rows(const struct row *r)
{
    for (; r->name; r++)
        printf("%-9s %s\n", r->name, r->what);
}

static void list_formats(void)
{
    for (size_t i = 0; i < gt_writer_count; i++)
        printf("%-9s %s\n", gt_writers[i].name, gt_writers[i].help);
    printf("%-9s %s\n", "none", "no report");
}

static void list_sources(void)
{
    rows(sources);
}

static void list_collectors(void)
{
    fputs("gputally: this version has no metric collectors\n", stderr);
}

static void list_variables(void)
{
    size_t n;
    const struct gt_option *o = gt_config_options(&n);

    for (size_t i = 0; i < n; i++) {
        printf("GPUTALLY_%-14s %s", o[i].name, o[i].help);
        if (*o[i].fallback)
            printf(" [%s]", o[i].fallback);
        putchar('\n');
    }
}

static const struct {
    const char *name;
    void (*list)(void);
} lists[] = {{"formats", list_formats},
             {"sources", list_sources},
             {"collectors", list_collectors},
             {"variables", list_variables}};

static void help(FILE *f)
{
    fputs("Usage: gputally list formats|sources|collectors|variables\n"
          "Lists what the options and variables of gputally run can be set to.\n",
          f);
}

int gt_cmd_list(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return 1;
    }
    if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
        help(stdout);
        return fflush(stdout) ? 2 : 0;
    }
    for (size_t i = 0; argc == 2 && i < sizeof lists / sizeof *lists; i++)
        if (!strcmp(argv[1], lists[i].name)) {
            lists[i].list();
            return fflush(stdout) ? 2 : 0;
        }
    fprintf(stderr, "gputally: list: give one of formats, sources, collectors, variables\n");
    return 2;
}
