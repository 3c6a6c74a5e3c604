/* Saved native JSON -> model. Reads what out_json.c says is the exact part: processes with their
 * threads, call_tree, open. All else there is made from these and is stepped over. jansson gets one
 * element at a time: the whole of a report with 10,000 keys took it 380 ms and 90 MB. See load.h;
 * single thread. */
#include "core/layout.h"
#include "report/load.h"
#include "report/mem.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A piece of the file. */
struct span {
    const char *at, *end;
};

struct reader {
    struct gt_model *m;
    struct gt_err *e;
    const char *path;
    struct span text;
    size_t process0, thread0, row0;
    int bad;
};

static int fail(struct reader *r, const char *where, size_t index, const char *field)
{
    if (!r->bad)
        gt_err_set(r->e, -ENODATA, "%s: damaged report: %s %zu: bad or missing \"%s\"", r->path,
                   where, index, field);
    r->bad = 1;
    return -ENODATA;
}

struct item {
    struct reader *r;
    const json_t *object;
    const char *where;
    size_t index;
};

static void bad(const struct item *i, const char *field)
{
    fail(i->r, i->where, i->index, field);
}

/* Missing is 0. */
static int64_t integer(const struct item *i, const char *field, int64_t least, int64_t most)
{
    const json_t *v = json_object_get(i->object, field);
    if (!v)
        return least > 0 ? least : 0;
    if (!json_is_integer(v) || json_integer_value(v) < least || json_integer_value(v) > most) {
        bad(i, field);
        return least > 0 ? least : 0;
    }
    return json_integer_value(v);
}

static int64_t amount(const struct item *i, const char *field)
{
    return integer(i, field, 0, INT64_MAX);
}

/* null stands for what JSON can't say: NaN and infinities. */
static double real(const struct item *i, const char *field)
{
    const json_t *v = json_object_get(i->object, field);
    if (json_is_number(v))
        return json_number_value(v);
    if (v && !json_is_null(v))
        bad(i, field);
    return v ? NAN : 0;
}

static gt_text string(const struct item *i, const char *field)
{
    const json_t *v = json_object_get(i->object, field);
    if (v && !json_is_string(v))
        bad(i, field);
    return v ? gt_model_text(i->r->m, json_string_value(v) ? json_string_value(v) : "",
                             json_string_length(v))
             : 0;
}

static int truth(const struct item *i, const char *field)
{
    const json_t *v = json_object_get(i->object, field);
    if (v && !json_is_boolean(v))
        bad(i, field);
    return json_is_true(v);
}

/* Position of a word in a list of words; `missing` if there is none. */
static int word(const struct item *i, const char *field, const char *const *words, int count,
                int missing)
{
    const json_t *v = json_object_get(i->object, field);
    const char *text = json_string_value(v);
    for (int k = 0; text && k < count; k++)
        if (words[k] && !strcmp(words[k], text))
            return k;
    if (v || missing < 0)
        bad(i, field);
    return missing < 0 ? 0 : missing;
}

static void list(const struct item *i, const char *field, struct gt_list *l)
{
    const json_t *v = json_object_get(i->object, field), *element;
    size_t k;
    if (v && !json_is_array(v))
        bad(i, field);
    json_array_foreach((json_t *)v, k, element)
    {
        const char *text = json_string_value(element);
        if (!text)
            bad(i, field);
        gt_model_list(i->r->m, l, gt_model_textz(i->r->m, text ? text : ""));
    }
}

/* {"IPC": {"ratio": 1.2}} */
static void metrics(const struct item *i, const json_t *object, const char *field,
                    struct gt_list *l)
{
    const char *name, *kind;
    json_t *holder;
    if (object && !json_is_object(object))
        bad(i, field);
    json_object_foreach((json_t *)object, name, holder)
    {
        struct gt_metric *v = gt_model_metric(i->r->m, l);
        const json_t *value = json_object_iter_value(json_object_iter(holder));
        int k = 0;
        v->name = gt_model_textz(i->r->m, name);
        kind = json_object_iter_key(json_object_iter(holder));
        while (kind && k < GT_METRIC_KINDS && strcmp(gt_metric_names[k], kind))
            k++;
        if (!kind || k == GT_METRIC_KINDS || json_object_size(holder) != 1 ||
            (k == GT_METRIC_STRING  ? !json_is_string(value)
             : k == GT_METRIC_COUNT ? !json_is_integer(value)
                                    : !json_is_number(value))) {
            bad(i, field);
            return;
        }
        v->kind = (uint8_t)k;
        if (k == GT_METRIC_STRING)
            v->text = gt_model_text(i->r->m, json_string_value(value), json_string_length(value));
        else if (k == GT_METRIC_COUNT)
            v->count = json_integer_value(value);
        else
            v->real = json_number_value(value);
    }
}

