/* A report of TVM -> model: a process without a program, one thread, a row a call. The columns stay
 * with the row as they came; what the model has fields for is filled in beside them. Called by
 * load_json.c for files that begin like one. See load.h; single thread.
 *
 * First read as JSON. What is none may still be what TVM wrote, which escapes nothing: then the
 * whole text is read as it stands (tvm_read.h). */
#include "core/layout.h"
#include "report/load.h"
#include "report/mem.h"
#include "report/tvm_columns.h"
#include "report/tvm_read.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct gt_model *m;
    struct gt_tvm_text t;
    uint32_t process, thread;
};

static int64_t ns(double us)
{
    double v = us * 1000;
    return !(v > 0) ? 0 : v >= (double)(INT64_MAX / 4) ? INT64_MAX / 4 : (int64_t)llround(v);
}

/* What the kind is where a number stands bare, as in documentation. */
static uint8_t bare_kind(const char *name, int whole)
{
    size_t n = strlen(name);
    if (n >= 4 && !strcmp(name + n - 4, "(us)"))
        return GT_METRIC_MICROSECONDS;
    if (!strcmp(name, GT_TVM_PERCENT))
        return GT_METRIC_PERCENT;
    return whole ? GT_METRIC_COUNT : GT_METRIC_RATIO;
}

static void number(struct reader *r, struct gt_metric *v, int kind)
{
    const char *at;
    int whole;
    gt_tvm_peek(&r->t);
    at = r->t.at;
    if (!gt_tvm_number(&r->t, &v->real, &v->count, &whole))
        return;
    v->kind = kind < 0 ? bare_kind(gt_model_string(r->m, v->name, NULL), whole) : (uint8_t)kind;
    if (v->kind == GT_METRIC_COUNT && !whole)
        gt_tvm_fail(&r->t, at, "a count that is no whole number of 64 bits");
}

static void string(struct reader *r, struct gt_metric *v)
{
    if (gt_tvm_string(&r->t)) {
        v->kind = GT_METRIC_STRING;
        v->text = gt_model_text(r->m, r->t.string, r->t.length);
    }
}

/* {"count": 1} and its likes, or the value alone. */
static void value(struct reader *r, struct gt_metric *v)
{
    char c = gt_tvm_peek(&r->t);
    const char *at = r->t.at;
    int first = 1, kind = 0;
    if (c == '"') {
        string(r, v);
        return;
    }
    if (c == '-' || c == '+' || (c >= '0' && c <= '9')) {
        number(r, v, -1);
        return;
    }
    if (!gt_tvm_enter(&r->t, '{'))
        return;
    if (!gt_tvm_next(&r->t, &first)) {
        gt_tvm_fail(&r->t, at, "a value without a kind");
        return;
    }
    gt_tvm_peek(&r->t);
    at = r->t.at;
    if (r->t.raw && *at == '"') {
        /* nothing to escape in these five words, and a text may follow them */
        r->t.raw = 0;
        gt_tvm_key(&r->t);
        r->t.raw = 1;
    } else {
        gt_tvm_key(&r->t);
    }
    if (r->t.why)
        return;
    while (kind < GT_METRIC_KINDS && strcmp(gt_metric_names[kind], r->t.string))
        kind++;
    if (kind == GT_METRIC_KINDS)
        gt_tvm_fail(&r->t, at,
                    "an unknown kind of value: there is count microseconds percent ratio string");
    else if (kind == GT_METRIC_STRING)
        string(r, v);
    else
        number(r, v, kind);
    at = r->t.at;
    if (gt_tvm_next(&r->t, &first))
        gt_tvm_fail(&r->t, at, "a value of two kinds");
}

/* TVM's maps: a name that comes again has its new value, and goes to the end once there are four.
 */
static void put(struct gt_model *m, struct gt_list *l, const struct gt_metric *v)
{
    struct gt_metric *all = m->metrics + l->first;
    for (uint32_t i = 0; i < l->count; i++) {
        if (all[i].name != v->name)
            continue;
        if (l->count < 4) {
            all[i] = *v;
            return;
        }
        memmove(all + i, all + i + 1, (l->count - 1 - i) * sizeof *all);
        all[l->count - 1] = *v;
        return;
    }
    *gt_model_metric(m, l) = *v;
}

/* More members than this are no table, and `put` would take for ever. */
#define MOST_COLUMNS 4096

static void map(struct reader *r, struct gt_list *l)
{
    int first = 1;
    if (!gt_tvm_enter(&r->t, '{'))
        return;
    while (gt_tvm_next(&r->t, &first) && gt_tvm_key(&r->t)) {
        struct gt_metric v = {.name = gt_model_text(r->m, r->t.string, r->t.length)};
        value(r, &v);
        if (r->t.why)
            return;
        if (l->count == MOST_COLUMNS) {
            gt_tvm_fail(&r->t, r->t.at, "more than 4096 columns");
            return;
        }
        put(r->m, l, &v);
    }
}

