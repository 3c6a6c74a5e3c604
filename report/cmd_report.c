/* `gputally report FILE…`: any view of sessions or saved JSON. Reads only; writes where it is told.
 */
#include "report/commands.h"
#include "core/config.h"
#include "report/lines.h"
#include "report/load.h"
#include "report/mem.h"
#include "report/missing.h"
#include "report/once.h"
#include "report/options.h"
#include "report/part.h"
#include "report/place.h"
#include "report/writer.h"
#include "report/wrote.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void help(FILE *to)
{
    fputs(
        "Usage: gputally report [options] FILE...\n"
        "Shows what FILE holds: reports that were saved as json, sessions, also of a program that\n"
        "still runs, what TVM's Report.json() wrote, or a list of events (docs/format.md). One\n"
        "table a process; the formats for other programs hold all files as one. FILE - is "
        "standard\n"
        "input.\n"
        "  -f, --format NAME     ",
        to);
    for (size_t i = 0; i < gt_writer_count; i++)
        fprintf(to, "%s%s", i ? ", " : "", gt_writers[i].name);
    fprintf(
        to,
        "; default: by the name of --output, else table\n"
        "  -s, --sort-by FIELD   order of table and csv, default self_cpu_time_total; one of\n"
        "                        %s\n"
        "  -n, --row-limit N     rows of table (default 100) and csv (default all); -1: all\n"
        "  -g, --group-by LIST   keep apart by %s; may be repeated;\n"
        "                        stack:N looks at the N innermost frames; of tree and folded only\n"
        "                        stack, which puts the frames above the ranges\n"
        "      --stack FORM      --group-by stack, with these frames: auto (Python's where there\n"
        "                        are any, else native), python, native, both (joined)\n"
        "      --hide GLOBS      stacks without the frames whose text matches: "
        "'*/site-packages/*,*/lib/python3*'\n"
        "      --metric NAME     of folded: cpu, or device for device time that was launched\n"
        "      --total-average   one row of table and csv, the sum of all calls\n"
        "      --sum             one table of all processes\n"
        "      --no-sort         tvm-table: rows as they came\n"
        "      --no-aggregate    tvm-table: a row a place in the call tree\n"
        "      --no-col-sums     tvm-table: no row of sums\n"
        "      --lines           native frames with file and line, and inlined functions; alone: "
        "as\n"
        "                        --stack both\n"
        "      --debug-dir DIR   looks there too for modules and debug files; may be repeated\n"
        "  -o, --output FILE     write there instead of standard output\n"
        "      --force           replace FILE if it exists\n"
        "  -h, --help            this text\n",
        gt_sort_names, gt_group_names);
}

static int complain(const struct gt_err *e)
{
    fprintf(stderr, "gputally: %s\n", e->message);
    return 2;
}

struct request {
    struct gt_write_options options;
    const struct gt_writer *writer;
    const char *output;
    const char *hide; /* frames, NULL: none */
    enum gt_stack_form form;
    int force, sum, lines;
    const char **folders; /* with debug files */
    size_t folder_count, folder_room;
    size_t *file; /* of a process: its position in argv */
    char **argv;
};

/* The longest extension that fits: .tree.txt before .txt. */
static const struct gt_writer *by_extension(const char *path)
{
    const struct gt_writer *best = NULL;
    for (size_t i = 0; i < gt_writer_count; i++) {
        const char *x = gt_writers[i].extension;
        size_t n = strlen(x), len = strlen(path);
        if (len > n && !strcmp(path + len - n, x) && (!best || n > strlen(best->extension)))
            best = &gt_writers[i];
    }
    return best;
}

/* Whose table follows. */
static void heading(const struct gt_model *m, const struct request *q, size_t process,
                    struct gt_sink *s)
{
    const struct gt_process *p = &m->processes[process];
    const char *exe = gt_model_string(m, p->exe, NULL), *how = gt_wrote_ended(p->ended);
    const char *file = q->argv[q->file[process]];
    gt_sink_text(s, process ? "\n" : "");
    gt_text_cell(s, strcmp(file, "-") ? file : "standard input", 0, SIZE_MAX, 1);
    if (p->tvm) {
        gt_sink_text(s, ": a report of TVM\n");
        return;
    }
    gt_sink_format(s, ": process %lld (", (long long)p->pid);
    gt_text_cell(s, strrchr(exe, '/') ? strrchr(exe, '/') + 1 : exe, 0, SIZE_MAX, 1);
    gt_sink_format(s, ")%s%s\n", *how ? ", " : "", how);
}

static void write_all(const struct gt_model *m, struct request *q, struct gt_sink *s)
{
    int tables = q->writer->bit & (GT_FORMAT_TABLE | GT_FORMAT_TVM_TABLE);
    struct gt_sink hint;
    gt_sink_open(&hint, STDERR_FILENO);
    q->options.hint = &hint;
    if (!tables || q->sum || m->process_count < 2) {
        q->writer->write(m, &q->options, s);
        gt_sink_close(&hint);
        return;
    }
    for (size_t i = 0; i < m->process_count; i++) {
        struct gt_model part;
        gt_part_init(&part, m, i);
        heading(m, q, i, s);
        q->writer->write(&part, &q->options, s);
        gt_part_fini(&part);
    }
    gt_sink_close(&hint);
}

