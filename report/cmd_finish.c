/* `gputally finish SESSION…`: what the library runs when its program ends. */
#include "report/commands.h"
#include "report/finish.h"
#include "report/mem.h"
#include "report/options.h"
#include "report/run_folder.h"
#include "report/session.h"
#include "report/watch.h"
#include "core/config.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: gputally finish [options] SESSION...\n"
    "Turns session files into the reports that their programs asked for.\n"
    "SESSION - reads a session from standard input.\n"
    "  -d, --dead    its process is dead, which can't be told from here\n"
    "                (another pid namespace)\n"
    "  -k, --keep    do not delete the session\n"
    "  -q, --quiet   errors only\n"
    "  -s, --snapshot\n"
    "                reports of processes as they are now, in files of their\n"
    "                own; they run on and have their real one at the end\n"
    "  -m, --merge   with --snapshot: no other one if one is waiting already, and\n"
    "                no word if the process has ended meanwhile\n"
    "  -e, --every SECONDS\n"
    "                the same again and again until the process has ended;\n"
    "                with one SESSION\n"
    "  -h, --help    this text\n";

static int one(const char *path, const struct gt_finish_options *o)
{
    struct gt_finish_result r;
    struct gt_err e = {""};
    struct gt_header h;
    /* the program may have put a file of its own in the place of stderr */
    int silent =
        strcmp(path, "-") && !gt_session_header(path, &h, NULL) && !gt_session_may_print(&h);
    int rc = gt_finish_session(path, o, &r, &e);
    gt_finish_result_free(&r);
    if (o->merge && (rc == -EALREADY || rc == -ESRCH || rc == -ENOENT))
        return 0;
    if (!rc && !o->snapshot)
        gt_run_folder_left(path);
    if (rc && !silent)
        fprintf(stderr, "gputally: %s\n", e.message);
    return rc ? 2 : 0;
}

/* Sessions that the process left behind when it called exec come first. */
static int before(const char *path, const struct gt_finish_options *o)
{
    unsigned long mine, other, from = 0;
    size_t stem = gt_session_stem(path, &mine);
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    int status = 0;
    if (!stem || !mine || stem <= folder)
        return 0;
    while (from < mine) {
        unsigned long next = mine;
        char *dir = folder ? gt_mem_copy(path, folder) : gt_mem_copy(".", 1), *name = NULL;
        DIR *d = opendir(dir);
        free(dir);
        for (struct dirent *f; d && (f = readdir(d));) {
            if (gt_session_stem(f->d_name, &other) != stem - folder || other < from ||
                other >= next || memcmp(f->d_name, path + folder, stem - folder))
                continue;
            next = other;
            free(name);
            name = gt_mem_format("%.*s%s", (int)folder, path, f->d_name);
        }
        if (d)
            closedir(d);
        if (name)
            status |= one(name, o);
        free(name);
        from = next + 1;
    }
    return status;
}

int gt_cmd_finish(int argc, char **argv)
{
    static const struct option options[] = {
        {"dead", no_argument, NULL, 'd'},  {"keep", no_argument, NULL, 'k'},
        {"quiet", no_argument, NULL, 'q'}, {"snapshot", no_argument, NULL, 's'},
        {"merge", no_argument, NULL, 'm'}, {"every", required_argument, NULL, 'e'},
        {"help", no_argument, NULL, 'h'},  {NULL, 0, NULL, 0}};
    struct gt_finish_options o = {0};
    uint64_t every = 0;
    int status = 0, c;
    signal(SIGXFSZ, SIG_IGN); /* EFBIG, not death */
    optind = 1;
    while ((c = gt_options_next(argc, argv, ":dkqsme:h", options)) != -1) {
        switch (c) {
        case 'd':
            o.dead = 1;
            break;
        case 'k':
            o.keep_session = 1;
            break;
        case 'q':
            o.quiet = 1;
            break;
        case 'e':
            if (gt_config_seconds(optarg, strlen(optarg), &every)) {
                fprintf(stderr, "gputally: --every %s: not a number of seconds\n", optarg);
                return 2;
            }
            break;
        case 's':
            o.snapshot = 1;
            break;
        case 'm':
            o.merge = 1;
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            return 2;
        }
    }
    if (optind == argc) {
        fputs(help, stderr);
        return 1;
    }
    if (every && argc - optind != 1) {
        fputs("gputally: --every: with one session\n", stderr);
        return 2;
    }
    if (every)
        return gt_watch(argv[optind], every, o.quiet) ? 2 : 0;
    for (int i = optind; i < argc; i++) {
        if (!o.snapshot)
            status |= before(argv[i], &o);
        status |= one(argv[i], &o);
    }
    return status;
}
