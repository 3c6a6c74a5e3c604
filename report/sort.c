/* The words of --sort-by and --group-by. See group.h. */
#include "report/group.h"
#include "report/mem.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* PyTorch's field names; its `cuda_…` and `xpu_…` are taken for `device_…`. */
#define SORTS(X)                                                                                   \
    X(self_cpu_time_total, a->self_ns)                                                             \
    X(cpu_time_total, a->total_ns)                                                                 \
    X(cpu_time, a->count ? (double)a->total_ns / (double)a->count : 0)                             \
    X(self_device_time_total, a->self_device_ns)                                                   \
    X(device_time_total, a->device_ns)                                                             \
    X(device_time, a->count ? (double)a->device_ns / (double)a->count : 0)                         \
    X(cpu_memory_usage, a->memory)                                                                 \
    X(self_cpu_memory_usage, a->self_memory)                                                       \
    X(device_memory_usage, a->device_memory)                                                       \
    X(self_device_memory_usage, a->self_device_memory)                                             \
    X(count, a->count)                                                                             \
    X(flops, a->flops)                                                                             \
    X(bytes, a->bytes)                                                                             \
    X(failed, a->failed)                                                                           \
    X(min, a->min_ns)                                                                              \
    X(max, a->max_ns)                                                                              \
    X(stddev, gt_avg_stddev_ns(a))

#define X(name, value) #name " "
const char gt_sort_names[] = SORTS(X) "name none";
#undef X

struct item {
    double value;
    const char *text;
    uint32_t id;
};

static int compare(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;
    int c = a->value < b->value ? 1 : a->value > b->value ? -1 : 0;
    if (!c && a->text)
        c = strcmp(a->text, b->text);
    return c ? c : (a->id < b->id ? -1 : 1);
}

static int value_of(const struct gt_avg *a, const char *by, double *value)
{
#define X(name, expression)                                                                        \
    if (!strcmp(by, #name)) {                                                                      \
        *value = (double)(expression);                                                             \
        return 0;                                                                                  \
    }
    SORTS(X)
#undef X
    return -EINVAL;
}

/* self_cuda_time_total -> self_device_time_total */
static void plain(const char *by, char *out, size_t room)
{
    static const char *const devices[] = {"cuda_", "xpu_", "privateuse1_"};
    size_t n = strlen(by) < room / 2 ? strlen(by) : room / 2;
    memcpy(out, by, n);
    out[n] = 0;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        size_t len = strlen(devices[i]);
        char *p = strncmp(out, "self_", 5) ? out : out + 5;
        if (!strncmp(p, devices[i], len)) {
            memmove(p + 7, p + len, strlen(p + len) + 1);
            memcpy(p, "device_", 7);
        }
    }
}

int gt_group_sort(const struct gt_groups *g, const char *by, uint32_t **order)
{
    char name[128];
    double value;
    struct gt_avg none = {0};
    int text = by && (!strcmp(by, "name") || !strcmp(by, "key"));
    plain(by && strcmp(by, "none") ? by : "", name, sizeof name);
    if (name[0] && !text && value_of(&none, name, &value))
        return -EINVAL;
    struct item *items = gt_mem_new(g->count, sizeof *items);
    for (size_t i = 0; i < g->count; i++) {
        items[i].id = (uint32_t)i;
        if (text)
            items[i].text = gt_model_string(g->model, g->avgs[i].key, NULL);
        else if (name[0])
            value_of(&g->avgs[i], name, &items[i].value);
    }
    if (g->count)
        qsort(items, g->count, sizeof *items, compare);
    *order = gt_mem_new(g->count, sizeof **order);
    for (size_t i = 0; i < g->count; i++)
        (*order)[i] = items[i].id;
    free(items);
    return 0;
}

const char gt_group_names[] = "shape thread device rank overload stack";
static const unsigned bits[] = {GT_BY_SHAPE, GT_BY_THREAD,   GT_BY_DEVICE,
                                GT_BY_RANK,  GT_BY_OVERLOAD, GT_BY_STACK};

/* The bit of a word; 0: there is none of that name. */
static unsigned bit_of(const char *text, size_t n)
{
    const char *at = gt_group_names;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        size_t len = strcspn(at, " ");
        if (n == len && !strncmp(text, at, n))
            return bits[i];
        at += len + (at[len] != 0);
    }
    /* PyTorch says group_by_input_shape */
    return n == 11 && !strncmp(text, "input_shape", n) ? GT_BY_SHAPE : 0;
}

/* The number behind "stack:", up to the end of the word; 0 if it is none. */
static unsigned frames(const char *text, size_t n)
{
    unsigned v = 0;
    for (size_t i = 0; i < n && v <= GT_BY_MOST_FRAMES; i++)
        v = text[i] >= '0' && text[i] <= '9' ? v * 10 + (unsigned)(text[i] - '0')
                                             : GT_BY_MOST_FRAMES + 1;
    return v <= GT_BY_MOST_FRAMES ? v : 0;
}

int gt_group_parse(const char *text, unsigned *by, const char **bad)
{
    *by = 0;
    while (*text) {
        size_t n = strcspn(text, ","), name = strcspn(text, ",:");
        unsigned bit = bit_of(text, name), count = 0;
        if (name < n && bit == GT_BY_STACK && (count = frames(text + name + 1, n - name - 1)))
            *by = (*by & 0xffff) | count << 16;
        if ((!bit && n) || (name < n && !count)) {
            *bad = text;
            return -EINVAL;
        }
        *by |= bit;
        text += n + (text[n] == ',');
    }
    return 0;
}