static void read_devices(const struct item *i, uint32_t process)
{
    const json_t *object = json_object_get(i->object, "device_metrics");
    const char *name;
    json_t *of;
    if (object && !json_is_object(object))
        bad(i, "device_metrics");
    json_object_foreach((json_t *)object, name, of)
    {
        struct gt_device_metrics d = {.process = process, .device = gt_model_textz(i->r->m, name)};
        metrics(i, of, "device_metrics", &d.metrics);
        *gt_model_device(i->r->m) = d;
    }
}

static void read_threads(const struct item *p, uint32_t process)
{
    const json_t *array = json_object_get(p->object, "threads"), *v;
    struct gt_model *m = p->r->m;
    size_t k;
    if (array && !json_is_array(array))
        bad(p, "threads");
    json_array_foreach((json_t *)array, k, v)
    {
        struct item i = {p->r, v, "thread", k};
        if (!json_is_object(v) ||
            integer(&i, "id", 0, UINT32_MAX) != (int64_t)(m->thread_count - p->r->thread0))
            bad(&i, "id");
        struct gt_thread *t = gt_model_thread(m);
        t->process = process;
        t->slot = (uint32_t)integer(&i, "slot", 0, UINT32_MAX);
        t->tid = (uint32_t)integer(&i, "tid", 0, UINT32_MAX);
        t->threads = amount(&i, "threads");
        t->name = string(&i, "name");
    }
}

static void read_process(const struct item *i)
{
    struct gt_model *m = i->r->m;
    uint32_t id = (uint32_t)m->process_count;
    struct gt_process *p = gt_model_process(m);
    struct item lost = {i->r, json_object_get(i->object, "lost"), "losses of process", i->index};
    p->pid = integer(i, "pid", 0, INT32_MAX);
    p->ppid = integer(i, "ppid", 0, UINT32_MAX);
    p->start_time = amount(i, "start_time");
    p->sequence = integer(i, "sequence", 0, UINT32_MAX);
    p->boot_id = string(i, "boot_id");
    p->exe = string(i, "exe");
    p->cwd = string(i, "cwd");
    p->host = string(i, "host");
    p->rank = integer(i, "rank", -1, INT32_MAX);
    p->start_unix_ns = amount(i, "start_unix_ns");
    p->duration_ns = amount(i, "duration_ns");
    p->ended = (uint8_t)word(i, "ended", gt_ended_names, GT_ENDED_KINDS, GT_ENDED_EXIT);
    p->clock = string(i, "clock");
    p->approximate = (uint8_t)truth(i, "approximate");
    p->memory_full = (uint8_t)truth(i, "memory_full");
    p->crash_safe = (uint8_t)truth(i, "crash_safe");
    p->end_known = (uint8_t)truth(i, "end_known");
    p->library = string(i, "library");
    p->output = string(i, "output");
    p->tvm = (uint8_t)truth(i, "tvm");
    list(i, "argv", &p->argv);
    list(i, "variables", &p->config);
    metrics(i, json_object_get(i->object, "settings"), "settings", &p->settings);
    read_devices(i, id);
    if (lost.object && !json_is_object(lost.object))
        bad(i, "lost");
    for (int k = 0; k < GT_LOST_INDICES; k++)
        p->lost[k] = amount(&lost, gt_lost_names[k]);
    read_threads(i, id);
}

static uint8_t source(const struct item *i)
{
    const char *text = json_string_value(json_object_get(i->object, "source"));
    for (uint32_t k = 0; text && k < GT_SOURCES; k++)
        if (!strcmp(gt_source_name(k), text))
            return (uint8_t)k;
    return GT_SOURCE_NONE; /* of a later version */
}

static void read_values(const struct item *row, struct gt_values *v)
{
    struct item i = {row->r, json_object_get(row->object, "values"), "values of row", row->index};
    if (!i.object)
        return;
    if (!json_is_object(i.object))
        bad(row, "values");
    v->count = amount(&i, "count");
    v->sum = real(&i, "sum");
    v->min = real(&i, "min");
    v->max = real(&i, "max");
    v->last = real(&i, "last");
}

