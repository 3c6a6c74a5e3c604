/* What devices did on behalf of a call: kernels, copies, sets. The sources of a device (CUDA, Level
 * Zero) say at a launch which call it belongs to, and later, from whatever thread, what the device
 * made of it.
 *
 * All functions: any thread, no malloc, errno kept. gt_device_count waits for another thread that
 * counts; so not from signal handlers. Times are ns. */
#ifndef GT_DEVICE_H
#define GT_DEVICE_H

#include <stdint.h>
#include "core/layout.h"

enum gt_origin_flags {
    GT_ORIGIN_SILENT = 1, /* launched while nothing was recorded: its activity is left out */
    GT_ORIGIN_SEEN = 2,   /* its activity was looked for */
    GT_ORIGIN_OWN = 4,    /* this and higher ones: the source's own */
};

/* Who launched something: the innermost range that was open. */
struct gt_origin {
    uint32_t generation; /* of the session; 0: nobody's */
    uint32_t slot, node; /* as in struct gt_activity */
    uint32_t flags;      /* enum gt_origin_flags */
    uint64_t ticks;      /* when, of gt_now */
};

/* The calling thread's place now. Outside of all ranges it is the root. */
struct gt_origin gt_origin_here(void);

/* Remembers, or finds, who launched what the device calls number `id` (not 0) of `source`. The
 * latest 65,536 are kept; one that is no longer there is nobody's. */
void gt_origin_put(enum gt_source source, uint32_t id, const struct gt_origin *o);
struct gt_origin gt_origin_get(enum gt_source source, uint32_t id);
/* Likewise, for one whose activity will be counted: if *waits, gt_device_waits(-1) is to follow
 * that. */
struct gt_origin gt_origin_take(enum gt_source source, uint32_t id, int *waits);
/* Its flags, without having looked for it; -1: it is not known. */
int gt_origin_flags(enum gt_source source, uint32_t id);

/* One more (1) or less (-1) launch is waiting for its activity, of those that no id is put for or
 * that were taken. */
void gt_device_waits(int change);

struct gt_device_activity {
    const char *name; /* borrowed */
    enum gt_source source;
    enum gt_activity_kind kind;
    enum gt_device_type type;
    uint8_t flags; /* enum gt_activity_flags */
    uint32_t device;
    struct gt_launch launch; /* of a kernel, else 0 */
    uint64_t bytes;
    uint64_t start_ns, end_ns; /* of any clock */
    int64_t delay_ns;          /* from the launch to the start; < 0: not known */
};
void gt_device_count(const struct gt_device_activity *a, const struct gt_origin *o);

/* The device's own tool says that it lost the records of `n` activities. */
void gt_device_lost(uint64_t n);

#endif
