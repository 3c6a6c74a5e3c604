/* The native JSON; docs/format.md tells every field. Streams: jansson takes 106 ms for 10,000 keys
 * where a whole report has 150. What load_json.c reads back (processes, call_tree, open) is exact:
 * ns, integers and shortest reals; the rest is made from it. */
#include "core/layout.h"
#include "report/mem.h"
#include "report/overhead.h"
#include "report/writer.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *const kinds[] = {[GT_KIND_ROOT] = "root",
                                    [GT_KIND_RANGE] = "range",
                                    [GT_KIND_ASYNC] = "async",
                                    [GT_KIND_MARK] = "mark",
                                    [GT_KIND_COUNTER] = "counter"};

static void string(struct gt_sink *s, const char *before, const struct gt_model *m, gt_text t)
{
    size_t len;
    const char *text = gt_model_string(m, t, &len);
    gt_sink_text(s, before);
    gt_text_json(s, text, len);
}

static void plain(struct gt_sink *s, const char *before, const char *text)
{
    gt_sink_text(s, before);
    gt_text_json(s, text, strlen(text));
}

static void integer(struct gt_sink *s, const char *before, int64_t v)
{
    gt_sink_text(s, before);
    gt_sink_int(s, v);
}

static void us(struct gt_sink *s, const char *before, int64_t ns)
{
    gt_sink_text(s, before);
    gt_sink_us(s, ns);
}

static void real(struct gt_sink *s, const char *before, double v)
{
    gt_sink_text(s, before);
    gt_sink_real(s, v);
}

static void truth(struct gt_sink *s, const char *before, int v)
{
    gt_sink_text(s, before);
    gt_sink_text(s, v ? "true" : "false");
}

/* Only what is not 0: a call tree has many rows. */
static void some(struct gt_sink *s, const char *before, int64_t v)
{
    if (v)
        integer(s, before, v);
}

static void values(struct gt_sink *s, const struct gt_values *v)
{
    if (!v->count)
        return;
    integer(s, ",\"values\":{\"count\":", v->count);
    real(s, ",\"sum\":", v->sum);
    real(s, ",\"min\":", v->min);
    real(s, ",\"max\":", v->max);
    real(s, ",\"last\":", v->last);
    gt_sink_text(s, "}");
}

void gt_out_json_head(const struct gt_model *m, struct gt_sink *s)
{
    gt_sink_text(s, "{\"format\":\"gputally-report\",\"version\":1,\"process\":");
    if (m->process_count == 1) {
        const struct gt_process *p = &m->processes[0];
        integer(s, "{\"pid\":", p->pid);
        integer(s, ",\"start_time\":", p->start_time);
        integer(s, ",\"sequence\":", p->sequence);
        integer(s, ",\"start_unix_ns\":", p->start_unix_ns);
        string(s, ",\"boot_id\":", m, p->boot_id);
        gt_sink_text(s, "},\n");
    } else {
        gt_sink_text(s, "null,\n");
    }
}

static void configuration(const struct gt_model *m, struct gt_sink *s)
{
    gt_sink_text(s, "\"configuration\":{");
    if (m->process_count) {
        const struct gt_process *p = &m->processes[0];
        gt_sink_text(s, "\"variables\":{");
        for (uint32_t i = 0; i < p->config.count; i++) {
            size_t len;
            const char *text = gt_model_string(m, m->lists[p->config.first + i], &len);
            size_t n = strcspn(text, "=");
            gt_sink_text(s, i ? "," : "");
            gt_text_json(s, text, n);
            gt_sink_text(s, ":");
            gt_text_json(s, text + n + (n < len), len - n - (n < len));
        }
        string(s, "},\"output\":", m, p->output);
        integer(s, ",\"rank\":", p->rank);
        string(s, ",\"clock\":", m, p->clock);
        truth(s, ",\"memory_full\":", p->memory_full);
        string(s, ",\"library\":", m, p->library);
        gt_sink_text(s, ",");
    }
    plain(s, "\"gputally\":", GT_VERSION);
    gt_sink_text(s, "},\n");
}

static void list(struct gt_sink *s, const char *before, const struct gt_model *m, struct gt_list l)
{
    gt_sink_text(s, before);
    gt_sink_text(s, "[");
    for (uint32_t i = 0; i < l.count; i++)
        string(s, i ? "," : "", m, m->lists[l.first + i]);
    gt_sink_text(s, "]");
}

static void frames(struct gt_sink *s, const char *before, const struct gt_model *m,
                   struct gt_list l)
{
    gt_sink_text(s, before);
    for (uint32_t i = 0; i < l.count; i++)
        string(s, i ? "," : "", m, gt_stacks_text(m, l, i));
    gt_sink_text(s, "]");
}

