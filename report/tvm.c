/* See tvm.h. */
#include "report/tvm.h"
#include "core/layout.h"
#include "report/arrange.h"
#include "report/mem.h"
#include "report/tvm_columns.h"
#include "report/writer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *own(struct gt_tvm *v, char *text)
{
    gt_mem_grow(&v->owned, &v->owned_room, v->owned_count, sizeof *v->owned);
    return v->owned[v->owned_count++] = text;
}

/* A text of a program as it may stand in a TVM report: control characters as gt_text_cell shows
 * them, but for the three that TVM's reader takes escaped. The caller frees. */
static char *visible(const char *text, size_t len)
{
    char *safe = gt_mem_new(len + 1, 4);
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        int c1 = c == 0xc2 && (unsigned char)text[i + 1] < 0xa0;
        if (c1)
            c = (unsigned char)text[++i];
        if (c1 || (c < 0x20 && !strchr("\n\t\r", c)) || c == 0x7f)
            n += (size_t)sprintf(safe + n, "\\x%02x", c);
        else
            safe[n++] = (char)c;
    }
    return safe;
}

static const char *shown(struct gt_tvm *v, gt_text id)
{
    size_t len;
    const char *text = gt_model_string(v->model, id, &len);
    if (!v->shown[id]) {
        char *safe = visible(text, len);
        v->shown[id] = strcmp(safe, text) ? own(v, safe) : text;
        if (v->shown[id] == text)
            free(safe);
    }
    return v->shown[id];
}

/* A text of a TVM report. It may have what TVM's reader lets pass: DEL and U+0080 to U+009F. */
static const char *kept(struct gt_tvm *v, gt_text id)
{
    const char *text = gt_model_string(v->model, id, NULL);
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 && !strchr("\n\t\r", *p))
            return shown(v, id);
    return text;
}

static uint32_t column(struct gt_tvm *v, const char *name)
{
    uint32_t at = gt_tvm_map_put(&v->names, name, strlen(name));
    if (at == v->column_count) {
        gt_mem_grow(&v->columns, &v->column_room, at, sizeof *v->columns);
        v->columns[v->column_count++] = name;
    }
    return at;
}

struct gt_tvm_cell *gt_tvm_put(struct gt_tvm *v, struct gt_tvm_row *row, uint32_t at, int kind)
{
    gt_mem_grow(&v->cells, &v->cell_room, v->cell_count, sizeof *v->cells);
    struct gt_tvm_cell *c = &v->cells[v->cell_count];
    if (!row->count++)
        row->first = v->cell_count;
    v->cell_count++;
    memset(c, 0, sizeof *c);
    c->column = at;
    c->kind = (uint8_t)kind;
    return c;
}

static void put_text(struct gt_tvm *v, struct gt_tvm_row *row, uint32_t at, const char *text)
{
    gt_tvm_put(v, row, at, GT_METRIC_STRING)->text = text;
}

static struct gt_tvm_cell as_cell(struct gt_tvm *v, const struct gt_metric *metric, uint32_t at)
{
    struct gt_tvm_cell c = {.column = at, .kind = metric->kind};
    if (metric->kind == GT_METRIC_STRING)
        c.text = kept(v, metric->text);
    else if (metric->kind == GT_METRIC_COUNT)
        c.count = metric->count;
    else
        c.real = metric->real;
    return c;
}

/* What came from TVM, as it came. */
static void copy(struct gt_tvm *v, struct gt_tvm_row *row, struct gt_list l)
{
    const struct gt_model *m = v->model;
    for (uint32_t i = 0; i < l.count; i++) {
        const struct gt_metric *metric = &m->metrics[l.first + i];
        uint32_t *of = &v->column_of[metric->name];
        if (!*of)
            *of = column(v, kept(v, metric->name)) + 1;
        struct gt_tvm_cell c = as_cell(v, metric, *of - 1);
        *gt_tvm_put(v, row, c.column, c.kind) = c;
    }
}

static int64_t self_ns(const struct gt_row *r)
{
    return r->device == GT_CPU ? r->self_ns : r->self_device_ns;
}

struct sums {
    int64_t self_ns[GT_DEVICES], calls[GT_DEVICES];
    uint32_t columns[32]; /* of gt_tvm_columns; UINT32_MAX: all zero */
    uint32_t thread, process;
};

