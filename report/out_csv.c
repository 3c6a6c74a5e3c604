/* Key averages as CSV (RFC 4180): CRLF, every text quoted, quotes doubled; times in µs. No guard
 * against spreadsheets that run `=cmd()`: see docs/format.md. */
#include "report/writer.h"
#include <stdlib.h>

/* Text inside quotes. */
static void inner(struct gt_sink *s, const char *text)
{
    for (const char *q; (q = strchr(text, '"')); text = q + 1) {
        gt_sink_put(s, text, (size_t)(q - text) + 1);
        gt_sink_put(s, "\"", 1);
    }
    gt_sink_text(s, text);
}

static void quoted(struct gt_sink *s, const char *text)
{
    gt_sink_put(s, "\"", 1);
    inner(s, text);
    gt_sink_put(s, "\"", 1);
}

static void integer(struct gt_sink *s, int64_t v)
{
    gt_sink_put(s, ",", 1);
    gt_sink_int(s, v);
}

static void us(struct gt_sink *s, int64_t ns)
{
    gt_sink_put(s, ",", 1);
    gt_sink_us(s, ns);
}

/* PyTorch's cpu_time: floats, of µs. */
static void mean(struct gt_sink *s, int64_t ns, int64_t count)
{
    if (count <= 1 || !ns) {
        us(s, ns);
        return;
    }
    gt_sink_put(s, ",", 1);
    gt_sink_real(s, (double)ns / 1000 / (double)count);
}

/* "[3, 5]" */
static void ids(const struct gt_groups *g, uint32_t first, uint32_t count, struct gt_sink *s)
{
    gt_sink_text(s, ",\"[");
    for (uint32_t i = 0; i < count; i++) {
        gt_sink_text(s, i ? ", " : "");
        gt_sink_int(s, g->links[first + i]);
    }
    gt_sink_text(s, "]\"");
}

/* A frame a line. */
static void frames(const struct gt_model *m, struct gt_list l, struct gt_sink *s)
{
    gt_sink_put(s, ",\"", 2);
    for (uint32_t i = 0; i < l.count; i++) {
        gt_sink_text(s, i ? "\n" : "");
        inner(s, gt_model_string(m, gt_stacks_text(m, l, i), NULL));
    }
    gt_sink_put(s, "\"", 1);
}

/* A device's driver gave or took something. */
static int has_driver_memory(const struct gt_groups *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->avgs[i].driver_memory || g->avgs[i].self_driver_memory || g->avgs[i].leaked)
            return 1;
    return 0;
}

static void row(const struct gt_groups *g, const struct gt_avg *a, unsigned by, int driver_memory,
                struct gt_sink *s)
{
    const struct gt_model *m = g->model;
    char sources[256], thread[GT_THREAD_BYTES];
    quoted(s, gt_model_string(m, a->key, NULL));
    integer(s, a->count);
    integer(s, a->rank);
    integer(s, (a->flags & GT_ROW_ASYNC) != 0);
    integer(s, (a->flags & GT_ROW_REMOTE) != 0);
    gt_sink_put(s, ",", 1);
    quoted(s, g->device ? gt_use_devices[g->device] : "");
    us(s, a->total_ns);
    us(s, a->device_ns);
    us(s, a->self_ns);
    us(s, a->self_device_ns);
    gt_sink_put(s, ",", 1);
    quoted(s, by & GT_BY_SHAPE && !a->shapes ? "[]" : gt_model_string(m, a->shapes, NULL));
    gt_sink_put(s, ",", 1);
    quoted(s, gt_model_string(m, a->overload, NULL));
    frames(m, a->stack, s);
    integer(s, a->scope);
    integer(s, a->memory);
    integer(s, a->device_memory);
    integer(s, a->self_memory);
    integer(s, a->self_device_memory);
    ids(g, a->children_first, a->children_count, s);
    if (a->parents_count == 1 && !a->root)
        integer(s, g->links[a->parents_first]);
    else
        gt_sink_put(s, ",", 1);
    gt_sink_put(s, ",", 1);
    quoted(s, gt_device_names[a->device]);
    integer(s, (a->flags & GT_ROW_LEGACY) != 0);
    integer(s, a->flops);
    integer(s, (a->flags & GT_ROW_ANNOTATION) != 0);
    mean(s, a->total_ns, a->count);
    mean(s, a->device_ns, a->count);
    integer(s, a - g->avgs);
    us(s, a->min_ns);
    us(s, a->max_ns);
    us(s, (int64_t)gt_avg_stddev_ns(a));
    integer(s, a->failed);
    integer(s, a->bytes);
    integer(s, a->threads);
    gt_sink_put(s, ",", 1);
    if (a->thread >= 0) {
        gt_text_thread(m, a->thread, thread);
        quoted(s, thread);
    }
    gt_text_sources(sources, sizeof sources, a->sources);
    gt_sink_put(s, ",", 1);
    quoted(s, sources);
    gt_sink_put(s, ",", 1);
    quoted(s, gt_model_string(m, a->host, NULL));
    if (driver_memory) {
        integer(s, a->driver_memory);
        integer(s, a->self_driver_memory);
        integer(s, a->leaked);
    }
    gt_sink_put(s, "\r\n", 2);
}

void gt_out_csv(const struct gt_model *m, const struct gt_write_options *o, struct gt_sink *s)
{
    struct gt_groups g;
    uint32_t *order = NULL;
    gt_group_rows(&g, m, o->group_by);
    gt_sink_text(s, "key,count,node_id,is_async,is_remote,use_device,cpu_time_total,"
                    "device_time_total,self_cpu_time_total,self_device_time_total,input_shapes,"
                    "overload_name,stack,scope,cpu_memory_usage,device_memory_usage,"
                    "self_cpu_memory_usage,self_device_memory_usage,cpu_children,cpu_parent,"
                    "device_type,is_legacy,flops,is_user_annotation,cpu_time,device_time,id,min,"
                    "max,stddev,failed,bytes,threads,thread,source,host");
    int driver_memory = has_driver_memory(&g);
    gt_sink_text(s, driver_memory ? ",driver_memory_usage,self_driver_memory_usage,leaked\r\n"
                                  : "\r\n");
    if (!gt_group_sort(&g, o->sort_by, &order))
        for (size_t i = 0; i < g.count && (o->row_limit < 0 || i < (size_t)o->row_limit); i++)
            row(&g, &g.avgs[order[i]], o->group_by, driver_memory, s);
    free(order);
    gt_groups_fini(&g);
}