static void lost(struct gt_sink *s, const int64_t *counts)
{
    for (int i = 0; i < GT_LOST_INDICES; i++) {
        gt_sink_text(s, i ? ",\"" : "{\"");
        gt_sink_text(s, gt_lost_names[i]);
        integer(s, "\":", counts[i]);
    }
    gt_sink_text(s, "}");
}

static void moment(struct gt_sink *s, int64_t unix_ns)
{
    char text[64];
    time_t t = (time_t)(unix_ns / 1000000000);
    struct tm tm;
    if (unix_ns <= 0 || !gmtime_r(&t, &tm) || !strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &tm)) {
        gt_sink_text(s, ",\"start\":null");
        return;
    }
    gt_sink_format(s, ",\"start\":\"%s.%06dZ\"", text, (int)(unix_ns % 1000000000 / 1000));
}

static int has_devices(const struct gt_model *m, size_t process)
{
    for (size_t i = 0; i < m->device_count; i++)
        if (m->devices[i].process == process)
            return 1;
    return 0;
}

static void process(const struct gt_model *m, size_t id, struct gt_sink *s)
{
    const struct gt_process *p = &m->processes[id];
    int first = 1;
    integer(s, "{\"id\":", (int64_t)id);
    integer(s, ",\"pid\":", p->pid);
    integer(s, ",\"ppid\":", p->ppid);
    integer(s, ",\"start_time\":", p->start_time);
    string(s, ",\"boot_id\":", m, p->boot_id);
    integer(s, ",\"sequence\":", p->sequence);
    string(s, ",\"exe\":", m, p->exe);
    list(s, ",\"argv\":", m, p->argv);
    string(s, ",\"cwd\":", m, p->cwd);
    string(s, ",\"host\":", m, p->host);
    integer(s, ",\"rank\":", p->rank);
    moment(s, p->start_unix_ns);
    integer(s, ",\"start_unix_ns\":", p->start_unix_ns);
    integer(s, ",\"duration_ns\":", p->duration_ns);
    plain(s, ",\"ended\":", gt_ended_names[p->ended]);
    string(s, ",\"clock\":", m, p->clock);
    truth(s, ",\"approximate\":", p->approximate);
    truth(s, ",\"memory_full\":", p->memory_full);
    truth(s, ",\"end_known\":", p->end_known);
    truth(s, ",\"crash_safe\":", p->crash_safe);
    truth(s, ",\"profile_memory\":", p->profile_memory);
    if (p->device)
        plain(s, ",\"use_device\":", gt_use_devices[p->device]);
    string(s, ",\"library\":", m, p->library);
    string(s, ",\"output\":", m, p->output);
    list(s, ",\"variables\":", m, p->config);
    integer(s, ",\"recorded_ns\":", p->recorded_ns);
    integer(s, ",\"excluded\":", p->excluded);
    real(s, ",\"call_ns\":", p->call_ns);
    gt_sink_text(s, ",\"lost\":");
    lost(s, p->lost);
    gt_sink_text(s, ",\"threads\":[");
    for (size_t i = 0; i < m->thread_count; i++) {
        const struct gt_thread *t = &m->threads[i];
        if (t->process != id)
            continue;
        integer(s, first ? "{\"id\":" : ",{\"id\":", (int64_t)i);
        integer(s, ",\"slot\":", t->slot);
        string(s, ",\"name\":", m, t->name);
        integer(s, ",\"tid\":", t->tid);
        integer(s, ",\"threads\":", t->threads);
        gt_sink_text(s, "}");
        first = 0;
    }
    gt_sink_text(s, "]");
    if (p->tvm)
        truth(s, ",\"tvm\":", 1);
    if (p->tvm || has_devices(m, id)) {
        gt_sink_text(s, ",\"device_metrics\":");
        gt_out_json_devices(m, id, s);
    }
    if (p->tvm) {
        gt_sink_text(s, ",\"settings\":");
        gt_out_json_metrics(m, p->settings, s);
    }
    gt_sink_text(s, "}");
}

/* FunctionEventAvg's input_shapes is a list of lists. Ours is text that looks like one, and JSON if
 * it holds but numbers; what a program may have put there instead stays text. */
