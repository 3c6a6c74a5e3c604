/* CUPTI, NVIDIA's library that tells what devices did. We use it as a tool would, and stand in
 * front of it, since the program may be one too (PyTorch's profiler) and CUPTI takes only one:
 *   cupti.c          finds it, subscribes, notes who launches what, ends
 *   cupti_records.c  its buffers: counts the records, hands the program its own
 *   cupti_share.c    what the program calls of it
 * Any thread. */
#ifndef GT_CUPTI_H
#define GT_CUPTI_H

#include <stdatomic.h>
#include "abi/cupti.h"
#include "core/device.h" /* GT_ORIGIN_OWN */

/* CUDA is ready in this process: begins to record. Loads CUPTI, so not from inside a lock that its
 * constructors may want. Returns 1 if devices' times come from CUPTI, 0 if they do not: then the
 * caller takes pairs of events. Cheap after the first time. */
int gt_cupti_start(void);

/* The process ends: takes what is complete, waits for nothing. */
void gt_cupti_end(void);

/* The driver's function that this thread just called, a copy or a set, had nothing to do, as far as
 * is known: nobody is to wait for a record of it. */
void gt_cupti_moved_nothing(const char *key);

/* ---- between the files ---- */

struct gt_cupti_calls {
#define HOOK(name, parameters)
#define CALL(field, parameters, name) int(*field) parameters;
#include "hooks/cupti.def"
#undef CALL
#undef HOOK
};

/* What the program asked CUPTI for. Written under `lock`, read by callbacks without. */
struct gt_cupti_program {
    _Atomic uint32_t life; /* how often it has ended its use */
    int subscribed;
    _Atomic(gt_cupti_callback *) callback; /* NULL: none is to be called */
    void *user;
    _Atomic uint64_t wants[GT_CUPTI_DOMAINS][GT_CUPTI_CALLBACKS / 64]; /* bits by callback id */
    _Atomic(gt_cupti_request *) request;                               /* NULL: not registered */
    _Atomic(gt_cupti_complete *) complete;
    _Atomic uint8_t kinds[GT_CUPTI_KINDS]; /* 1: enabled */
    _Atomic uint64_t dropped;              /* records that CUPTI lost, and not told yet */
    gt_cupti_clock *clock;                 /* that of all records; NULL: CUPTI's own */
};

#define GT_CUPTI_QUESTIONS 4u /* at most: gt_origin.slot counts them, in a byte each */
struct gt_cupti {
    struct gt_cupti_calls call;
    void *library; /* dlopen's handle of the copy that `call` leads to; NULL: none yet */
    void *subscriber;
    atomic_int recording; /* 1: our kinds are enabled */
    atomic_int shared;    /* 1: we stand between the program and CUPTI */
    /* process that changes who is subscribed, or what is enabled; 0: none */
    _Atomic uint32_t lock;
    _Atomic uint64_t ours[GT_CUPTI_DOMAINS][GT_CUPTI_CALLBACKS / 64]; /* launches, by callback id */
    uint32_t questions[GT_CUPTI_QUESTIONS]; /* callback ids of what we ask the driver ourselves */
    struct gt_cupti_program program;
};
extern struct gt_cupti gt_cupti __attribute__((visibility("hidden")));

/* Makes `library` the copy that is used, subscribed to; another one before it is left. 0 or a
 * CUptiResult. The lock is held. */
int gt_cupti_use(void *library);
/* Enables our kinds, if CUDA is recorded at all. 0 or a CUptiResult. The lock is held. */
int gt_cupti_enable(void);

void gt_cupti_enter(void);
static inline void gt_cupti_leave(void)
{
    atomic_store_explicit(&gt_cupti.lock, 0, memory_order_release);
}

/* The kinds that we enable for ourselves. */
static const uint32_t gt_cupti_kinds[] = {GT_CUPTI_KERNEL, GT_CUPTI_COPY, GT_CUPTI_SET,
                                          GT_CUPTI_PEER_COPY};
#define GT_CUPTI_OURS (sizeof gt_cupti_kinds / sizeof *gt_cupti_kinds)

/* In gt_origin.flags: while it was launched the program had the kind enabled itself. 0 for kinds
 * that are not ours. */
static inline uint32_t gt_cupti_flag(uint32_t kind)
{
    for (unsigned i = 0; i < GT_CUPTI_OURS; i++)
        if (gt_cupti_kinds[i] == kind)
            return (uint32_t)GT_ORIGIN_OWN << i;
    return 0;
}

/* Of kernels: it had them as GT_CUPTI_SERIAL_KERNEL. And from the shift on which of the program's
 * uses of CUPTI that was, each ended by cuptiFinalize. */
#define GT_CUPTI_SERIAL (GT_ORIGIN_OWN << GT_CUPTI_OURS)
#define GT_CUPTI_LIFE_SHIFT 8
/* All of them, now. */
uint32_t gt_cupti_programs_flags(void);

static inline int gt_cupti_is_ours(uint32_t kind)
{
    return gt_cupti_flag(kind) != 0;
}

static inline uint64_t gt_cupti_bit(const _Atomic uint64_t set[][GT_CUPTI_CALLBACKS / 64],
                                    int domain, uint32_t id)
{
    if (domain < 0 || domain >= GT_CUPTI_DOMAINS || id >= GT_CUPTI_CALLBACKS)
        return 0;
    return atomic_load_explicit(&set[domain][id / 64], memory_order_relaxed) >> id % 64 & 1;
}

/* Which of our questions it is; -1: none. */
static inline int gt_cupti_question(int domain, uint32_t id)
{
    for (unsigned i = 0; domain == GT_CUPTI_DRIVER && id && i < GT_CUPTI_QUESTIONS; i++)
        if (gt_cupti.questions[i] == id)
            return (int)i;
    return -1;
}

/* 1 for callbacks that we need, whatever the program wants. */
static inline int gt_cupti_needs(int domain, uint32_t id)
{
    return gt_cupti_bit(gt_cupti.ours, domain, id) || gt_cupti_question(domain, id) >= 0;
}

/* In gt_origin.flags: no launch, but a question of ours. */
#define GT_CUPTI_ASKED (GT_ORIGIN_OWN << (GT_CUPTI_OURS + 1))

/* cupti_records.c */
gt_cupti_request gt_cupti_our_request;
gt_cupti_complete gt_cupti_our_complete;
/* What CUPTI had no buffer for. */
void gt_cupti_count_dropped(void *context, uint32_t stream);
/* Record times are of that clock from now on; NULL: ns. The lock is held. */
void gt_cupti_clock_is(gt_cupti_clock *clock);

#endif
