/* See run_say.h. */
#include "report/run_say.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

void gt_run_say_launcher(const char *command)
{
    static const char *const launchers[] = {"mpirun", "mpiexec", "srun", "orterun", "prterun"};

    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (!strcmp(base_name(command), launchers[i]))
            fprintf(stderr,
                    "gputally: hint: to reach the ranks on every host, put it inside: %s ... "
                    "gputally run -- PROGRAM\n",
                    launchers[i]);
}

int gt_run_say_not_started(const char *command, int rc)
{
    size_t n = strlen(command);

    /* who is used to `python train.py` leaves python out once */
    if (n > 3 && !strcmp(command + n - 3, ".py") && !access(command, R_OK)) {
        fprintf(stderr,
                "gputally: %s can't be executed by itself; to profile it: gputally run -- "
                "python %s\n",
                command, command);
        return rc == -ENOENT ? 127 : 126;
    }
    if (rc == -ENOENT && !strchr(command, '/'))
        fprintf(stderr, "gputally: %s: command not found\n", command);
    else
        fprintf(stderr, "gputally: %s: %s\n", command, strerror(-rc));
    return rc == -ENOENT ? 127 : 126;
}

void gt_run_say_nothing(const struct gt_config *c)
{
#define SOURCE(id, number, word, help) {number, word},
    static const struct {
        unsigned number;
        const char *word;
    } sources[] = {
#include "core/sources.def"
    };
#undef SOURCE
    static const char *const narrows[] = {
        "CHILDREN=", "EXCLUDE=", "EXE=", "INCLUDE=", "SOURCES=", "WINDOW="};
    const char *lead = " that counts with ";

    if (c->disable) {
        fputs("gputally: nothing recorded: GPUTALLY_DISABLE is set\n", stderr);
        return;
    }
    fputs("gputally: nothing recorded: the program and its children made no call of", stderr);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (c->sources >> sources[i].number & 1)
            fprintf(stderr, " %s", sources[i].word);
    fputs(" (gputally list sources)", stderr);
    for (const char *s = c->set; s < c->set + c->set_bytes; s += strlen(s) + 1)
        for (size_t i = 0; i < sizeof narrows / sizeof *narrows; i++)
            if (!strncmp(s + sizeof "GPUTALLY_" - 1, narrows[i], strlen(narrows[i]))) {
                fprintf(stderr, "%s%s", lead, s);
                lead = " ";
            }
    fputc('\n', stderr);
}
