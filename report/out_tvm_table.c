/* What TVM's Report.table(sort, aggregate, col_sums) prints, byte for byte: also the order of rows
 * that it does not define (tvm_order.h), widths in bytes, and thousands separated where the locale
 * says so. See writer.h. */
#include "report/mem.h"
#include "report/tvm.h"
#include "report/tvm_columns.h"
#include "report/writer.h"
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

struct table {
    struct gt_tvm v;
    struct gt_tvm_row *rows;
    size_t count, room;
    locale_t locale; /* for numbers */
};

static void add_row(struct table *t, const struct gt_tvm_row *row)
{
    gt_mem_grow(&t->rows, &t->room, t->count, sizeof *t->rows);
    t->rows[t->count++] = *row;
}

/* Name (or hash), shapes and device, one after the other, as TVM puts them together. */
static void key_of(const struct table *t, const struct gt_tvm_row *row, uint32_t hash,
                   struct gt_sink *to)
{
    uint32_t name = gt_tvm_cell_of(&t->v, row, hash) ? hash : GT_TVM_AT_NAME;
    uint32_t parts[3] = {name, GT_TVM_AT_SHAPES, GT_TVM_AT_DEVICE};
    for (int i = 0; i < 3; i++) {
        const struct gt_tvm_cell *c = gt_tvm_cell_of(&t->v, row, parts[i]);
        if (c && c->kind == GT_METRIC_STRING)
            gt_sink_text(to, c->text);
        else if (c)
            gt_sink_real(to, gt_tvm_amount(c));
    }
}

struct piece {
    uint32_t column;
    size_t cell;
};

static int by_column(const void *pa, const void *pb)
{
    const struct piece *a = pa, *b = pb;
    if (a->column != b->column)
        return a->column < b->column ? -1 : 1;
    return a->cell < b->cell ? -1 : a->cell > b->cell;
}

/* One row of all calls in members[0 … n - 1], in their order. */
static void add_group(struct table *t, const uint32_t *members, size_t n)
{
    struct gt_tvm_row row = {0};
    struct piece *pieces = NULL;
    const struct gt_tvm_cell **cells;
    size_t count = 0, room = 0;
    for (size_t i = 0; i < n; i++) {
        const struct gt_tvm_row *r = &t->v.calls[members[i]];
        for (uint32_t k = 0; k < r->count; k++) {
            gt_mem_grow(&pieces, &room, count, sizeof *pieces);
            pieces[count++] = (struct piece){t->v.cells[r->first + k].column, r->first + k};
        }
    }
    if (count)
        qsort(pieces, count, sizeof *pieces, by_column);
    cells = gt_mem_new(count, sizeof *cells);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && pieces[end].column == pieces[i].column; end++)
            cells[end - i] = &t->v.cells[pieces[end].cell];
        struct gt_tvm_cell sum = gt_tvm_add_up(cells, end - i);
        *gt_tvm_put(&t->v, &row, sum.column, sum.kind) = sum;
    }
    free(pieces);
    free(cells);
    add_row(t, &row);
}

static void aggregate(struct table *t)
{
    size_t n = t->v.call_count;
    struct gt_tvm_map groups;
    uint32_t *group = gt_mem_new(n, sizeof *group), *order, *members;
    size_t *start, *fill;
    char **keys = gt_mem_new(n, sizeof *keys);
    uint32_t hash = gt_tvm_column_named(&t->v, GT_TVM_HASH);
    gt_tvm_map_init(&groups);
    for (size_t i = 0; i < n; i++) {
        struct gt_sink key;
        size_t length, before = groups.count;
        gt_sink_open(&key, -1);
        key_of(t, &t->v.calls[i], hash, &key);
        keys[i] = gt_sink_take(&key, &length);
        group[i] = gt_tvm_map_put(&groups, keys[i], length);
        if (groups.count == before) {
            free(keys[i]);
            keys[i] = NULL;
        }
    }
    order = gt_mem_new(groups.count, sizeof *order);
    members = gt_mem_new(n, sizeof *members);
    start = gt_mem_new(groups.count + 1, sizeof *start);
    fill = gt_mem_new(groups.count, sizeof *fill);
    gt_tvm_map_order(&groups, order);
    for (size_t i = 0; i < n; i++)
        start[group[i] + 1]++;
    for (size_t i = 0; i < groups.count; i++)
        start[i + 1] += start[i];
    for (size_t i = 0; i < n; i++)
        members[start[group[i]] + fill[group[i]]++] = (uint32_t)i;
    for (size_t i = 0; i < groups.count; i++)
        add_group(t, members + start[order[i]], fill[order[i]]);
    for (size_t i = 0; i < n; i++)
        free(keys[i]);
    free(keys);
    free(group);
    free(order);
    free(members);
    free(start);
    free(fill);
    gt_tvm_map_fini(&groups);
}

