/* Stacks as a tree, as layout.h has it: a node is a frame below its caller's. One trie a slot,
 * written by the thread that owns the slot.
 *
 * The nodes are readers' data: append-only, a chunk is linked and a node complete before `count`
 * covers it (store-release). What only the writer needs lies in memory of its own. */
#ifndef GT_TRIE_H
#define GT_TRIE_H

#include <stddef.h>
#include <stdint.h>
#include "core/layout.h"

struct gt_trie;

/* Where memory comes from: zeroed, never given back; NULL when it is used up. And modules. */
struct gt_trie_memory {
    void *(*shared)(size_t bytes, uint32_t *ref); /* for readers: gt_session_alloc */
    void *(*own)(size_t bytes);                   /* gt_private_alloc */
    uint32_t (*module)(uint64_t pc);              /* gt_modules_of; NULL: no node has one */
    void (*unloaded)(struct gt_trie *);           /* gt_modules_forget, or NULL */
};

struct gt_trie {
    /* the writer's copy: by id, with one empty behind the last. pc 0: not to be found, and
     * forgotten (see gt_trie_forget) */
    struct gt_trie_node *nodes;
    uint32_t *table; /* ids by hash of (parent, pc), 0: empty; at most half full */
    uint32_t mask;
    uint32_t count;       /* nodes so far */
    uint32_t capacity;    /* of `nodes` */
    uint32_t first_chunk; /* ref */
    uint32_t full;        /* 1: no memory for more */
    uint32_t gone;        /* modules that were gone at the last look */
    struct gt_trie_memory memory;
    struct gt_trie_chunk *newest;
};

/* 0 or -ENOMEM. */
int gt_trie_init(struct gt_trie *t, const struct gt_trie_memory *memory);

/* The rest of gt_trie_child: looks it up by hash, or makes it. */
uint32_t gt_trie_child_slowly(struct gt_trie *t, uint32_t parent, uint64_t pc);

/* The child of `parent` for `pc`, made if it is new; GT_TRIE_OTHER when memory is used up. A path
 * that came at once has ids in a row: the first guess. It waits for no load, unlike a look-up. */
static inline uint32_t gt_trie_child(struct gt_trie *t, uint32_t parent, uint64_t pc)
{
    const struct gt_trie_node *n = &t->nodes[parent + 1];
    return n->pc == pc && n->parent == parent ? parent + 1 : gt_trie_child_slowly(t, parent, pc);
}

/* Nodes of modules for which `gone` is not 0 are never found again: what lies in their place now is
 * something else. Readers still see them. */
void gt_trie_forget(struct gt_trie *t, int (*gone)(uint32_t module));

static inline const struct gt_trie_node *gt_trie_node(const struct gt_trie *t, uint32_t id)
{
    return &t->nodes[id];
}

#endif
