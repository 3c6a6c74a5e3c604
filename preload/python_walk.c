/* The walk over the Python frames of a thread: python.h. Called by python.c with the slot held.
 *
 * Usually the stack is what it was. The last one is kept: of each frame its place, its code object,
 * its instruction, and a stamp of the code object. All of them are compared, since an outer frame
 * may have gone on and come back to where it was: equal from the innermost to the outermost frame
 * means the same stack; equal from the outermost one inwards means the same beginning. A place may
 * hold another frame than the last time, and an address another code object: with equal code, stamp
 * and instruction it is the same line of the same text all the same. */
#include "preload/python.h"
#include "preload/python_rows.h"
#include "preload/python_stamp.h"

enum { DEPTH = 512, KNOWN = 256 };

/* What a frame is besides a line of Python. */
enum {
    KIND_NONE = 1,  /* a call from C, or a frame that is still being made: not in stacks */
    KIND_ENTRY = 2, /* outermost of its interpreter's loop */
};

struct kept {
    const char *frame, *code;
    uint64_t key;
    uint64_t stamp; /* 0: of a shim, whose code is no code object */
    uint32_t id;    /* of the innermost frame that is in the trie, from here outwards */
    uint32_t kind;
};

struct state {
    uint32_t count; /* frames kept; 0: nothing to go by */
    uint32_t more;  /* 1: there were more, further out */
    uint32_t which; /* the list that is kept; the other one is free */
    uint32_t reserved;
    struct kept lists[2][DEPTH]; /* innermost first */
    struct gt_python_known known[KNOWN][2];
    char text[GT_PYTHON_TEXT];
};
_Static_assert(sizeof(struct state) <= GT_PYTHON_STATE_BYTES, "fits what core gives");

/* 1: the stack is the last one. */
static inline __attribute__((always_inline)) int same(const struct gt_python_layout *l,
                                                      const struct state *s, const char *frame)
{
    const struct kept *k = s->lists[s->which], *end = k + s->count;

    for (; k < end; k++) {
        if (frame != k->frame)
            return 0;
        const char *code = gt_python_frame_code(l, frame);
        if (code != k->code || gt_python_frame_key(l, frame) != k->key)
            return 0;
        if (k->stamp && gt_python_stamp(l, code) != k->stamp)
            return 0;
        frame = gt_python_pointer(frame, l->previous);
    }
    return !frame == !s->more;
}

static int unchanged(const struct gt_python_layout *l, const struct state *s, const char *frame)
{
    switch (l->row) {
#define ROW(minor)                                                                                 \
    case minor:                                                                                    \
        return same(&gt_python_rows[minor - GT_PYTHON_FIRST], s, frame)
        ROW(9);
        ROW(10);
        ROW(11);
        ROW(12);
        ROW(13);
        ROW(14);
#undef ROW
    default:
        return same(l, s, frame);
    }
}

/* A frame before its first instruction that may be seen: Python leaves it out as well. A
 * generator's may be there already when it has not begun. */
static int incomplete(const struct gt_python_layout *l, const struct kept *k)
{
    uint64_t start = (uint64_t)(uintptr_t)(k->code + l->bytecode);

    return l->bytecode && k->frame[l->owner] != GT_PYTHON_OWNER_GENERATOR &&
           (int64_t)((k->key & ~GT_PYTHON_KEY_ENTRY) - start) <
               (int64_t)gt_python_u32(k->code, l->traceable) * 2;
}

static int is_shim(const struct gt_python_layout *l, const char *frame)
{
    return l->owner && frame[l->owner] >= GT_PYTHON_OWNER_C;
}

/* 3.12 and later: below the outermost frame of each loop lies a shim. */
static int is_entry(const struct gt_python_layout *l, const struct kept *k, const char *previous)
{
    if (!l->owner)
        return 1; /* each frame has a loop of its own */
    if (l->entry_mask)
        return (k->key & GT_PYTHON_KEY_ENTRY) != 0;
    return !previous || is_shim(l, previous);
}