static void sort(struct table *t)
{
    uint32_t *order = gt_mem_new(t->count, sizeof *order);
    double *by = gt_mem_new(t->count, sizeof *by);
    struct gt_tvm_row *rows = gt_mem_new(t->count, sizeof *rows);
    for (size_t i = 0; i < t->count; i++) {
        const struct gt_tvm_cell *c = gt_tvm_cell_of(&t->v, &t->rows[i], GT_TVM_AT_DURATION);
        order[i] = (uint32_t)i;
        by[i] = c ? gt_tvm_amount(c) : 0;
    }
    gt_tvm_sort(order, t->count, by);
    for (size_t i = 0; i < t->count; i++)
        rows[i] = t->rows[order[i]];
    free(t->rows);
    t->rows = rows;
    t->room = t->count;
    free(order);
    free(by);
}

static void add_name(struct table *t, const char *name)
{
    struct gt_tvm_row row = {0};
    gt_tvm_put(&t->v, &row, GT_TVM_AT_NAME, GT_METRIC_STRING)->text = name;
    add_row(t, &row);
}

/* Every number but ratios, by the kind that its column has first. */
static void add_sums(struct table *t)
{
    size_t columns = t->v.column_count;
    struct gt_tvm_cell *sums = gt_mem_new(columns, sizeof *sums);
    struct gt_tvm_row row = {0};
    for (size_t i = 0; i < columns; i++)
        sums[i].kind = GT_METRIC_STRING;
    for (size_t i = 0; i < t->count; i++)
        for (uint32_t k = 0; k < t->rows[i].count; k++) {
            const struct gt_tvm_cell *c = &t->v.cells[t->rows[i].first + k];
            struct gt_tvm_cell *sum = &sums[c->column];
            if (c->kind == GT_METRIC_STRING || c->kind == GT_METRIC_RATIO)
                continue;
            if (sum->kind == GT_METRIC_STRING)
                *sum = *c;
            else if (sum->kind != c->kind)
                continue;
            else if (sum->kind == GT_METRIC_COUNT)
                sum->count = (int64_t)((uint64_t)c->count + (uint64_t)sum->count);
            else
                sum->real = c->real + sum->real;
        }
    add_name(t, "----------");
    sums[GT_TVM_AT_NAME] = (struct gt_tvm_cell){GT_TVM_AT_NAME, GT_METRIC_STRING, {.text = "Sum"}};
    for (size_t i = 0; i < columns; i++)
        if (i == GT_TVM_AT_NAME || sums[i].kind != GT_METRIC_STRING)
            *gt_tvm_put(&t->v, &row, (uint32_t)i, sums[i].kind) = sums[i];
    add_row(t, &row);
    free(sums);
}

static void add_devices(struct table *t)
{
    for (size_t i = 0; i < t->v.device_count; i++) {
        struct gt_tvm_row of = t->v.devices[i], row = {0};
        gt_tvm_put(&t->v, &row, GT_TVM_AT_NAME, GT_METRIC_STRING)->text = "Total";
        for (uint32_t k = 0; k < of.count; k++) {
            struct gt_tvm_cell c = t->v.cells[of.first + k];
            if (c.column != GT_TVM_AT_NAME)
                *gt_tvm_put(&t->v, &row, c.column, c.kind) = c;
        }
        add_row(t, &row);
    }
}

/* libstdc++ knows separators of one byte only, and has these for the longer ones. */
static char narrow(const char *separator)
{
    if (!strcmp(separator, "\u202f") || !strcmp(separator, "\u00a0"))
        return ' ';
    return !strcmp(separator, "\u2019") || !strcmp(separator, "\u066c") ? '\'' : '?';
}

/* A number as the user's locale writes it. */
static void print_local(const struct table *t, struct gt_sink *to, const struct gt_tvm_cell *c)
{
    char text[1024]; /* 10^308 and its separators */
    const char *separator = nl_langinfo_l(THOUSEP, t->locale);
    size_t n = strlen(separator);
    locale_t outer = uselocale(t->locale);
    if (c->kind == GT_METRIC_COUNT)
        snprintf(text, sizeof text, "%'lld", (long long)c->count);
    else if (c->kind == GT_METRIC_RATIO)
        snprintf(text, sizeof text, "%.2g", c->real);
    else
        snprintf(text, sizeof text, "%'.2f", c->real);
    uselocale(outer);
    for (char *at = text; n > 1 && (at = strstr(at, separator)); at++) {
        *at = narrow(separator);
        memmove(at + 1, at + n, strlen(at + n) + 1);
    }
    gt_sink_text(to, text);
}

