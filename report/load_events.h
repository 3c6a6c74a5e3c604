/* What load_events.c reads and event_tree.c turns into rows. */
#ifndef GT_LOAD_EVENTS_H
#define GT_LOAD_EVENTS_H

#include "report/model.h"

/* Names and meanings as in PyTorch's FunctionEvent; memory, flops, kernels are its own or what was
 * measured around it, as there. */
struct gt_event {
    uint32_t stack;
    gt_text name, shapes, overload;         /* name: as it is shown, ProfilerStep* */
    int64_t start_ns, end_ns, thread, node; /* node: rank, -1 none */
    int64_t kernel_ns, flops, memory, device_memory;
    uint32_t flags; /* enum gt_row_flags */
    uint8_t scope, device;
    /* set by gt_events_build */
    uint8_t gone;         /* a duplicate: its parent stands for it */
    uint32_t place;       /* index in the model's threads */
    int32_t parent, kids; /* index in the list, -1: none; how many it has below */
    int32_t latest, row;  /* the latest of these; index in the model, -1: none yet */
    int64_t self_ns, device_ns, self_device_ns, self_memory, self_device_memory;
};

struct gt_events {
    struct gt_event *events;
    size_t count, room;
    uint8_t device; /* enum gt_device: use_device */
    uint8_t profile_memory;
};

/* Appends processes (one a node), threads and rows. `text`: the file, which tells one list from
 * another. */
void gt_events_build(struct gt_model *m, struct gt_events *list, const char *text, size_t len);

#endif