static void shapes(struct gt_sink *s, const struct gt_model *m, gt_text t)
{
    const char *text = gt_model_string(m, t, NULL);
    int depth = 0, ok = text[0] == '[';
    char before = 0;
    for (const char *p = text; ok && *p; p++) {
        if (*p == ' ') {
            ok = before == ',';
            continue;
        }
        int digit = *p >= '0' && *p <= '9',
            value = before == ']' || (before >= '0' && before <= '9');
        if (*p == '[')
            ok = depth++ < 8 && !value && before != '-' && (p == text || depth > 1);
        else if (*p == ']')
            ok = depth-- > 0 && (value || before == '[');
        else if (*p == ',')
            ok = depth > 0 && value;
        else if (*p == '-')
            ok = before == '[' || before == ',';
        else
            /* no 007: JSON has no such number */
            ok = digit && depth > 0 && before != ']' &&
                 !(before == '0' && !(p - text >= 2 && p[-2] >= '0' && p[-2] <= '9'));
        before = *p;
    }
    gt_sink_text(s, ",\"input_shapes\":");
    if (ok && !depth && before == ']')
        gt_sink_text(s, text);
    else
        gt_text_json(s, text, strlen(text));
}

static void ids(struct gt_sink *s, const char *before, const struct gt_groups *g, uint32_t first,
                uint32_t count)
{
    gt_sink_text(s, before);
    gt_sink_text(s, "[");
    for (uint32_t i = 0; i < count; i++)
        integer(s, i ? "," : "", g->links[first + i]);
    gt_sink_text(s, "]");
}

/* Divided as PyTorch divides: floats, of µs. */
static void mean(struct gt_sink *s, const char *before, int64_t ns, int64_t count)
{
    if (count <= 1 || !ns)
        us(s, before, ns);
    else
        real(s, before, (double)ns / 1000 / (double)count);
}

/* FunctionEventAvg's fields in its order, then ours. `by`: what it is grouped by. */
static void average(const struct gt_groups *g, size_t id, unsigned by, struct gt_sink *s)
{
    const struct gt_avg *a = &g->avgs[id];
    const struct gt_model *m = g->model;
    char sources[256];
    if (!(by & GT_BY_NOTHING))
        integer(s, "{\"id\":", (int64_t)id);
    string(s, by & GT_BY_NOTHING ? "{\"key\":" : ",\"key\":", m, a->key);
    integer(s, ",\"count\":", a->count);
    integer(s, ",\"node_id\":", a->rank);
    truth(s, ",\"is_async\":", a->flags & GT_ROW_ASYNC);
    truth(s, ",\"is_remote\":", a->flags & GT_ROW_REMOTE);
    gt_sink_text(s, ",\"use_device\":");
    if (g->device)
        plain(s, "", gt_use_devices[g->device]);
    else
        gt_sink_text(s, "null");
    us(s, ",\"cpu_time_total\":", a->total_ns);
    us(s, ",\"device_time_total\":", a->device_ns);
    us(s, ",\"self_cpu_time_total\":", a->self_ns);
    us(s, ",\"self_device_time_total\":", a->self_device_ns);
    shapes(s, m, by & (GT_BY_SHAPE | GT_BY_NOTHING) && !a->shapes ? GT_TEXT_NO_SHAPES : a->shapes);
    string(s, ",\"overload_name\":", m, a->overload);
    frames(s, ",\"stack\":[", m, a->stack);
    integer(s, ",\"scope\":", a->scope);
    integer(s, ",\"cpu_memory_usage\":", a->memory);
    integer(s, ",\"device_memory_usage\":", a->device_memory);
    integer(s, ",\"self_cpu_memory_usage\":", a->self_memory);
    integer(s, ",\"self_device_memory_usage\":", a->self_device_memory);
    ids(s, ",\"cpu_children\":", g, a->children_first, a->children_count);
    gt_sink_text(s, ",\"cpu_parent\":");
    if (a->parents_count == 1 && !a->root)
        gt_sink_int(s, g->links[a->parents_first]);
    else
        gt_sink_text(s, "null");
    plain(s, ",\"device_type\":", gt_device_names[a->device]);
    truth(s, ",\"is_legacy\":", a->flags & GT_ROW_LEGACY);
    integer(s, ",\"flops\":", a->flops);
    truth(s, ",\"is_user_annotation\":", a->flags & GT_ROW_ANNOTATION);
    mean(s, ",\"cpu_time\":", a->total_ns, a->count);
    mean(s, ",\"device_time\":", a->device_ns, a->count);
    if (!(by & GT_BY_NOTHING)) {
        ids(s, ",\"cpu_parents\":", g, a->parents_first, a->parents_count);
        us(s, ",\"min\":", a->min_ns);
        us(s, ",\"max\":", a->max_ns);
        us(s, ",\"stddev\":", (int64_t)gt_avg_stddev_ns(a));
    }
    integer(s, ",\"failed\":", a->failed);
    integer(s, ",\"bytes\":", a->bytes);
    some(s, ",\"driver_memory_usage\":", a->driver_memory);
    some(s, ",\"self_driver_memory_usage\":", a->self_driver_memory);
    some(s, ",\"leaked\":", a->leaked);
    integer(s, ",\"threads\":", a->threads);
    if (a->thread >= 0)
        integer(s, ",\"thread\":", a->thread);
    gt_text_sources(sources, sizeof sources, a->sources);
    plain(s, ",\"source\":", sources);
    string(s, ",\"host\":", m, a->host);
    if (a->flags & GT_ROW_FOLDED)
        truth(s, ",\"folded\":", 1);
    if (a->flags & GT_ROW_TORN)
        truth(s, ",\"torn\":", 1);
    values(s, &a->values);
    gt_sink_text(s, "}");
}