static void read_row(const struct item *i)
{
    static const char *const kinds[] = {NULL, "range", "async", "mark", "counter"};
    struct reader *reader = i->r;
    struct gt_model *m = reader->m;
    const json_t *parent = json_object_get(i->object, "parent");
    int64_t above = json_is_integer(parent) ? json_integer_value(parent) : -1;
    size_t threads = m->thread_count - reader->thread0;
    struct gt_row *r = gt_model_row(m);
    if (above < -1 || above >= (int64_t)i->index)
        bad(i, "parent");
    if (!threads || !json_object_get(i->object, "thread"))
        bad(i, "thread");
    if (reader->bad)
        return;
    r->thread = (uint32_t)(reader->thread0 + (size_t)integer(i, "thread", 0, (int64_t)threads - 1));
    r->parent = above < 0 ? -1 : (int32_t)(reader->row0 + (size_t)above);
    if (above >= 0 && m->rows[r->parent].thread != r->thread)
        bad(i, "parent");
    r->key = string(i, "key");
    r->domain = string(i, "domain");
    r->category_name = string(i, "category_name");
    r->shapes = string(i, "shapes");
    r->overload = string(i, "overload");
    r->category = (uint32_t)integer(i, "category", 0, UINT32_MAX);
    r->source = source(i);
    r->kind = (uint8_t)word(i, "kind", kinds, 5, -1);
    r->scope = (uint8_t)integer(i, "scope", 0, 255);
    r->device = (uint8_t)word(i, "device", gt_device_names, GT_DEVICES, GT_CPU);
    r->count = amount(i, "count");
    r->failed = amount(i, "failed");
    r->self_ns = amount(i, "self_ns");
    r->total_ns = amount(i, "total_ns");
    r->min_ns = amount(i, "min_ns");
    r->max_ns = amount(i, "max_ns");
    r->sumsq_ns2 = real(i, "sumsq_ns2");
    r->self_device_ns = amount(i, "self_device_ns");
    r->device_ns = amount(i, "device_ns");
    r->bytes = amount(i, "bytes");
    r->flops = amount(i, "flops");
    r->memory = integer(i, "cpu_memory", INT64_MIN, INT64_MAX);
    r->self_memory = integer(i, "self_cpu_memory", INT64_MIN, INT64_MAX);
    r->device_memory = integer(i, "device_memory", INT64_MIN, INT64_MAX);
    r->self_device_memory = integer(i, "self_device_memory", INT64_MIN, INT64_MAX);
    read_values(i, &r->values);
    metrics(i, json_object_get(i->object, "metrics"), "metrics", &r->metrics);
    r->flags = (truth(i, "folded") ? GT_ROW_FOLDED : 0) | (truth(i, "torn") ? GT_ROW_TORN : 0) |
               (truth(i, "is_legacy") ? GT_ROW_LEGACY : 0) |
               (truth(i, "is_user_annotation") ? GT_ROW_ANNOTATION : 0) |
               (r->kind == GT_KIND_ASYNC ? GT_ROW_ASYNC : 0);
}

static void read_open(const struct item *i)
{
    struct gt_model *m = i->r->m;
    int64_t rows = (int64_t)(m->row_count - i->r->row0);
    if (!json_is_integer(json_object_get(i->object, "row")) || !rows) {
        bad(i, "row");
        return;
    }
    int64_t row = integer(i, "row", 0, rows - 1);
    int64_t since = amount(i, "since_ns");
    struct gt_open *o = gt_model_open(m);
    o->row = (int32_t)((int64_t)i->r->row0 + row);
    o->since_ns = since;
}

static const char *blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

static const char *past_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\';
    return p < end ? p + 1 : end + 1;
}

/* Behind the value that begins at p; behind `end` if it has none. What it holds is not looked at.
 */
static const char *past_value(const char *p, const char *end)
{
    size_t depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = past_string(p, end);
        } else if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            if (!depth)
                return p;
            depth--;
            p++;
        } else if (!depth && (*p == ',' || *p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
            return p;
        } else {
            p++;
            continue;
        }
        if (!depth)
            return p;
    }
    return depth || p > end ? end + 1 : p;
}

static void wrong(struct reader *r, const char *at, int line, const char *why)
{
    for (const char *p = r->text.at; p < at && p < r->text.end; p++)
        line += *p == '\n';
    if (!r->bad)
        gt_err_set(r->e, -ENODATA, "%s: line %d: %s", r->path, line, why);
    r->bad = 1;
}

/* The value in the span; NULL after telling why not. The caller drops it. */
static json_t *value(struct reader *r, struct span v)
{
    json_error_t why;
    json_t *root;
    gt_mem_failed = 0;
    root = json_loadb(v.at, (size_t)(v.end - v.at), JSON_DECODE_ANY, &why);
    /* also where it returns something: jansson goes on after some failures */
    if (gt_mem_failed)
        gt_mem_out();
    if (!root)
        wrong(r, v.at, why.line, why.text);
    return root;
}

/* One step through an array or object: the next value, behind a comma but for the first. 0 at the
 * end. */
static int step(struct reader *r, const char **p, const char *end, char close, int first)
{
    *p = blanks(*p, end);
    if (*p < end && **p == close) {
        ++*p;
        return 0;
    }
    if (!first) {
        if (*p >= end || **p != ',') {
            wrong(r, *p, 1, *p < end ? "a comma is missing" : "the file ends too early");
            return 0;
        }
        *p = blanks(*p + 1, end);
    }
    if (*p >= end)
        wrong(r, *p, 1, "the file ends too early");
    return *p < end;
}