static double amount(const struct gt_metric *v)
{
    return v->kind == GT_METRIC_COUNT ? (double)v->count : v->real;
}

static uint8_t device(const char *name)
{
    static const struct {
        const char *start;
        uint8_t device;
    } known[] = {{"cpu", GT_CPU},  {"llvm", GT_CPU}, {"cuda", GT_CUDA},
                 {"gpu", GT_CUDA}, {"xpu", GT_XPU},  {"oneapi", GT_XPU}};
    if (!*name)
        return GT_CPU;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(name, known[i].start, strlen(known[i].start)))
            return known[i].device;
    return GT_PRIVATEUSE1;
}

/* A column of our own making: back into its field. */
static void own_column(const struct gt_model *m, struct gt_row *row, const struct gt_metric *v,
                       const char *name)
{
    for (size_t i = 0; i < gt_tvm_column_count; i++) {
        const struct gt_tvm_column *c = &gt_tvm_columns[i];
        double real;
        char *end;
        if (c->kind != v->kind || strcmp(c->name, name))
            continue;
        if (c->kind == GT_METRIC_COUNT) {
            /* memory may have been given back, nothing else is negative */
            *gt_tvm_field(row, c) = v->count < 0 && !strstr(name, "memory") ? 0 : v->count;
        } else if (c->kind == GT_METRIC_MICROSECONDS) {
            *gt_tvm_field(row, c) = ns(v->real);
        } else {
            const char *text = gt_model_string(m, v->text, NULL);
            real = strtod(text, &end);
            if (end != text && !*end)
                *gt_tvm_field(row, c) = ns(real);
        }
        return;
    }
}

/* What the model has fields for. */
static void understand(struct gt_model *m, struct gt_row *row)
{
    int64_t duration = 0, calls;
    row->count = 1;
    row->total_ns = row->min_ns = row->max_ns = -1;
    for (uint32_t i = 0; i < row->metrics.count; i++) {
        const struct gt_metric *v = &m->metrics[row->metrics.first + i];
        const char *name = gt_model_string(m, v->name, NULL);
        int text = v->kind == GT_METRIC_STRING;
        if (!strcmp(name, GT_TVM_NAME) && text)
            row->key = v->text;
        else if (!strcmp(name, GT_TVM_SHAPES) && text)
            row->shapes = v->text;
        else if (!strcmp(name, GT_TVM_DEVICE) && text)
            row->device = device(gt_model_string(m, v->text, NULL));
        else if (!strcmp(name, GT_TVM_DURATION) && !text)
            duration = ns(amount(v));
        else if (!strcmp(name, GT_TVM_COUNT) && v->kind == GT_METRIC_COUNT)
            row->count = v->count > 0 ? v->count : 0;
        else
            own_column(m, row, v, name);
    }
    calls = row->count > 0 ? row->count : 1;
    /* what the file does not tell: as if every call took the same time, and called nothing */
    if (row->device == GT_CPU) {
        row->self_ns = duration;
        row->total_ns = row->total_ns < 0 ? duration : row->total_ns;
    } else {
        row->self_device_ns = duration;
        row->device_ns = row->device_ns > duration ? row->device_ns : duration;
        row->total_ns = row->total_ns < 0 ? 0 : row->total_ns;
    }
    row->min_ns = row->min_ns < 0 ? duration / calls : row->min_ns;
    row->max_ns = row->max_ns < 0 ? duration / calls : row->max_ns;
    row->sumsq_ns2 = (double)row->total_ns / (double)calls * (double)row->total_ns;
}

static void read_call(struct reader *r)
{
    struct gt_list columns = {0};
    map(r, &columns);
    if (r->t.why)
        return;
    struct gt_row *row = gt_model_row(r->m);
    row->parent = -1;
    row->thread = r->thread;
    row->kind = GT_KIND_RANGE;
    row->source = GT_SOURCE_NONE;
    row->metrics = columns;
    understand(r->m, row);
}

static void read_devices(struct reader *r)
{
    size_t from = r->m->device_count;
    int first = 1;
    if (!gt_tvm_enter(&r->t, '{'))
        return;
    while (gt_tvm_next(&r->t, &first) && gt_tvm_key(&r->t)) {
        gt_text name = gt_model_text(r->m, r->t.string, r->t.length);
        struct gt_device_metrics d = {.process = r->process, .device = name};
        size_t at = from, count = r->m->device_count - from;
        map(r, &d.metrics);
        while (at < r->m->device_count && r->m->devices[at].device != name)
            at++;
        /* as `put` */
        if (at == r->m->device_count) {
            if (count == MOST_COLUMNS)
                gt_tvm_fail(&r->t, r->t.at, "more than 4096 devices");
            gt_model_device(r->m);
        } else if (count >= 4) {
            memmove(r->m->devices + at, r->m->devices + at + 1,
                    (r->m->device_count - 1 - at) * sizeof *r->m->devices);
            at = r->m->device_count - 1;
        }
        r->m->devices[at] = d;
    }
}