/* Fills `list` from the innermost frame outwards. Returns how many, -1 if one has no code. */
static int collect(const struct gt_python *p, struct kept *list, const char *frame, uint32_t *more)
{
    const struct gt_python_layout *l = &p->layout;
    int n = 0;

    for (; frame && n < DEPTH; n++) {
        struct kept *k = &list[n];
        const char *previous = gt_python_pointer(frame, l->previous);

        *k = (struct kept){.frame = frame,
                           .code = gt_python_frame_code(l, frame),
                           .key = gt_python_frame_key(l, frame),
                           .kind = KIND_NONE};
        if (!is_shim(l, frame)) {
            if (!k->code || gt_python_pointer(k->code, GT_PYTHON_TYPE) != p->code_type)
                return -1;
            k->stamp = gt_python_stamp(l, k->code);
            if (!incomplete(l, k))
                k->kind = is_entry(l, k, previous) ? KIND_ENTRY : 0;
        }
        frame = previous;
    }
    *more = frame != NULL;
    return n;
}

/* How many frames, from the outermost one inwards, are those of the last stack. Takes their ids. */
static int take_over(const struct state *s, struct kept *list, int n)
{
    const struct kept *old = s->lists[s->which] + s->count;
    struct kept *k = list + n;
    int i = 0;

    for (; i < n && i < (int)s->count; i++) {
        k--, old--;
        if (k->frame != old->frame || k->code != old->code || k->key != old->key ||
            k->stamp != old->stamp)
            break;
        k->id = old->id;
    }
    return i;
}

static int knows(const struct gt_python_known *known, const struct kept *k)
{
    return known->code == k->code && known->key == k->key && known->stamp == k->stamp;
}

/* Two places each, the one that was used last first: a stack of 30 frames would rarely fit without
 * two of them in one place. */
static uint64_t pc_of(const struct gt_python *p, struct state *s, const struct kept *k)
{
    uint64_t both = (uint64_t)(uintptr_t)k->code + k->key * 5;
    struct gt_python_known *known = s->known[(both * UINT64_C(0x9e3779b97f4a7c15) >> 40) % KNOWN];

    if (!knows(&known[0], k)) {
        struct gt_python_known first = known[0];

        if (knows(&known[1], k))
            known[0] = known[1];
        else
            known[0] = (struct gt_python_known){k->code, k->key, k->stamp,
                                                gt_python_pc(p, k->code, k->key, s->text)};
        known[1] = first;
    }
    return known->pc | (k->kind & KIND_ENTRY ? GT_TRIE_ENTRY : 0);
}

static uint32_t enter(const struct gt_python *p, struct state *s, struct gt_trie *trie,
                      struct kept *list, int n)
{
    int known = s->more ? 0 : take_over(s, list, n);
    uint32_t id = known ? list[n - known].id : s->more ? GT_TRIE_TRUNCATED : GT_TRIE_ROOT;

    for (int i = n - known - 1; i >= 0; i--) {
        struct kept *k = &list[i];

        if (!(k->kind & KIND_NONE)) {
            uint64_t pc = pc_of(p, s, k);
            id = pc & GT_TRIE_PYTHON ? gt_trie_child(trie, id, pc) : GT_TRIE_OTHER;
        }
        k->id = id;
    }
    return id;
}

uint32_t gt_python_frames(const struct gt_python *p, void *state, struct gt_trie *trie,
                          const char *frame, int *truncated)
{
    struct state *s = state;
    struct kept *list = s->lists[!s->which];
    uint32_t id, more;
    int n;

    if (s->count && unchanged(&p->layout, s, frame)) {
        if (unlikely(s->more))
            *truncated = 1;
        return s->lists[s->which]->id;
    }
    n = collect(p, list, frame, &more);
    if (n < 0) {
        s->count = 0;
        return GT_PYTHON_BROKEN;
    }
    if (more || s->more) /* the outermost one here is none of a whole stack */
        s->count = 0;
    s->more = more;
    if (more)
        *truncated = 1;
    id = enter(p, s, trie, list, n);
    s->which = !s->which;
    s->count = (uint32_t)n;
    return id;
}
