/* A thread's private side of its slot: pointers and indexes that readers never see. Written only by
 * the thread that owns the slot; handed to the next thread together with the slot. */
#ifndef GT_THREAD_H
#define GT_THREAD_H

#include "core/core.h"
#include "core/record.h"

struct gt_stack;

/* Private half of a node: how to find it and its children again. One cache line. The last three say
 * how to compare a name with it, eight bytes at a time: see gt_hot_same. */
struct gt_link {
    const char *text;     /* the node's key: the text of a gt_str */
    struct gt_node *node; /* its counters, in the file */
    gt_tag tag;           /* with the kind in bits 48..55: 0 for ranges */
    struct gt_link *parent;
    struct gt_link *after; /* the sibling that came after it, last time the order was new */
    struct gt_link *last;  /* the child that was seen last; &gt_link_none if none */
    uint32_t record;       /* GT_RING_RANGE << 28 | index; with the group as it goes into a frame */
    uint32_t group;
    int32_t fits;   /* a name may begin one byte after this offset of a page; < 0: never */
    uint16_t whole; /* bytes to compare in full words, the NUL counted */
    uint8_t shift;  /* drops what lies behind the NUL from the last word */
    uint8_t step;   /* range=NAME of the window names it: the fast ways never meet it */
};
extern struct gt_link gt_link_none; /* equals nothing */
#define GT_LINK_KIND(kind) ((gt_tag)((kind)-GT_KIND_RANGE) << 48)

struct gt_table {
    struct gt_table_entry {
        uint32_t hash;
        uint32_t count; /* of a fold entry: distinct names or shapes seen */
        struct gt_link *link;
    } * entries;
    uint32_t mask, used;
};

/* An open range, as a fork's child needs it: fork.c. */
struct gt_open {
    struct gt_link *link;
    uint64_t token;
    uint32_t group, flags; /* as in its frame */
};

struct gt_thread {
    /* hot */
    struct gt_link *cur;    /* node of the topmost frame, the root if there is none */
    struct gt_frame *top;   /* topmost frame; one before the first frame if there is none */
    struct gt_frame *limit; /* last frame of the block that top is in */
    struct gt_frame *base;  /* first frame of that block; NULL in the first block */
    struct gt_slot *slot;
    struct gt_record *ring_next, *ring_end; /* a dummy ring where there is no memory for one */
    uint32_t door; /* the session's generation, or GT_DOOR_SHUT during a call of ours */
    /* cold */
    uint32_t generation; /* of the session it belongs to */
    uint32_t pass;       /* what its door is when it is outside: see gt_window_pass */
    int in_step;         /* a range of the window range=NAME is open */
    struct gt_link *root, *other;
    uint32_t left_out;           /* links without a node: names that are left out */
    uint32_t deep;               /* pushes beyond GT_MAX_DEPTH that are open */
    uint32_t ops;                /* open frames of operators that count */
    struct gt_node_chunk *chunk; /* the newest */
    struct gt_table children;    /* (parent, tag, key, shapes) -> link */
    struct gt_table folds;       /* (parent, template) -> count, link of the folded node */
    char *pool, *pool_end;       /* private memory for links */
    gt_ref free_async;           /* entries of its start/end ranges that it may use again */
    struct gt_stack *stack;      /* unwind.h; NULL until the first capture */
    void *python;                /* likewise, see stacks.h */
    int no_stack;                /* there was no memory for one */
    struct gt_import *imports;   /* likewise, op_forward.c */
    struct gt_thread *next;      /* all threads of this session */
    void *fork_copy;             /* of the session, during a fork from inside a call: fork.c */
    struct gt_open
        *fork_open; /* its open ranges, during a fork and in the child until it records */
    uint32_t fork_opens;
    struct gt_record *ring;
    struct gt_record dummy[64];
    gt_ref block_refs[GT_MAX_DEPTH / GT_FRAMES_PER_BLOCK + 2];
};

/* This thread's: never NULL, &gt_nobody before it has a slot. Eight bytes of the scarce static TLS.
 */
extern __thread struct gt_thread *gt_self GT_HIDDEN __attribute__((tls_model("initial-exec")));
extern struct gt_thread gt_nobody GT_HIDDEN;

