/* From session to report: see finish.h. Called by `run`, `finish` and `recover`; single thread.
 * Order: claim, load, make every output in memory, write the files, delete the session. Killed
 * anywhere, either the session is still there for the next one, or all files are. */
#include "report/finish.h"
#include "core/config.h"
#include "report/load.h"
#include "report/mem.h"
#include "report/place.h"
#include "report/session.h"
#include "report/writer.h"
#include "report/wrote.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MOST_OUTPUTS 16

struct job {
    const char *path;
    const struct gt_finish_options *options;
    struct gt_finish_result *out;
    struct gt_err *e;
    struct gt_input in;
    struct gt_model model;
    int claimed, pipe, silent, quiet;
    unsigned formats;
    int outside; /* GPUTALLY_WINDOW is set, so that all calls may be outside */
    int log;
    int lock; /* of a snapshot: the session, so that one is made after the other; -1: none */
    struct gt_output outputs[MOST_OUTPUTS];
    size_t output_count;
};

/* The formats that the program's variables asked for, defaults included. */
static void configure(struct job *j)
{
    const struct gt_process *p = &j->model.processes[0];
    char **envp = gt_mem_new(p->config.count + 1, sizeof *envp);
    struct gt_config *c = gt_mem_new(1, sizeof *c);
    for (uint32_t i = 0; i < p->config.count; i++)
        envp[i] = (char *)gt_model_string(&j->model, j->model.lists[p->config.first + i], NULL);
    gt_config_parse(c, envp);
    j->formats = c->formats;
    j->outside = c->window.kind != GT_WINDOW_ALL;
    j->log = c->log;
    j->quiet = j->options->quiet || c->quiet || j->silent;
    free(c);
    free(envp);
}

static void render(struct job *j)
{
    struct gt_write_options o = {.sort_by = "self_cpu_time_total", .row_limit = 100};
    for (size_t i = 0; i < gt_writer_count; i++) {
        const struct gt_writer *w = &gt_writers[i];
        /* both are for people: to stderr */
        int table = (w->bit & (GT_FORMAT_TABLE | GT_FORMAT_TVM_TABLE)) != 0;
        struct gt_sink s;
        if (!(j->formats & (unsigned)w->bit) || (table && j->quiet) ||
            (table && j->options->snapshot))
            continue;
        o.row_limit = table ? 100 : -1;
        gt_sink_open(&s, -1);
        if (table && j->out->table) {
            gt_sink_text(&s, j->out->table);
            gt_sink_text(&s, "\n");
            free(j->out->table);
            j->out->table = NULL;
        }
        w->write(&j->model, &o, &s);
        if (table) {
            j->out->table = gt_sink_take(&s, NULL);
            continue;
        }
        struct gt_output *out = &j->outputs[j->output_count++];
        out->extension = w->extension;
        out->data = gt_sink_take(&s, &out->bytes);
        if (w->bit == GT_FORMAT_JSON && !j->options->snapshot) {
            gt_sink_open(&s, -1);
            gt_out_json_head(&j->model, &s);
            out->head = s.used;
            gt_sink_close(&s);
        }
    }
}

/* As the user would type it: relative where we stand where the program stood. */
static const char *shown(const char *path, const char *cwd)
{
    char here[4096];
    size_t n = strlen(cwd);
    if (n && !strncmp(path, cwd, n) && path[n] == '/' && getcwd(here, sizeof here) &&
        !strcmp(here, cwd))
        return path + n + 1;
    return path;
}