static void print(const struct table *t, struct gt_sink *to, const struct gt_tvm_cell *c)
{
    if (c->kind == GT_METRIC_STRING)
        gt_sink_text(to, c->text);
    else if (c->kind == GT_METRIC_PERCENT)
        gt_sink_format(to, "%.2f", c->real);
    else
        print_local(t, to, c);
}

/* Every cell as text, then the widths, then the lines. */
static void lay_out(const struct table *t, struct gt_sink *s)
{
    const struct gt_tvm *v = &t->v;
    size_t columns = v->column_count;
    uint32_t *order = gt_tvm_sorted_columns(v, GT_TVM_FIXED);
    size_t *place = gt_mem_new(columns, sizeof *place); /* of a column among the columns shown */
    size_t *width = gt_mem_new(columns, sizeof *width);
    size_t *end = gt_mem_new(v->cell_count + 1, sizeof *end); /* of a cell's text */
    size_t *cell = gt_mem_new(columns, sizeof *cell);         /* of a row, by place */
    struct gt_sink text;
    gt_sink_open(&text, -1);
    for (size_t i = 0; i < columns; i++)
        place[i < GT_TVM_FIXED ? i : order[i - GT_TVM_FIXED]] = i;
    for (size_t i = 0; i < columns; i++)
        width[place[i]] = strlen(v->columns[i]);
    for (size_t i = 0, n = 0; i < t->count; i++)
        for (uint32_t k = 0; k < t->rows[i].count; k++) {
            const struct gt_tvm_cell *c = &v->cells[t->rows[i].first + k];
            size_t *w = &width[place[c->column]], start = text.used;
            print(t, &text, c);
            end[n++] = text.used;
            if (text.used - start > *w)
                *w = text.used - start;
        }
    for (size_t i = 0, n = 0; i <= t->count; i++) {
        const struct gt_tvm_row *row = i ? &t->rows[i - 1] : NULL;
        memset(cell, 0, columns * sizeof *cell);
        for (uint32_t k = 0; row && k < row->count; k++)
            cell[place[v->cells[row->first + k].column]] = ++n;
        for (size_t k = 0; k < columns; k++) {
            const char *p = "";
            size_t len = 0;
            if (!row) {
                p = v->columns[k < GT_TVM_FIXED ? k : order[k - GT_TVM_FIXED]];
                len = strlen(p);
            } else if (cell[k]) {
                size_t from = cell[k] > 1 ? end[cell[k] - 2] : 0;
                p = text.data ? text.data + from : "";
                len = end[cell[k] - 1] - from;
            }
            if (k)
                gt_sink_fill(s, ' ', width[k] - len);
            gt_sink_put(s, p, len);
            if (!k)
                gt_sink_fill(s, ' ', width[k] - len);
            gt_sink_text(s, "  ");
        }
        gt_sink_text(s, "\n");
    }
    gt_sink_close(&text);
    free(order);
    free(place);
    free(width);
    free(end);
    free(cell);
}

void gt_out_tvm_table(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s)
{
    struct table t = {0};
    gt_tvm_init(&t.v, m);
    if (o->no_aggregate)
        for (size_t i = 0; i < t.v.call_count; i++)
            add_row(&t, &t.v.calls[i]);
    else
        aggregate(&t);
    if (!o->no_sort)
        sort(&t);
    if (!o->no_col_sums)
        add_sums(&t);
    add_devices(&t);
    /* as the real one: here and nowhere else, and not for percents */
    if (!(t.locale = newlocale(LC_NUMERIC_MASK, "", (locale_t)0)))
        t.locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    lay_out(&t, s);
    gt_sink_text(s, "\nConfiguration\n-------------\n");
    for (uint32_t i = 0; i < t.v.configuration.count; i++) {
        const struct gt_tvm_cell *c = &t.v.cells[t.v.configuration.first + i];
        gt_sink_text(s, t.v.settings[c->column]);
        gt_sink_text(s, ": ");
        print(&t, s, c);
        gt_sink_text(s, "\n");
    }
    free(t.rows);
    gt_tvm_fini(&t.v);
    freelocale(t.locale);
}