static void row(const struct gt_model *m, size_t id, struct gt_sink *s)
{
    const struct gt_row *r = &m->rows[id];
    static const struct {
        uint32_t flag;
        const char *text;
    } flags[] = {{GT_ROW_FOLDED, ",\"folded\":true"},
                 {GT_ROW_LEGACY, ",\"is_legacy\":true"},
                 {GT_ROW_ANNOTATION, ",\"is_user_annotation\":true"},
                 {GT_ROW_TORN, ",\"torn\":true"},
                 {GT_ROW_REMOTE, ",\"is_remote\":true"}};
    integer(s, "{\"id\":", (int64_t)id);
    if (r->parent >= 0)
        integer(s, ",\"parent\":", r->parent);
    else
        gt_sink_text(s, ",\"parent\":null");
    integer(s, ",\"process\":", m->threads[r->thread].process);
    integer(s, ",\"thread\":", r->thread);
    string(s, ",\"key\":", m, r->key);
    string(s, ",\"domain\":", m, r->domain);
    plain(s, ",\"source\":", gt_source_name(r->source));
    plain(s, ",\"kind\":", kinds[r->kind]);
    integer(s, ",\"count\":", r->count);
    integer(s, ",\"self_ns\":", r->self_ns);
    integer(s, ",\"total_ns\":", r->total_ns);
    integer(s, ",\"min_ns\":", r->min_ns);
    integer(s, ",\"max_ns\":", r->max_ns);
    real(s, ",\"sumsq_ns2\":", r->sumsq_ns2);
    some(s, ",\"category\":", r->category);
    if (r->category_name)
        string(s, ",\"category_name\":", m, r->category_name);
    if (r->shapes)
        string(s, ",\"shapes\":", m, r->shapes);
    if (r->overload)
        string(s, ",\"overload\":", m, r->overload);
    if (r->stack)
        integer(s, ",\"stack\":", r->stack - 1);
    some(s, ",\"scope\":", r->scope);
    if (r->device)
        plain(s, ",\"device\":", gt_device_names[r->device]);
    some(s, ",\"failed\":", r->failed);
    some(s, ",\"bytes\":", r->bytes);
    some(s, ",\"flops\":", r->flops);
    some(s, ",\"self_device_ns\":", r->self_device_ns);
    some(s, ",\"device_ns\":", r->device_ns);
    some(s, ",\"cpu_memory\":", r->memory);
    some(s, ",\"self_cpu_memory\":", r->self_memory);
    some(s, ",\"device_memory\":", r->device_memory);
    some(s, ",\"self_device_memory\":", r->self_device_memory);
    some(s, ",\"driver_memory\":", r->driver_memory);
    some(s, ",\"self_driver_memory\":", r->self_driver_memory);
    some(s, ",\"leaked\":", r->leaked);
    values(s, &r->values);
    gt_out_json_launched(m, r->launched, s);
    if (r->metrics.count) {
        gt_sink_text(s, ",\"metrics\":");
        gt_out_json_metrics(m, r->metrics, s);
    }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (r->flags & flags[i].flag)
            gt_sink_text(s, flags[i].text);
    gt_sink_text(s, "}");
}

static void events(const struct gt_model *m, const char *title, int kind, struct gt_sink *s)
{
    struct gt_groups g;
    char sources[256];
    gt_group_events(&g, m, kind);
    gt_sink_format(s, ",\n\"%s\":[", title);
    for (size_t i = 0; i < g.count; i++) {
        string(s, i ? ",\n{\"key\":" : "\n{\"key\":", m, g.avgs[i].key);
        integer(s, ",\"count\":", g.avgs[i].count);
        gt_text_sources(sources, sizeof sources, g.avgs[i].sources);
        plain(s, ",\"source\":", sources);
        values(s, &g.avgs[i].values);
        gt_sink_text(s, "}");
    }
    gt_sink_text(s, "]");
    gt_groups_fini(&g);
}