/* In gt_frame.group: a frame that closes without counting, one that has a token. Such a group never
 * equals a pop's, so the hot path needs no checks of its own. */
#define GT_GROUP_SILENT 0x80000000u
#define GT_GROUP_TOKEN 0x40000000u
#define GT_GROUP_STEP 0x20000000u /* of the window range=NAME */
#define GT_GROUP_MASK 0x1fffffffu
_Static_assert(GT_SOURCES << 24 <= GT_GROUP_STEP, "a source reaches into the flags");
/* The group of every operator's frame that counts. */
#define GT_GROUP_OP ((uint32_t)GT_SOURCE_TORCH << 24 | GT_GROUP_TOKEN)
#define GT_GROUP_IS_OP(group) (((group) & ~GT_GROUP_STEP) == GT_GROUP_OP)

/* A call's stack: ids in the slot's trie, see stacks.h and enum gt_trie_root. */
struct gt_stack_ids {
    uint32_t native, python; /* 0: none */
};

/* ---- tree.c ---- */

/* Finds or makes the child of `parent`; t->other when memory has run out. NULL: the name is left
 * out (INCLUDE, EXCLUDE), which has been counted. */
struct gt_link *gt_tree_child(struct gt_thread *t, struct gt_link *parent, gt_tag tag,
                              const struct gt_attr *a);
/* Likewise, called from a certain place. Too many of these share a node of "other stacks". */
struct gt_link *gt_tree_child_at(struct gt_thread *t, struct gt_link *parent, gt_tag tag,
                                 const struct gt_attr *a, struct gt_stack_ids stack);
/* 1 if INCLUDE and EXCLUDE leave this name of n bytes out. */
int gt_tree_left_out(gt_tag tag, const char *name, size_t n);
/* Prepares the root and "(other)". Returns 0 or -ENOMEM. */
int gt_tree_init(struct gt_thread *t);
/* Writes the name s[0..n) with every number as '*' to out[GT_TEMPLATE_MAX], not terminated. Returns
 * its length, 0 if there is no number in it or it is too long to fold. Pure. */
#define GT_TEMPLATE_MAX 256u /* longer names never fold by template: memory bounds them */
size_t gt_tree_template(const char *s, size_t n, char *out);
/* Adds a payload or a counter's sample; dropped when memory has run out. */
void gt_tree_value(struct gt_node *n, double value);

/* Memory and duplicates of a node, made at its first use; NULL when memory has run out. */
struct gt_op_stats *gt_tree_op(struct gt_node *n);

/* ---- op.c: what frames.c asks where an operator is opened or closed ---- */

/* A frame is about to be opened above frame `below`: a held child there is no duplicate. */
void gt_op_has_kid(struct gt_thread *t, struct gt_frame *below);
/* The operator's frame f is about to be closed: its held child is a duplicate. */
void gt_op_take_held(struct gt_thread *t, struct gt_frame *f);
/* Adds what the closed call had besides its time: to its node, and to `parent`, the operator that
 * it was in (NULL: none). */
void gt_op_memory_out(struct gt_link *link, const struct gt_frame *f, struct gt_frame *parent);
/* 1 if the closed frame may be a duplicate of the operator right below it. */
int gt_op_may_hold(const struct gt_frame *f, const struct gt_frame *parent);
void gt_op_hold(struct gt_frame *parent, const struct gt_frame *f, uint64_t ticks,
                uint64_t self_ticks);

/* ---- slot.c ---- */

/* The way into recording when the fast way is shut: opens the session, gives the thread a slot,
 * follows a fork. Returns the thread with its door shut, or NULL: nothing is to be recorded.
 * errno is preserved. */
struct gt_thread *gt_enter_slow(void);

/* ---- frames.c: everything about open ranges that is not on the hot path ---- */

/* Frame number i, 0 <= i < depth; its block exists. */
struct gt_frame *gt_frame_at(const struct gt_thread *t, uint32_t i);
/* Opens the frame above t->top for `link`; returns its level, -1 when there is no room (counted).
 */
int gt_frame_push(struct gt_thread *t, struct gt_link *link, uint32_t group, uint64_t token,
                  int silent);