static const char *const device_names[GT_DEVICES] = {"cpu0", "cuda0", "xpu0", "privateuseone0"};

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void our_row(struct gt_tvm *v, const struct gt_row *r, const struct sums *sums)
{
    const struct gt_model *m = v->model;
    const struct gt_thread *t = &m->threads[r->thread];
    struct gt_tvm_row row = {0};
    char text[GT_THREAD_BYTES];
    put_text(v, &row, GT_TVM_AT_NAME, shown(v, r->label));
    gt_tvm_put(v, &row, GT_TVM_AT_DURATION, GT_METRIC_MICROSECONDS)->real =
        (double)self_ns(r) / 1000;
    gt_tvm_put(v, &row, GT_TVM_AT_PERCENT, GT_METRIC_PERCENT)->real =
        percent(self_ns(r), sums->self_ns[r->device]);
    put_text(v, &row, GT_TVM_AT_DEVICE, device_names[r->device]);
    gt_tvm_put(v, &row, GT_TVM_AT_COUNT, GT_METRIC_COUNT)->count = r->count;
    put_text(v, &row, GT_TVM_AT_SHAPES, shown(v, r->shapes));
    for (size_t i = 0; i < gt_tvm_column_count; i++) {
        const struct gt_tvm_column *c = &gt_tvm_columns[i];
        int64_t value = *gt_tvm_field((struct gt_row *)r, c);
        if (sums->columns[i] == UINT32_MAX)
            continue;
        struct gt_tvm_cell *to = gt_tvm_put(v, &row, sums->columns[i], c->kind);
        if (c->kind == GT_METRIC_COUNT) {
            to->count = value;
        } else if (c->kind == GT_METRIC_MICROSECONDS) {
            to->real = (double)value / 1000;
        } else {
            snprintf(text, sizeof text, "%lld.%03lld", (long long)(value / 1000),
                     (long long)(value % 1000));
            to->text = own(v, gt_mem_copy(text, strlen(text)));
        }
    }
    if (sums->thread != UINT32_MAX) {
        gt_text_thread(m, r->thread, text);
        put_text(v, &row, sums->thread, own(v, visible(text, strlen(text))));
    }
    if (sums->process != UINT32_MAX)
        put_text(v, &row, sums->process,
                 own(v, gt_mem_format("%lld", (long long)m->processes[t->process].pid)));
    gt_mem_grow(&v->calls, &v->call_room, v->call_count, sizeof *v->calls);
    v->calls[v->call_count++] = row;
}

static int is_ours(const struct gt_model *m, const struct gt_row *r)
{
    return gt_row_counts(r) && !m->processes[m->threads[r->thread].process].tvm;
}

static void add_calls(struct gt_tvm *v, struct sums *sums)
{
    const struct gt_model *m = v->model;
    size_t threads = 0, processes = 0;
    memset(sums->columns, 0xff, sizeof sums->columns);
    for (size_t i = 0; i < m->row_count; i++) {
        const struct gt_row *r = &m->rows[i];
        if (!is_ours(m, r))
            continue;
        /* an annotation on a device lies over the kernels that it holds */
        if (r->device == GT_CPU || !(r->flags & GT_ROW_ANNOTATION)) {
            sums->self_ns[r->device] = gt_add(sums->self_ns[r->device], self_ns(r));
            sums->calls[r->device] = gt_add(sums->calls[r->device], r->count);
        }
        for (size_t k = 0; k < gt_tvm_column_count; k++)
            if (sums->columns[k] == UINT32_MAX &&
                (gt_tvm_columns[k].always || *gt_tvm_field((struct gt_row *)r, &gt_tvm_columns[k])))
                sums->columns[k] = column(v, gt_tvm_columns[k].name);
    }
    for (size_t i = 0; i < m->thread_count; i++)
        threads += !m->processes[m->threads[i].process].tvm;
    for (size_t i = 0; i < m->process_count; i++)
        processes += !m->processes[i].tvm;
    sums->thread = threads > 1 ? column(v, "Thread") : UINT32_MAX;
    sums->process = processes > 1 ? column(v, "Process") : UINT32_MAX;
    for (size_t i = 0; i < m->row_count; i++) {
        const struct gt_row *r = &m->rows[i];
        if (is_ours(m, r)) {
            our_row(v, r, sums);
        } else if (m->processes[m->threads[r->thread].process].tvm) {
            struct gt_tvm_row row = {0};
            copy(v, &row, r->metrics);
            gt_mem_grow(&v->calls, &v->call_room, v->call_count, sizeof *v->calls);
            v->calls[v->call_count++] = row;
        }
    }
}