static int write_out(const struct gt_model *m, struct request *q)
{
    struct gt_sink s;
    struct gt_err e = {""};
    size_t len;
    int rc;
    if (!q->output || !strcmp(q->output, "-")) {
        gt_sink_open(&s, STDOUT_FILENO);
        write_all(m, q, &s);
        if ((rc = gt_sink_close(&s))) {
            gt_err_set(&e, rc, "standard output: %s", strerror(-rc));
            return complain(&e);
        }
        return 0;
    }
    /* in memory first: if that runs out, there is no half of a file */
    gt_sink_open(&s, -1);
    write_all(m, q, &s);
    char *text = gt_sink_take(&s, &len);
    rc = gt_place_put_file(q->output, text, len, q->force, &e);
    free(text);
    return rc ? complain(&e) : 0;
}

static int parse(int argc, char **argv, struct request *q)
{
    static const struct option options[] = {{"format", required_argument, NULL, 'f'},
                                            {"sort-by", required_argument, NULL, 's'},
                                            {"row-limit", required_argument, NULL, 'n'},
                                            {"group-by", required_argument, NULL, 'g'},
                                            {"stack", required_argument, NULL, 'K'},
                                            {"hide", required_argument, NULL, 'H'},
                                            {"metric", required_argument, NULL, 'M'},
                                            {"total-average", no_argument, NULL, 'T'},
                                            {"sum", no_argument, NULL, 'S'},
                                            {"no-sort", no_argument, NULL, 'X'},
                                            {"no-aggregate", no_argument, NULL, 'Y'},
                                            {"no-col-sums", no_argument, NULL, 'Z'},
                                            {"lines", no_argument, NULL, 'L'},
                                            {"debug-dir", required_argument, NULL, 'D'},
                                            {"output", required_argument, NULL, 'o'},
                                            {"force", no_argument, NULL, 'F'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct gt_groups none = {0};
    const char *bad;
    uint32_t *order;
    const char *shape = NULL; /* the last option that a tree can't follow */
    const char *tvm = NULL;   /* likewise, of tvm-table alone */
    const char *stack = NULL, *metric = NULL;
    char *end;
    struct stat st;
    unsigned by;
    int c, limited = 0;
    optind = 1;
    while ((c = gt_options_next(argc, argv, ":f:s:n:g:o:h", options)) != -1) {
        switch (c) {
        case 'f':
            if (!(q->writer = gt_writer_find(optarg, strlen(optarg)))) {
                fprintf(stderr, "gputally: --format %s: there is", optarg);
                for (size_t i = 0; i < gt_writer_count; i++)
                    fprintf(stderr, " %s", gt_writers[i].name);
                fprintf(stderr, "\n");
                return 2;
            }
            break;
        case 's':
            q->options.sort_by = optarg;
            shape = "--sort-by";
            if (gt_group_sort(&none, optarg, &order)) {
                fprintf(stderr, "gputally: --sort-by %s: there is %s\n", optarg, gt_sort_names);
                return 2;
            }
            free(order);
            break;
        case 'n':
            errno = 0;
            q->options.row_limit = strtol(optarg, &end, 10);
            limited = 1;
            shape = "--row-limit";
            if (errno || !*optarg || *end || q->options.row_limit < -1) {
                fprintf(stderr, "gputally: --row-limit %s: not a number of rows\n", optarg);
                return 2;
            }
            break;
        case 'g':
            if (gt_group_parse(optarg, &by, &bad)) {
                fprintf(stderr, "gputally: --group-by %s: there is %s stack:N\n", bad,
                        gt_group_names);
                return 2;
            }
            if (by & GT_BY_STACK)
                stack = "--group-by stack";
            if (by & 0xffff & ~(unsigned)GT_BY_STACK)
                shape = "--group-by";
            if (GT_BY_FRAMES(by))
                q->options.group_by &= 0xffff;
            q->options.group_by |= by;
            break;
        case 'K':
            stack = "--stack";
            q->options.group_by |= GT_BY_STACK;
            q->form = GT_STACK_AUTO;
            while (q->form < GT_STACK_FORMS && strcmp(gt_stack_forms[q->form], optarg))
                q->form++;
            if (q->form == GT_STACK_FORMS) {
                fprintf(stderr, "gputally: --stack %s: there is auto python native both\n", optarg);
                return 2;
            }
            break;
        case 'H':
            stack = "--hide";
            q->hide = optarg;
            q->options.group_by |= GT_BY_STACK;
            break;
        case 'M':
            metric = "--metric";
            q->options.device = !strcmp(optarg, "device");
            if (!q->options.device && strcmp(optarg, "cpu")) {
                fprintf(stderr, "gputally: --metric %s: there is cpu device\n", optarg);
                return 2;
            }
            break;
        case 'T':
            shape = "--total-average";
            q->options.group_by |= GT_BY_NOTHING;
            break;
        case 'o':
            q->output = optarg;
            break;
        case 'L':
            q->lines = 1;
            break;
        case 'D':
            if (stat(optarg, &st) || !S_ISDIR(st.st_mode)) {
                fprintf(stderr, "gputally: --debug-dir %s: not a folder\n", optarg);
                return 2;
            }
            gt_mem_grow(&q->folders, &q->folder_room, q->folder_count, sizeof *q->folders);
            q->folders[q->folder_count++] = optarg;
            break;
        case 'S':
            q->sum = 1;
            break;
        case 'X':
            q->options.no_sort = 1;
            tvm = "--no-sort";
            break;
        case 'Y':
            q->options.no_aggregate = 1;
            tvm = "--no-aggregate";
            break;
        case 'Z':
            q->options.no_col_sums = 1;
            tvm = "--no-col-sums";
            break;
        case 'F':
            q->force = 1;
            break;
        case 'h':
            help(stdout);
            return 0;
        default:
            return 2;
        }
    }
    if (optind == argc) {
        help(stderr);
        return 1;
    }
    if (!q->writer && q->output)
        q->writer = by_extension(q->output);
    if (!q->writer)
        q->writer = &gt_writers[0];
    if (shape && q->writer->bit == GT_FORMAT_TREE) {
        fprintf(stderr,
                "gputally: %s is for tables: a tree shows every call under its caller, by total "
                "time\n",
                shape);
        return 2;
    }
    if (shape && !(q->writer->bit & (GT_FORMAT_TABLE | GT_FORMAT_CSV | GT_FORMAT_JSON))) {
        fprintf(stderr,
                "gputally: %s is for table and csv: %s holds every place of the call tree\n", shape,
                q->writer->name);
        return 2;
    }
    if (stack && q->writer->bit & (GT_FORMAT_TVM | GT_FORMAT_TVM_CSV | GT_FORMAT_TVM_TABLE)) {
        fprintf(stderr, "gputally: %s: TVM's forms have no stacks\n", stack);
        return 2;
    }
    /* who wants lines wants to see them; JSON has all stacks beside its rows */
    if (q->lines && !stack && !(q->options.group_by & GT_BY_NOTHING) &&
        q->writer->bit & (GT_FORMAT_TABLE | GT_FORMAT_CSV | GT_FORMAT_TREE | GT_FORMAT_FOLDED)) {
        q->options.group_by |= GT_BY_STACK;
        q->form = GT_STACK_JOINED;
    }
    if (metric && q->writer->bit != GT_FORMAT_FOLDED) {
        fprintf(stderr, "gputally: --metric is for --format folded\n");
        return 2;
    }
    if (tvm && q->writer->bit != GT_FORMAT_TVM_TABLE) {
        fprintf(stderr, "gputally: %s is for --format tvm-table\n", tvm);
        return 2;
    }
    if (!limited && q->writer != gt_writer_find("table", 5))
        q->options.row_limit = -1;
    return -1;
}

/* Adds a file. What is there already is left out: a report that was named twice, or that and the
 * session it was made from. */
static int add_file(struct gt_model *m, const char *path, struct gt_err *e)
{
    const struct gt_model before = *m;
    int rc = gt_load_file(m, path, e);
    size_t n = rc ? 0 : gt_once(m, &before);
    if (n == 1)
        fprintf(stderr, "gputally: %s: counted once: its process is in a file before it\n", path);
    else if (n)
        fprintf(stderr, "gputally: %s: counted once: %zu of its processes are in files before it\n",
                path, n);
    return rc;
}

int gt_cmd_report(int argc, char **argv)
{
    struct request q = {.options = {.sort_by = "self_cpu_time_total", .row_limit = 100}};
    struct gt_model m;
    struct gt_err e = {""};
    int status = parse(argc, argv, &q);
    if (status >= 0)
        return status;
    signal(SIGXFSZ, SIG_IGN);
    gt_model_init(&m);
    status = 0;
    q.argv = argv;
    q.file = gt_mem_new(1, sizeof *q.file);
    for (int i = optind; i < argc && !status; i++) {
        size_t first = m.process_count;
        if (add_file(&m, argv[i], &e))
            status = complain(&e);
        q.file = gt_mem_resize(q.file, m.process_count, sizeof *q.file);
        for (size_t k = first; k < m.process_count; k++)
            q.file[k] = (size_t)i;
    }
    if (!status) {
        if (q.lines || q.folder_count)
            gt_lines_fill(&m, &(struct gt_symbols_folders){q.folders, q.folder_count}, q.lines);
        gt_stacks_show(&m, q.form);
        if (q.hide)
            gt_stacks_hide(&m, q.hide);
        gt_missing_tell(&m, &q.options);
        status = write_out(&m, &q);
    }
    free(q.file);
    free(q.folders);
    gt_model_fini(&m);
    return status;
}