/* Closes the topmost frame of (group, token), wherever it lies. Returns its level or -1. */
int gt_frame_pop(struct gt_thread *t, uint32_t group, uint64_t token, uint64_t now);
/* The node that the topmost frame of `group` will count for; NULL if there is none, or it is
 * silent, or the call it belongs to was too deep. */
struct gt_node *gt_frame_node(const struct gt_thread *t, uint32_t group);
/* 1 if a frame of (group, token) is open. */
int gt_frame_has(const struct gt_thread *t, uint32_t group, uint64_t token);
/* Takes the operator's frame number i out as a call that was not nested: an async one of the same
 * name that ended at `now`. Its children go on where they are. */
void gt_frame_close_async(struct gt_thread *t, uint32_t i, uint64_t now);
/* Closes every open range, top first, because its thread ends: counted, and told as left open. */
void gt_frame_close_all(struct gt_thread *t);

/* Counts every open range up to `tick`, when the window was shut, and leaves it open silently. */
void gt_frame_cut(struct gt_thread *t, uint64_t tick);

/* Counts one call that is no frame: a mark, a sample, or the start/end range `ended` (else NULL),
 * which is free afterwards. Self time 0. */
void gt_count_alone(struct gt_thread *t, struct gt_link *link, uint64_t duration,
                    struct gt_async *ended);
/* Counts the held child of an operator's frame, and lets go of it. */
void gt_count_held(struct gt_thread *t, struct gt_held *held);
/* The nearest operator that counts below frame number `depth`, silent frames left out; *right_below
 * says that nothing that counts lies in between. NULL: none. */
struct gt_frame *gt_frame_op(const struct gt_thread *t, uint32_t depth, int *right_below);
/* The ring is at its end: starts over, and takes the chance to refresh the slot's clock pair. */
void gt_ring_wrap(struct gt_thread *t);
/* Appends to the ring; any duration. */
void gt_ring_put(struct gt_thread *t, enum gt_ring_kind kind, uint32_t node, uint64_t t0,
                 uint64_t duration);

/* By enum gt_stack_want: what GPUTALLY_WITH_STACK makes of it (stacks.h), 0: no stack. */
extern _Atomic uint8_t gt_stack_how[4] GT_HIDDEN;
static inline uint32_t gt_stack_asked(enum gt_stack_want want)
{
    return atomic_load_explicit(&gt_stack_how[want & 3], memory_order_relaxed);
}

/* ---- the door ---- */

#define GT_COLD __attribute__((noinline, cold))

#define GT_DOOR_SHUT UINT32_MAX /* no generation, and not the 0 of a pause */

/* Takes the thread's slot for one call; NULL: go through gt_enter_slow. During the call the door is
 * shut: whatever comes in between on this thread (a signal handler) stays outside. */
static inline __attribute__((always_inline)) struct gt_thread *
gt_enter_if(const _Atomic uint32_t *go)
{
    struct gt_thread *t = gt_self;
    /* Shut first, then look: a fork in a handler before the store is seen by the look, one after it
     * by fork.c. */
    uint32_t door = __atomic_load_n(&t->door, __ATOMIC_RELAXED);
    __atomic_store_n(&t->door, GT_DOOR_SHUT, __ATOMIC_RELAXED);
    atomic_signal_fence(memory_order_seq_cst);
    if (unlikely(door != atomic_load_explicit(go, memory_order_relaxed))) {
        __atomic_store_n(&t->door, door, __ATOMIC_RELAXED);
        return NULL;
    }
    if (!t) /* saves the callers their look */
        __builtin_unreachable();
    return t;
}

static inline struct gt_thread *gt_enter(void)
{
    return gt_enter_if(&gt_fork.go);
}

static inline void gt_leave(struct gt_thread *t)
{
    atomic_signal_fence(memory_order_seq_cst);
    __atomic_store_n(&t->door, t->pass, __ATOMIC_RELAXED);
}

extern _Atomic int gt_window_open GT_HIDDEN; /* window.h */

/* Paused by the program, or outside the window. */
static inline int gt_is_paused(void)
{
    return atomic_load_explicit(&gt_paused, memory_order_relaxed) > 0 ||
           atomic_load_explicit(&gt_window_open, memory_order_relaxed) <= 0;
}

#endif