/* The same device of several reports: one, with what is known of it added up. */
static void merge(struct gt_tvm *v, struct gt_tvm_row *into, const struct gt_tvm_row *other)
{
    struct gt_tvm_row old = *into;
    into->count = 0;
    for (uint32_t i = 0; i < old.count; i++) {
        struct gt_tvm_cell a = v->cells[old.first + i];
        const struct gt_tvm_cell *b = gt_tvm_cell_of(v, other, a.column);
        if (b)
            a = gt_tvm_add_up((const struct gt_tvm_cell *[2]){&a, b}, 2);
        *gt_tvm_put(v, into, a.column, a.kind) = a;
    }
    for (uint32_t i = 0; i < other->count; i++) {
        struct gt_tvm_cell b = v->cells[other->first + i];
        if (!gt_tvm_cell_of(v, &old, b.column))
            *gt_tvm_put(v, into, b.column, b.kind) = b;
    }
}

static void add_device(struct gt_tvm *v, const struct gt_tvm_row *row)
{
    for (size_t i = 0; i < v->device_count; i++)
        if (!strcmp(v->devices[i].device, row->device)) {
            struct gt_tvm_row *into = &v->devices[i];
            merge(v, into, row);
            return;
        }
    gt_mem_grow(&v->devices, &v->device_room, v->device_count, sizeof *v->devices);
    v->devices[v->device_count++] = *row;
}

static void add_devices(struct gt_tvm *v, const struct sums *sums)
{
    const struct gt_model *m = v->model;
    for (int d = 0; d < GT_DEVICES; d++) {
        struct gt_tvm_row row = {.device = device_names[d]};
        if (!sums->calls[d])
            continue;
        put_text(v, &row, GT_TVM_AT_NAME, "Total");
        gt_tvm_put(v, &row, GT_TVM_AT_DURATION, GT_METRIC_MICROSECONDS)->real =
            (double)sums->self_ns[d] / 1000;
        gt_tvm_put(v, &row, GT_TVM_AT_PERCENT, GT_METRIC_PERCENT)->real =
            percent(sums->self_ns[d], sums->self_ns[d]);
        put_text(v, &row, GT_TVM_AT_DEVICE, device_names[d]);
        gt_tvm_put(v, &row, GT_TVM_AT_COUNT, GT_METRIC_COUNT)->count = sums->calls[d];
        add_device(v, &row);
    }
    for (size_t i = 0; i < m->device_count; i++) {
        struct gt_tvm_row row = {.device = kept(v, m->devices[i].device)};
        if (!m->processes[m->devices[i].process].tvm)
            continue;
        copy(v, &row, m->devices[i].metrics);
        add_device(v, &row);
    }
}

static void setting(struct gt_tvm *v, const char *name, struct gt_tvm_cell c)
{
    gt_mem_grow(&v->settings, &v->setting_room, v->setting_count, sizeof *v->settings);
    v->settings[v->setting_count] = name;
    c.column = (uint32_t)v->setting_count++;
    *gt_tvm_put(v, &v->configuration, c.column, c.kind) = c;
}

static void say(struct gt_tvm *v, const char *name, const char *text)
{
    setting(v, name, (struct gt_tvm_cell){.kind = GT_METRIC_STRING, .text = text});
}

static void say_number(struct gt_tvm *v, const char *name, int64_t n)
{
    say(v, name, own(v, gt_mem_format("%lld", (long long)n)));
}

static void our_settings(struct gt_tvm *v, const struct gt_process *p, size_t threads)
{
    const struct gt_model *m = v->model;
    if (p->exe)
        say(v, "Program", shown(v, p->exe));
    if (p->pid)
        say_number(v, "Process", p->pid);
    if (p->host)
        say(v, "Host", shown(v, p->host));
    if (p->rank >= 0)
        say_number(v, "Rank", p->rank);
    say_number(v, "Number of threads", (int64_t)threads);
    say(v, "Time (us)",
        own(v, gt_mem_format("%lld.%03lld", (long long)(p->duration_ns / 1000),
                             (long long)(p->duration_ns % 1000))));
    say(v, "Ended", gt_ended_names[p->ended]);
    for (uint32_t i = 0; i < p->config.count; i++) {
        const char *text = shown(v, m->lists[p->config.first + i]);
        size_t n = strcspn(text, "=");
        say(v, own(v, gt_mem_copy(text, n)), text + n + (text[n] == '='));
    }
}

