/* The stacks of a session -> stacks of the model. Used by load.c and load_slot.c; single thread.
 * Believes nothing: a parent must be smaller than its child, so every walk ends. */
#ifndef GT_LOAD_STACKS_H
#define GT_LOAD_STACKS_H

#include "report/load_slot.h"

/* A slot's trie. Zeroed before use. */
struct gt_load_trie {
    struct gt_trie_node *nodes;
    uint32_t *frames; /* of each node: 1 + the model's frame, 0: not asked for yet */
    uint32_t count;
    struct gt_load_pair { /* stacks that were asked for, by hash; native and python 0: empty */
        uint32_t native, python, stack;
    } * pairs;
    size_t pair_count, pair_size;
    uint32_t *lists[2]; /* scratch: Python and native frames of one stack */
    size_t rooms[2];
};

/* Before the slots: the files that frames lie in. 0 or damaged. */
int gt_load_modules(struct gt_loader *l);
/* Then the addresses of a slot's frames, of all slots before the first is loaded: names are looked
 * for all at once. 0 or damaged. */
int gt_load_addresses(struct gt_loader *l, const struct gt_slot *s);
void gt_load_modules_free(struct gt_loader *l);

/* Copies the trie; freed by gt_load_trie_free, also after an error. 0 or damaged. */
int gt_load_trie(struct gt_loader *l, const struct gt_slot *s, struct gt_load_trie *t);
void gt_load_trie_free(struct gt_load_trie *t);
/* The stack of a node in *stack (0: none). Where all stacks together are too much, the node's calls
 * are lost as stack_missing. 0 or damaged. */
int gt_load_stack(struct gt_loader *l, struct gt_load_trie *t, const struct gt_node *n,
                  uint32_t *stack);

#endif