static void word(struct gt_sink *s, const char *text)
{
    static const char safe[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:@%/";
    if (text[strspn(text, safe)]) {
        gt_sink_put(s, "'", 1);
        for (; *text; text++)
            gt_sink_text(s, *text == '\'' ? "'\\''" : (char[2]){*text, 0});
        gt_sink_put(s, "'", 1);
    } else {
        gt_sink_text(s, text);
    }
}

static int write_files(struct job *j, struct gt_sink *said)
{
    struct gt_model *m = &j->model;
    const struct gt_process *p = &m->processes[0];
    struct gt_place place = {gt_model_string(m, p->output, NULL),
                             gt_model_string(m, p->base, NULL),
                             gt_model_string(m, p->host, NULL),
                             gt_model_string(m, p->exe, NULL),
                             p->pid,
                             p->start_unix_ns,
                             j->options->snapshot};
    char tag[96], *json = NULL;
    struct gt_sink files, line;
    unsigned n = j->options->snapshot ? 1 : j->options->number;
    int rc = 0;
    int used = snprintf(tag, sizeof tag, "%lld-%llx-%lld", (long long)p->pid,
                        (long long)p->start_time, (long long)p->sequence);
    if (j->options->snapshot) /* the real report may be made at the same time */
        snprintf(tag + used, sizeof tag - (size_t)used, "-s%d", (int)getpid());
    gt_sink_open(&files, -1);
    gt_sink_open(&line, -1);
    for (size_t i = 0; i < j->output_count && !rc; i++) {
        char *path, *wanted = gt_place_path(&place, j->outputs[i].extension, n);
        if (!(rc = gt_place_put(&place, &j->outputs[i], tag, &n, &path, j->e))) {
            const char *name = shown(path, place.cwd);
            /* who gave %n asked for numbers */
            if (strcmp(path, wanted) && !j->options->snapshot && !strstr(place.pattern, "%n"))
                gt_sink_format(said, "gputally: %s is there already: writing %s\n",
                               shown(wanted, place.cwd), name);
            gt_sink_format(&files, "%s%s", files.used ? "\n" : "", name);
            gt_sink_text(&line, line.used ? ", " : "gputally: wrote ");
            word(&line, name);
            if (j->outputs[i].head)
                json = gt_mem_copy(name, strlen(name));
            free(path);
        }
        free(wanted);
    }
    if (json) {
        gt_sink_text(&line, "; next: gputally report ");
        word(&line, json);
        gt_sink_format(&line, " --group-by %s", gt_wrote_group(j->out->shapes));
    }
    if (line.used && !j->options->hold_table) {
        gt_sink_put(said, line.data, line.used);
        gt_sink_text(said, "\n");
    }
    j->out->files = gt_sink_take(&files, NULL);
    gt_sink_close(&line);
    free(json);
    if (rc && !j->pipe && !j->options->snapshot) {
        struct gt_err first = *j->e;
        j->e->message[0] = 0;
        gt_err_set(j->e, rc, "%.440s (session kept: %.250s; try: gputally report %.250s -o FILE)",
                   first.message, j->path, j->path);
    }
    return rc;
}

/* The window never opened, or what was in it was no call of ours: the user waits for a report. */
static void note_outside(struct job *j, struct gt_sink *said)
{
    const struct gt_model *m = &j->model;
    const struct gt_process *p = &m->processes[0];
    int64_t n = p->lost[GT_LOST_INDEX_silent];
    const char *value = "";
    if (!n || !j->outside || j->log < 1)
        return;
    for (uint32_t i = 0; i < p->config.count; i++) {
        const char *v = gt_model_string(m, m->lists[p->config.first + i], NULL);
        if (!strncmp(v, "GPUTALLY_WINDOW=", 16))
            value = v;
    }
    j->out->note = gt_mem_format(
        "%s: nothing recorded: all %lld call%s %s outside of the window (%s)", j->out->program,
        (long long)n, n == 1 ? "" : "s", n == 1 ? "was" : "were", value);
    if (!j->options->hold_table)
        gt_sink_format(said, "gputally: %s\n", j->out->note);
}

/* Snapshots are made one after the other: who reads later gets the later number. Of those that may
 * be merged one waits at most, and it will show the moment of all that come until it reads. Returns
 * 0, or -EALREADY if one waits. */
static int take_turn(struct job *j)
{
    struct flock place = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    int merge = j->options->merge;
    if ((j->lock = open(j->path, (merge ? O_RDWR : O_RDONLY) | O_CLOEXEC)) < 0)
        return 0; /* whoever reads it next says why */
    if (merge && flock(j->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK &&
        fcntl(j->lock, F_OFD_SETLK, &place) && (errno == EAGAIN || errno == EACCES))
        return gt_err_set(j->e, -EALREADY, "%s: a snapshot is waiting", j->path);
    while (flock(j->lock, LOCK_EX) && errno == EINTR)
        ;
    place.l_type = F_UNLCK;
    fcntl(j->lock, F_OFD_SETLK, &place);
    return 0;
}

static int admit(struct job *j)
{
    const struct gt_header *h;
    int rc;
    if (j->options->snapshot && (rc = take_turn(j)))
        return rc;
    if ((rc = gt_input_read(&j->in, j->path, j->e)))
        return rc;
    if (!(h = gt_input_header(&j->in, j->e)))
        return -ENODATA;
    j->pipe = j->in.fd < 0;
    struct gt_header own;
    if (!j->pipe && (rc = gt_session_header(j->path, &own, j->e)))
        return rc;
    j->silent = !gt_session_may_print(h);
    j->out->pid = h->pid;
    if (j->options->snapshot) {
        if (h->state == GT_STATE_RUNNING && gt_session_life(h) == GT_LIFE_ALIVE)
            return 0;
        return gt_err_set(j->e, -ESRCH, "%s: process %u %s", j->path, h->pid,
                          h->state == GT_STATE_NEW ? "has only begun" : "has ended");
    }
    if (!j->pipe && h->state != GT_STATE_ENDED && h->state != GT_STATE_EXEC &&
        !gt_session_followed(j->path, h)) {
        enum gt_life life = gt_session_life(h);
        if (life == GT_LIFE_ALIVE)
            return gt_err_set(j->e, -EBUSY, "%s: process %u still runs", j->path, h->pid);
        if (life == GT_LIFE_UNKNOWN && !j->options->dead)
            return gt_err_set(j->e, -EBUSY,
                              "%s: process %u of another pid namespace may still run; if it does "
                              "not: gputally finish --dead",
                              j->path, h->pid);
    }
    if (!j->pipe) {
        if ((rc = gt_session_claim(j->path, j->e)))
            return rc;
        j->claimed = 1;
        struct gt_header now;
        if (!gt_session_header(j->path, &now, NULL))
            memcpy(&((struct gt_header *)j->in.data)->seen, &now.seen,
                   offsetof(struct gt_header, image) - offsetof(struct gt_header, seen));
    }
    return 0;
}

static int work(struct job *j)
{
    struct gt_sink said;
    const char *exe;
    int rc = admit(j);
    if (rc || (rc = gt_load_session(&j->model, &j->in, j->e)))
        return rc;
    exe = gt_model_string(&j->model, j->model.processes[0].exe, NULL);
    j->out->ended = j->model.processes[0].ended;
    exe = strrchr(exe, '/') ? strrchr(exe, '/') + 1 : exe;
    j->out->program = gt_mem_copy(exe, strlen(exe));
    j->out->recorded = gt_model_recorded(&j->model);
    for (size_t i = 0; i < j->model.row_count; i++) {
        j->out->self_ns += (double)j->model.rows[i].self_ns;
        j->out->shapes |= j->model.rows[i].shapes != 0;
    }
    gt_sink_open(&said, -1);
    configure(j);
    if (!j->out->recorded && !j->options->snapshot)
        note_outside(j, &said);
    if (j->out->recorded) {
        render(j);
        rc = write_files(j, &said);
    }
    if (rc)
        said.used = 0;
    if (!rc && !j->options->hold_table && j->out->table) {
        struct gt_sink err;
        gt_sink_open(&err, STDERR_FILENO);
        if (j->out->ended != GT_ENDED_EXIT)
            gt_sink_format(&err, "gputally: process %u (%s), %s\n", j->out->pid, j->out->program,
                           gt_wrote_ended(j->out->ended));
        gt_sink_text(&err, j->out->table);
        gt_sink_close(&err);
        free(j->out->table);
        j->out->table = NULL;
    }
    if (!j->quiet && said.used) {
        said.fd = STDERR_FILENO;
        gt_sink_flush(&said);
    }
    gt_sink_close(&said);
    /* last of all: whatever failed before, the session is still there */
    if (!rc && !j->pipe && !j->options->snapshot &&
        (!j->options->keep_session || !j->out->recorded)) {
        unlink(j->path);
        j->claimed = 0;
    }
    return rc;
}

static void clean_up(struct job *j)
{
    if (j->claimed)
        gt_session_release(j->path);
    if (j->lock >= 0)
        close(j->lock);
    for (size_t i = 0; i < j->output_count; i++)
        free((char *)j->outputs[i].data);
    gt_model_fini(&j->model);
    gt_input_free(&j->in);
}

int gt_finish_session(const char *path, const struct gt_finish_options *o,
                      struct gt_finish_result *out, struct gt_err *e)
{
    static const struct gt_finish_options defaults;
    /* static: values set after setjmp must survive the jump; the commands have one thread */
    static struct job j;
    jmp_buf trap, *outer = gt_mem_trap;
    void (*volatile limit)(int) = signal(SIGXFSZ, SIG_IGN); /* EFBIG, not death */
    void (*volatile pipe)(int) =
        signal(SIGPIPE, SIG_IGN); /* nobody reads stderr: the files count */
    volatile int rc;
    memset(out, 0, sizeof *out);
    memset(&j, 0, sizeof j);
    j.path = path;
    j.options = o ? o : &defaults;
    j.out = out;
    j.e = e;
    j.in.fd = -1;
    j.lock = -1;
    gt_mem_trap = &trap;
    if (setjmp(trap) == 0) {
        gt_model_init(&j.model);
        rc = work(&j);
        clean_up(&j);
    } else {
        /* what was half-made is left alone: the lists may be in any state */
        rc = gt_err_set(e, -ENOMEM, "out of memory");
        if (j.claimed)
            gt_session_release(path);
        if (j.lock >= 0)
            close(j.lock);
        if (j.in.fd >= 0)
            close(j.in.fd);
    }
    gt_mem_trap = outer;
    signal(SIGXFSZ, limit);
    signal(SIGPIPE, pipe);
    return rc;
}

void gt_finish_result_free(struct gt_finish_result *r)
{
    free(r->program);
    free(r->table);
    free(r->files);
    free(r->note);
    memset(r, 0, sizeof *r);
}

int gt_session_info(const char *path, struct gt_session_info *i, struct gt_err *e)
{
    struct gt_header h;
    int rc = gt_session_header(path, &h, e);
    memset(i, 0, sizeof *i);
    if (rc)
        return rc;
    enum gt_life life = gt_session_life(&h);
    i->pid = h.pid;
    i->start_time = h.start_time;
    i->ended = h.state == GT_STATE_ENDED || h.state == GT_STATE_EXEC;
    i->alive = life == GT_LIFE_ALIVE;
    i->foreign = life == GT_LIFE_UNKNOWN || !gt_session_same_boot(&h);
    return 0;
}