static void open_ranges(const struct gt_model *m, struct gt_sink *s)
{
    gt_sink_text(s, ",\n\"open\":[");
    for (size_t i = 0; i < m->open_count; i++) {
        const struct gt_row *r = &m->rows[m->open[i].row];
        integer(s, i ? ",\n{\"row\":" : "\n{\"row\":", m->open[i].row);
        string(s, ",\"key\":", m, r->key);
        string(s, ",\"domain\":", m, r->domain);
        integer(s, ",\"process\":", m->threads[r->thread].process);
        integer(s, ",\"thread\":", r->thread);
        integer(s, ",\"since_ns\":", m->open[i].since_ns);
        gt_sink_text(s, "}");
    }
    gt_sink_text(s, "]");
}

static void coverage(const struct gt_model *m, struct gt_sink *s)
{
    gt_sink_text(s, ",\n\"coverage\":[");
    for (size_t i = 0; i < m->process_count; i++) {
        int64_t wall = m->processes[i].duration_ns, on = m->processes[i].recorded_ns;
        int first = 1;
        integer(s, i ? ",\n{\"process\":" : "\n{\"process\":", (int64_t)i);
        integer(s, ",\"wall_ns\":", wall);
        integer(s, ",\"recorded_ns\":", on);
        gt_sink_text(s, ",\"threads\":[");
        for (size_t k = 0; k < m->thread_count; k++) {
            if (m->threads[k].process != i)
                continue;
            integer(s, first ? "{\"thread\":" : ",{\"thread\":", (int64_t)k);
            int64_t inside = m->threads[k].inside_ns;
            integer(s, ",\"inside_ns\":", inside);
            integer(s, ",\"outside_ns\":", on > inside ? on - inside : 0);
            gt_sink_text(s, "}");
            first = 0;
        }
        gt_sink_text(s, "]}");
    }
    gt_sink_text(s, "]");
}

static void averages(const struct gt_model *m, unsigned by, struct gt_sink *s)
{
    struct gt_groups g;
    gt_group_rows(&g, m, by);
    for (size_t i = 0; i < g.count; i++) {
        if (!(by & GT_BY_NOTHING))
            gt_sink_text(s, i ? ",\n" : "\n");
        average(&g, i, by, s);
    }
    gt_groups_fini(&g);
}

static void overhead(const struct gt_model *m, struct gt_sink *s)
{
    gt_sink_text(s, ",\n\"overhead\":[");
    for (size_t i = 0; i < m->process_count; i++) {
        integer(s, i ? ",\n{\"process\":" : "\n{\"process\":", (int64_t)i);
        integer(s, ",\"calls\":", gt_overhead_calls(m, i));
        real(s, ",\"call_ns\":", m->processes[i].call_ns);
        real(s, ",\"ns\":", gt_overhead_ns(m, i));
        real(s, ",\"share\":", gt_overhead_share(m, i));
        gt_sink_text(s, "}");
    }
    gt_sink_text(s, "]");
}

void gt_out_json(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s)
{
    int64_t sums[GT_LOST_INDICES] = {0};
    gt_out_json_head(m, s);
    configuration(m, s);
    gt_sink_text(s, "\"processes\":[");
    for (size_t i = 0; i < m->process_count; i++) {
        gt_sink_text(s, i ? ",\n" : "\n");
        process(m, i, s);
        for (int k = 0; k < GT_LOST_INDICES; k++)
            sums[k] = gt_add(sums[k], m->processes[i].lost[k]);
    }
    gt_sink_text(s, "],\n\"device_metrics\":");
    if (m->process_count == 1)
        gt_out_json_devices(m, 0, s);
    else
        gt_sink_text(s, "{}");
    gt_sink_text(s, ",\n\"key_averages\":[");
    averages(m, o->group_by & ~(unsigned)GT_BY_NOTHING, s);
    gt_sink_text(s, "],\n\"total_average\":");
    averages(m, GT_BY_NOTHING, s);
    gt_sink_text(s, ",\n\"call_tree\":[");
    for (size_t i = 0; i < m->row_count; i++) {
        gt_sink_text(s, i ? ",\n" : "\n");
        row(m, i, s);
    }
    gt_sink_text(s, "]");
    gt_out_json_stacks(m, s);
    events(m, "marks", GT_KIND_MARK, s);
    events(m, "counters", GT_KIND_COUNTER, s);
    open_ranges(m, s);
    gt_sink_text(s, ",\n\"lost\":");
    lost(s, sums);
    coverage(m, s);
    overhead(m, s);
    gt_sink_text(s, "}\n");
}