static void add_settings(struct gt_tvm *v)
{
    const struct gt_model *m = v->model;
    const struct gt_process *only = NULL;
    size_t ours = 0, threads = 0;
    for (size_t i = 0; i < m->process_count; i++)
        if (!m->processes[i].tvm) {
            only = &m->processes[i];
            ours++;
        }
    for (size_t i = 0; i < m->thread_count; i++)
        threads += !m->processes[m->threads[i].process].tvm;
    if (ours) {
        say(v, "Executor", "gputally");
        say(v, "gputally", GT_VERSION);
    }
    if (ours == 1)
        our_settings(v, only, threads);
    else if (ours)
        say_number(v, "Number of processes", (int64_t)ours);
    for (size_t i = 0; i < m->process_count; i++) {
        const struct gt_process *p = &m->processes[i];
        for (uint32_t k = 0; p->tvm && k < p->settings.count; k++) {
            const struct gt_metric *metric = &m->metrics[p->settings.first + k];
            const char *name = kept(v, metric->name);
            size_t at = 0;
            /* of several reports the first one's */
            while (i && at < v->setting_count && strcmp(v->settings[at], name))
                at++;
            if (!i || at == v->setting_count)
                setting(v, name, as_cell(v, metric, 0));
        }
    }
}

void gt_tvm_init(struct gt_tvm *v, const struct gt_model *m)
{
    static const char *const fixed[GT_TVM_FIXED] = {GT_TVM_NAME,   GT_TVM_DURATION, GT_TVM_PERCENT,
                                                    GT_TVM_DEVICE, GT_TVM_COUNT,    GT_TVM_SHAPES};
    struct sums sums = {0};
    memset(v, 0, sizeof *v);
    v->model = gt_arrange(&v->room, m, 0);
    v->column_of = gt_mem_new(m->string_count, sizeof *v->column_of);
    v->shown = gt_mem_new(m->string_count, sizeof *v->shown);
    gt_tvm_map_init(&v->names);
    for (int i = 0; i < GT_TVM_FIXED; i++)
        column(v, fixed[i]);
    add_calls(v, &sums);
    add_devices(v, &sums);
    add_settings(v);
}

void gt_tvm_fini(struct gt_tvm *v)
{
    for (size_t i = 0; i < v->owned_count; i++)
        free(v->owned[i]);
    free(v->owned);
    free(v->columns);
    free(v->cells);
    free(v->calls);
    free(v->devices);
    free(v->settings);
    free(v->column_of);
    gt_tvm_map_fini(&v->names);
    gt_arrange_fini(&v->room);
    free(v->shown);
}

const struct gt_tvm_cell *gt_tvm_cell_of(const struct gt_tvm *v, const struct gt_tvm_row *row,
                                         uint32_t at)
{
    for (uint32_t i = 0; i < row->count; i++)
        if (v->cells[row->first + i].column == at)
            return &v->cells[row->first + i];
    return NULL;
}

uint32_t gt_tvm_column_named(const struct gt_tvm *v, const char *name)
{
    for (size_t i = 0; i < v->column_count; i++)
        if (!strcmp(v->columns[i], name))
            return (uint32_t)i;
    return UINT32_MAX;
}

double gt_tvm_amount(const struct gt_tvm_cell *c)
{
    double real;
    if (c->kind == GT_METRIC_COUNT)
        return (double)c->count;
    real = c->kind == GT_METRIC_STRING ? strtod(c->text, NULL) : c->real;
    return isfinite(real) ? real : 0;
}

struct gt_tvm_cell gt_tvm_add_up(const struct gt_tvm_cell *const *cells, size_t n)
{
    struct gt_tvm_cell sum = *cells[0];
    size_t known = 0;
    if (sum.kind == GT_METRIC_STRING) {
        for (size_t i = 1; i < n; i++)
            if (cells[i]->kind != GT_METRIC_STRING || strcmp(cells[i]->text, sum.text))
                sum.text = "";
        return sum;
    }
    sum.real = 0;
    sum.count = 0;
    for (size_t i = 0; i < n; i++) {
        /* another kind in the same column: TVM's own code fails there */
        if (cells[i]->kind != sum.kind)
            continue;
        known++;
        if (sum.kind == GT_METRIC_COUNT)
            sum.count = (int64_t)((uint64_t)sum.count + (uint64_t)cells[i]->count);
        else
            sum.real += cells[i]->real;
    }
    if (sum.kind == GT_METRIC_RATIO)
        sum.real /= (double)known;
    return sum;
}

static const char *const *names_to_sort;

static int by_name(const void *pa, const void *pb)
{
    return strcmp(names_to_sort[*(const uint32_t *)pa], names_to_sort[*(const uint32_t *)pb]);
}

uint32_t *gt_tvm_sorted_columns(const struct gt_tvm *v, uint32_t from)
{
    size_t n = v->column_count - from;
    uint32_t *order = gt_mem_new(n, sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = from + (uint32_t)i;
    names_to_sort = v->columns;
    if (n)
        qsort(order, n, sizeof *order, by_name);
    return order;
}
