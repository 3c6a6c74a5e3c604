/* Key averages: the rows of a model added up by key, with the meaning of every field of PyTorch's
 * FunctionEventAvg. Only reads the model. Used by the writers; single thread. */
#ifndef GT_GROUP_H
#define GT_GROUP_H

#include "report/model.h"

/* Rows with one key are always kept apart by device type, is_legacy, is_user_annotation and, but
 * for PyTorch's own, is_async; these add to it. */
enum gt_by {
    GT_BY_SHAPE = 1,
    GT_BY_THREAD = 2,
    GT_BY_DEVICE = 4,
    GT_BY_RANK = 8,
    GT_BY_OVERLOAD = 16,
    GT_BY_NOTHING = 32, /* one average of everything, "Total": PyTorch's total_average() */
    GT_BY_STACK = 64    /* by the innermost GT_BY_FRAMES frames */
};
#define GT_BY_FRAMES(by) ((by) >> 16) /* 0: all */
#define GT_BY_MOST_FRAMES 65535u

/* Times in ns. For a CPU row device_ns is what it launched; a row of another device has only that.
 */
struct gt_avg {
    gt_text key, shapes, overload, host; /* "" where not grouped by, or none; host: first row's */
    struct gt_list stack;                /* as of gt_stacks_shown, where grouped by it */
    uint32_t sources;                    /* bit 1 << enum gt_source */
    uint8_t scope, device;
    uint32_t flags;  /* enum gt_row_flags; ASYNC and REMOTE of the first row */
    uint32_t split;  /* those that keep it apart */
    int64_t rank;    /* -1: none, or several */
    int64_t thread;  /* grouped by it: index in threads, else -1 */
    int64_t threads; /* thread slots it was seen on */
    int64_t count, failed;
    int64_t self_ns, total_ns, min_ns, max_ns;
    double sumsq_ns2;
    int64_t self_device_ns, device_ns;
    int64_t bytes, flops;
    int64_t memory, self_memory, device_memory, self_device_memory;
    int64_t driver_memory, self_driver_memory, leaked;
    struct gt_values values;
    /* in gt_groups.links: distinct ids, ascending */
    uint32_t children_first, children_count, parents_first, parents_count;
    int root; /* it was also seen with nothing above it */
};

struct gt_groups {
    const struct gt_model *model; /* borrowed */
    struct gt_avg *avgs;          /* in order of first appearance; the position is the id */
    size_t count, room;
    uint32_t *links;
    size_t link_count;
    uint8_t device; /* the other device in use, GT_CPU if none */
};

/* `by`: enum gt_by. The caller frees with gt_groups_fini. */
void gt_group_rows(struct gt_groups *g, const struct gt_model *m, unsigned by);
void gt_groups_fini(struct gt_groups *g);

/* Marks and counters by key: the same, times 0, no links. `kind`: GT_KIND_MARK or GT_KIND_COUNTER.
 */
void gt_group_events(struct gt_groups *g, const struct gt_model *m, int kind);

double gt_avg_stddev_ns(const struct gt_avg *a);

/* Ids in the order asked for (largest first, equal ones as they came; `name` is ascending); "none",
 * "" or NULL: as they came. Returns 0 or -EINVAL. The caller frees *order. */
int gt_group_sort(const struct gt_groups *g, const char *by, uint32_t **order);
/* The names it knows, separated by spaces. */
extern const char gt_sort_names[];

/* Parses "shape,stack:5" into enum gt_by. Returns 0, or -EINVAL with *bad at the unknown word. */
int gt_group_parse(const char *text, unsigned *by, const char **bad);
extern const char gt_group_names[];

#endif
