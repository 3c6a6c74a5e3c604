/* Client of the exec tests: `life_exec [COUNT=N] [close] [COMMAND …]` records the range `step N` N
 * times, and becomes COMMAND. With `close` it closes every file descriptor first. N defaults to 1;
 * 0: records nothing. Without a command it prints `done` and exits with 5. */
#include "gputally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int at = 1, n = 1;
    char name[32];

    if (at < argc && strncmp(argv[at], "COUNT=", 6) == 0)
        n = atoi(argv[at++] + 6);
    snprintf(name, sizeof name, "step %d", n);
    for (int i = 0; i < n; i++) {
        gputally_range_push(name);
        gputally_range_pop();
    }
    if (at < argc && strcmp(argv[at], "close") == 0) {
        for (int fd = 0; fd < 64; fd++)
            close(fd);
        at++;
    }
    if (at < argc) {
        execvp(argv[at], argv + at);
        return 127;
    }
    puts("done");
    return 5;
}