static void read_report(struct reader *r)
{
    int first = 1, inner;
    if (!gt_tvm_enter(&r->t, '{'))
        return;
    while (gt_tvm_next(&r->t, &first)) {
        const char *at = r->t.at;
        if (!gt_tvm_key(&r->t))
            return;
        if (!strcmp(r->t.string, "calls")) {
            inner = 1;
            if (gt_tvm_enter(&r->t, '['))
                while (gt_tvm_next(&r->t, &inner))
                    read_call(r);
        } else if (!strcmp(r->t.string, "device_metrics")) {
            read_devices(r);
        } else if (!strcmp(r->t.string, "configuration")) {
            struct gt_list settings = r->m->processes[r->process].settings;
            /* a second one goes on with the first, as long as nothing came between */
            if (settings.count && settings.first + settings.count != r->m->metric_count)
                gt_tvm_fail(&r->t, at, "a second configuration");
            map(r, &settings);
            r->m->processes[r->process].settings = settings;
        } else {
            gt_tvm_fail(&r->t, at,
                        "an unknown member: there is calls device_metrics configuration");
        }
    }
    if (!r->t.why && gt_tvm_peek(&r->t))
        gt_tvm_fail(&r->t, r->t.at, "text behind the end of the report");
}

/* Two reports are the same one if they are equal: they name no process. */
static gt_text identity(struct gt_model *m, const struct gt_input *in)
{
    uint64_t h = 0xcbf29ce484222325u;
    char text[32];
    for (size_t i = 0; i < in->bytes; i++)
        h = (h ^ in->data[i]) * 0x100000001b3u;
    snprintf(text, sizeof text, "tvm-%016llx", (unsigned long long)h);
    return gt_model_textz(m, text);
}

static void attempt(struct reader *r, const struct gt_input *in, int raw)
{
    struct gt_process *p;
    struct gt_thread *thread;
    gt_text id = identity(r->m, in);
    r->process = (uint32_t)r->m->process_count;
    r->thread = (uint32_t)r->m->thread_count;
    p = gt_model_process(r->m);
    p->tvm = 1;
    p->rank = -1;
    p->end_known = 1;
    p->boot_id = id;
    thread = gt_model_thread(r->m);
    thread->process = r->process;
    thread->threads = 1;
    gt_tvm_start(&r->t, (const char *)in->data, in->bytes, raw);
    read_report(r);
}

static int tell(const struct reader *r, const char *path, struct gt_err *e)
{
    const struct gt_tvm_text *t = &r->t;
    const char *line = t->begin, *remedy = "";
    int lines = 1;
    for (const char *p = t->begin; p < t->bad; p++)
        if (*p == '\n') {
            lines++;
            line = p + 1;
        }
    if (t->raw)
        remedy =
            "; TVM writes names as they are: put a \\ before each \" and \\ of a name, and \\n "
            "for the end of a line";
    return gt_err_set(e, -ENODATA, "%s: line %d, column %lld: %s%s", path, lines,
                      (long long)(t->bad - line) + 1, t->why, remedy);
}

int gt_load_tvm(struct gt_model *m, const struct gt_input *in, struct gt_err *e)
{
    const struct gt_model before = *m;
    struct reader json = {.m = m}, raw = {.m = m};
    int rc = 0;
    attempt(&json, in, 0);
    if (json.t.why) {
        m->process_count = before.process_count;
        m->thread_count = before.thread_count;
        m->row_count = before.row_count;
        m->metric_count = before.metric_count;
        m->device_count = before.device_count;
        attempt(&raw, in, 1);
        /* The way that came further knows better what is wrong; but where a string ended too early,
         * JSON came too far. */
        if (raw.t.why) {
            int early = json.t.behind == json.t.bad && json.t.bad < json.t.end;
            rc = tell(early || raw.t.bad > json.t.bad ? &raw : &json, in->path, e);
        }
    }
    gt_tvm_end(&json.t);
    gt_tvm_end(&raw.t);
    if (!rc)
        gt_model_finish(m, before.thread_count, before.row_count);
    return rc;
}

int gt_load_is_tvm(const struct gt_input *in)
{
    static const char *const names[] = {"\"calls\"", "\"device_metrics\"", "\"configuration\""};
    const char *p = (const char *)in->data, *end = p + in->bytes;
    for (int brace = 1; p < end; p++) {
        if (*p == '{' && brace)
            brace = 0;
        else if (!strchr(" \t\r\n", *p) || !*p)
            break;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((size_t)(end - p) > strlen(names[i]) && !memcmp(p, names[i], strlen(names[i])))
            return 1;
    return 0;
}