static void each(struct reader *r, struct span section, const char *title, const char *where,
                 void (*read)(const struct item *))
{
    const char *p = section.at;
    size_t k = 0;
    if (r->bad)
        return;
    if (!p || *p != '[') {
        r->bad = 1;
        gt_err_set(r->e, -ENODATA, "%s: damaged report: no \"%s\"", r->path, title);
        return;
    }
    for (p++; !r->bad && step(r, &p, section.end, ']', !k); k++) {
        const char *end = past_value(p, section.end);
        json_t *v = end > section.end ? NULL : value(r, (struct span){p, end});
        struct item i = {r, v, where, k};
        if (v && !json_is_object(v))
            bad(&i, "{");
        else if (v)
            read(&i);
        else if (!r->bad)
            wrong(r, p, 1, "the file ends too early");
        json_decref(v);
        p = end;
    }
}

enum { FORMAT, VERSION, PROCESSES, CALL_TREE, OPEN, SECTIONS };

/* Finds the members of the outermost object that we need. */
static void find_sections(struct reader *r, struct span *found)
{
    static const char *const names[SECTIONS] = {"\"format\"", "\"version\"", "\"processes\"",
                                                "\"call_tree\"", "\"open\""};
    const char *end = r->text.end, *p = blanks(r->text.at, end);
    int first = 1;
    for (p++; !r->bad && step(r, &p, end, '}', first); first = 0) {
        const char *name = p, *behind = *p == '"' ? past_string(p, end) : p;
        if (behind == p || behind > end) {
            wrong(r, p, 1, "a name is missing");
            return;
        }
        p = blanks(behind, end);
        if (p >= end || *p != ':') {
            wrong(r, p, 1, "a colon is missing");
            return;
        }
        p = blanks(p + 1, end);
        struct span v = {p, past_value(p, end)};
        if (p >= end || v.end > end || v.end == p) {
            wrong(r, p, 1, "a value is missing");
            return;
        }
        for (int i = 0; i < SECTIONS; i++)
            if ((size_t)(behind - name) == strlen(names[i]) &&
                !memcmp(name, names[i], (size_t)(behind - name)))
                found[i] = v;
        p = v.end;
    }
    p = blanks(p, end);
    if (p < end)
        wrong(r, p, 1, "text behind the end of the report");
}

static int check(struct reader *r, const struct span *found)
{
    json_t *format = found[FORMAT].at ? value(r, found[FORMAT]) : NULL;
    json_t *version = found[VERSION].at ? value(r, found[VERSION]) : NULL;
    const char *text = json_string_value(format);
    if (!text || strcmp(text, "gputally-report"))
        gt_err_set(r->e, -ENODATA, "%s: not a gputally report", r->path), r->bad = 1;
    else if (!json_is_integer(version) || json_integer_value(version) < 1)
        gt_err_set(r->e, -ENODATA, "%s: damaged report: bad version", r->path), r->bad = 1;
    else if (json_integer_value(version) > 1)
        gt_err_set(r->e, -ENODATA, "%s: made by a newer gputally (format %lld, we know 1)", r->path,
                   (long long)json_integer_value(version)),
            r->bad = 1;
    json_decref(format);
    json_decref(version);
    return r->bad;
}

int gt_load_json(struct gt_model *m, const struct gt_input *in, struct gt_err *e)
{
    const char *text = (const char *)in->data;
    struct reader r = {.m = m,
                       .e = e,
                       .path = in->path,
                       .text = {text, text + in->bytes},
                       .process0 = m->process_count,
                       .thread0 = m->thread_count,
                       .row0 = m->row_count};
    struct span found[SECTIONS] = {{0}};
    if (!in->bytes)
        return gt_err_set(e, -ENODATA, "%s: the file is empty", in->path);
    const char *start = blanks(text, r.text.end);
    if (start == r.text.end || *start != '{')
        return gt_err_set(e, -ENODATA, "%s: not a gputally report", in->path);
    json_set_alloc_funcs(gt_mem_try, free);
    if (gt_load_is_tvm(in)) {
        /* ours have a member of that name too, but not without "format" */
        struct gt_err ignored = {""};
        struct reader look = r;
        look.e = &ignored;
        find_sections(&look, found);
        if (!found[FORMAT].at)
            return gt_load_tvm(m, in, e);
        memset(found, 0, sizeof found);
    }
    find_sections(&r, found);
    if (!r.bad && !check(&r, found)) {
        each(&r, found[PROCESSES], "processes", "process", read_process);
        each(&r, found[CALL_TREE], "call_tree", "row", read_row);
        each(&r, found[OPEN], "open", "open range", read_open);
    }
    if (r.bad)
        return -ENODATA;
    gt_model_finish(m, r.thread0, r.row0);
    return 0;
}
