/* Recording: what every source of events calls. Runs on the program's threads.
 *
 * A source first makes a tag (who speaks: source, domain, category), then pushes and pops. All
 * calls are safe from any thread, from fork children, before our constructor and after our
 * destructor. None calls malloc, takes a lock, or touches errno once the thread has its slot; a
 * call from inside one of ours (a signal handler) is counted as lost and does nothing. */
#ifndef GT_RECORD_H
#define GT_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include "layout.h"

/* source << 56 | domain id << 32 | category */
typedef uint64_t gt_tag;
#define GT_TAG(source, domain_id, category)                                                        \
    ((uint64_t)(source) << 56 | (uint64_t)(domain_id) << 32 | (uint32_t)(category))
/* The part of a tag that a pop must match: source and domain. */
#define GT_TAG_GROUP(tag) ((uint32_t)((tag) >> 32))

/* Id of the domain `name` of any source, 1 or more; the same text gives the same id. 0 (the default
 * domain) for NULL, "" or when the table is full (some 60,000 names). Ids stay valid over fork. */
uint32_t gt_domain(const char *name);
/* Text of a domain id, "" for 0 and for unknown ids. Lives as long as the process. */
const char *gt_domain_name(uint32_t id);

/* Keeps `text` for the life of the process and returns the kept copy; equal texts share one. When
 * memory for it has run out returns "(other)". NULL gives NULL. */
const char *gt_keep(const char *text);

/* Which stack a call has, as far as GPUTALLY_WITH_STACK asks for stacks. */
enum gt_stack_want {
    GT_STACK_NONE = 0,
    GT_STACK_RANGE,  /* an annotation's: Python and native frames, if `ranges` are asked for */
    GT_STACK_BOTH,   /* of a call of a device's API: Python and native frames */
    GT_STACK_EITHER, /* an operator's: Python frames, native ones where there are none */
};

/* Everything a call may carry besides its name. Zero means "not given". */
struct gt_attr {
    const char *name;     /* borrowed until return; NULL is recorded as "(null)" */
    const char *shapes;   /* "[[2, 3], []]", used when RECORD_SHAPES is on */
    const char *overload; /* operator overload */
    uint64_t token;       /* object identity: a pop must carry the same */
    uint64_t bytes, flops;
    uint8_t stack;     /* enum gt_stack_want */
    uint8_t scope;     /* enum gt_scope */
    uint8_t has_value; /* `value` counts */
    double value;      /* payload or counter sample: min, max, sum are kept */
};

/* What GPUTALLY_INCLUDE and _EXCLUDE leave out is counted as such and nowhere else: a range is as
 * if it were not there (its pop still matches), a mark or sample is dropped, gt_start returns 0. */

/* Opens a range; gt_push one of scope USER. Returns its level: open ranges of the same source and
 * domain below it (0 is the outermost); -1 when it could not be kept. */
int gt_push(gt_tag tag, const char *name);
int gt_push_attr(gt_tag tag, const struct gt_attr *a);
/* Closes the topmost range of that source and domain (and token). Returns its level, -1 if there is
 * none (counted as unbalanced). */
int gt_pop(uint32_t group);
int gt_pop_token(uint32_t group, uint64_t token);

/* A call of an API that we stand in front of: a range of scope FUNCTION that says at its end
 * whether it failed, and how many bytes it allocated, copied or set. gt_push_call returns how many
 * calls of the same source lie right below: those tell nothing of their own, so that bytes count
 * once. */
int gt_push_call(gt_tag tag, const char *name);
int gt_pop_call(uint32_t group, uint64_t bytes, int failed);
/* Likewise of one that computed: a call opened by gt_push_attr with the stack GT_STACK_BOTH. */
int gt_pop_product(uint32_t group, uint64_t flops, int failed);
/* 1 while a call of that group is open on this thread, counted or not. A signal handler may ask. */
int gt_call_open(uint32_t group);

/* Opens a range that may end on any thread. Returns its id, 0 if it could not be kept. */
uint64_t gt_start(gt_tag tag, const struct gt_attr *a);
/* Returns 0, or -1 for an id that is not open (counted as unbalanced). */
int gt_end(uint64_t id);
/* The same for a range that turned out to have no end of its own: it counts, with no time. */
int gt_end_instant(uint64_t id);
/* A start/end range that is over already: from `t0` to `t1`, both of gt_now. */
void gt_span(gt_tag tag, const struct gt_attr *a, uint64_t t0, uint64_t t1);
/* This moment, in ticks of the clock that ranges are measured with; 0 where nothing is recorded. */
uint64_t gt_now(void);

void gt_mark(gt_tag tag, const struct gt_attr *a);
/* a->value is a sample of the counter a->name. */
void gt_counter(gt_tag tag, const struct gt_attr *a);

/* Recording stops for the whole process until as many resumes have come; ranges that are open are
 * still closed and counted in full, ranges opened meanwhile never count. Nests. */
void gt_pause(void);
void gt_resume(void);

/* The program named a category of a domain, or a thread (tid 0: the calling one). */
void gt_name_category(uint32_t source, uint32_t domain_id, uint32_t category, const char *name);
void gt_name_thread(uint32_t source, uint32_t tid, const char *name);

/* ---- PyTorch's operators: op.c. Their frames are found by `token`, and what PyTorch calls
 * duplicates is taken out (see struct gt_frame). Same rules as above. ---- */

struct gt_op {
    const char *name;     /* borrowed until return */
    const char *shapes;   /* "[[2, 3], []]"; NULL: not asked for */
    const char *overload; /* NULL or "": none */
    uint64_t token;       /* an address; gt_op_pop must carry the same */
    uint64_t flops;
    /* Which node of the autograd graph it makes (scope FUNCTION) or is of (BACKWARD): its sequence
     * number, which counts up in each thread, and PyTorch's number of the thread that made it. The
     * operators of a node have the stack of the one that made it. 0, 0 or -1: not told. */
    uint64_t thread;
    int64_t sequence;
    uint8_t scope; /* RecordScope id */
};
/* Opens the operator. 0, or -1 when it could not be kept (then its pop is no error either). */
int gt_op_push(const struct gt_op *op);
void gt_op_pop(uint64_t token);

/* PyTorch allocated (> 0) or freed (< 0) `bytes`: of the innermost open range of this thread, and
 * of "[memory]" below it where no operator is open. */
void gt_op_memory(int64_t bytes, enum gt_memory_kind kind);

/* 1 if an operator was opened that is said to make this node, and is still remembered. */
int gt_op_made(uint64_t thread, int64_t sequence);

/* 1 while an operator is open on this thread. */
int gt_op_open(void);
/* Opens a range that only keeps its pop in balance, because the same call is recorded by a better
 * source: it never counts, its time is the range's around it. Counted as a duplicate. */
int gt_push_duplicate(gt_tag tag);

/* 1 if recording of `source` was asked for (GPUTALLY_SOURCES, _DISABLE, _EXE). */
int gt_source_on(uint32_t source);

#endif
