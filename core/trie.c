/* The trie of stacks: trie.h. Called by unwind.c with the slot held. */
#include "core/trie.h"

#include <errno.h>
#include <string.h>

/* Chunks, the copy and the table double; MAX_NODES is 32 MiB for readers. */
enum { FIRST_NODES = 64, MAX_NODES = 1 << 21 };

static uint32_t place(const struct gt_trie *t, uint32_t parent, uint64_t pc)
{
    uint64_t both = pc ^ parent * UINT64_C(0xff51afd7ed558ccd);
    return (uint32_t)(both * UINT64_C(0x9e3779b97f4a7c15) >> 40) & t->mask;
}

static void enter(struct gt_trie *t, uint32_t id)
{
    uint32_t i = place(t, t->nodes[id].parent, t->nodes[id].pc);
    /* over one that is never found again: else those of a module that is loaded again and again to
     * the same place would all be in the way */
    while (t->table[i] && t->nodes[t->table[i]].pc)
        i = (i + 1) & t->mask;
    t->table[i] = id;
}

/* Doubles everything. The old copy and table are lost: as much again as there is, at most. */
static int grow(struct gt_trie *t)
{
    uint32_t old = t->capacity, capacity = old ? old * 2 : FIRST_NODES, ref = 0;
    uint32_t more = capacity - old;

    if (capacity > MAX_NODES)
        return -ENOMEM;
    struct gt_trie_node *nodes = t->memory.own((capacity + 1) * sizeof *nodes);
    uint32_t *table = nodes ? t->memory.own(capacity * 2 * sizeof *table) : NULL;
    struct gt_trie_chunk *c =
        table ? t->memory.shared(sizeof *c + more * sizeof *c->nodes, &ref) : NULL;
    if (!c)
        return -ENOMEM;
    if (old)
        memcpy(nodes, t->nodes, old * sizeof *nodes);
    t->nodes = nodes;
    t->table = table;
    t->mask = capacity * 2 - 1;
    t->capacity = capacity;
    for (uint32_t id = GT_TRIE_FIRST; id < t->count; id++)
        if (t->nodes[id].pc)
            enter(t, id);
    c->first = old;
    c->capacity = more;
    /* release: a reader that follows the ref finds the chunk's head */
    __atomic_store_n(t->newest ? &t->newest->next : &t->first_chunk, ref, __ATOMIC_RELEASE);
    t->newest = c;
    return 0;
}

int gt_trie_init(struct gt_trie *t, const struct gt_trie_memory *memory)
{
    *t = (struct gt_trie){.memory = *memory};
    if (grow(t))
        return -ENOMEM;
    for (uint32_t id = 0; id < GT_TRIE_FIRST; id++)
        t->nodes[id].parent = id; /* nobody's child */
    __atomic_store_n(&t->count, GT_TRIE_FIRST, __ATOMIC_RELEASE);
    return 0;
}

static uint32_t make(struct gt_trie *t, uint32_t parent, uint64_t pc)
{
    uint32_t id = t->count;
    struct gt_trie_node n = {.pc = pc, .parent = parent};

    if (t->full || (id == t->capacity && grow(t))) {
        t->full = 1;
        return GT_TRIE_OTHER;
    }
    if (t->memory.module)
        n.module = t->memory.module(pc);
    t->nodes[id] = n;
    t->newest->nodes[id - t->newest->first] = n;
    enter(t, id);
    /* release pairs with a reader's acquire: the node is complete once the count covers it */
    __atomic_store_n(&t->count, id + 1, __ATOMIC_RELEASE);
    return id;
}

uint32_t gt_trie_child_slowly(struct gt_trie *t, uint32_t parent, uint64_t pc)
{
    uint32_t id;

    if (parent == GT_TRIE_OTHER)
        return GT_TRIE_OTHER;
    for (uint32_t i = place(t, parent, pc); (id = t->table[i]); i = (i + 1) & t->mask)
        if (t->nodes[id].pc == pc && t->nodes[id].parent == parent)
            return id;
    return make(t, parent, pc);
}

/* What is below a forgotten node can't be found either. */
static int is_dead(const struct gt_trie *t, uint32_t id, int (*gone)(uint32_t))
{
    const struct gt_trie_node *n = &t->nodes[id];
    return !n->pc || (n->parent >= GT_TRIE_FIRST && !t->nodes[n->parent].pc) ||
           (n->module && gone(n->module));
}

/* In the writer's copy the module of a forgotten node is where to go on behind it: a program that
 * loads and unloads for ever leaves long runs of them. */
void gt_trie_forget(struct gt_trie *t, int (*gone)(uint32_t))
{
    uint32_t id = GT_TRIE_FIRST;
    while (id < t->count) {
        uint32_t first = id;
        while (id < t->count && is_dead(t, id, gone)) {
            struct gt_trie_node *n = &t->nodes[id];
            if (n->pc)
                *n = (struct gt_trie_node){.parent = n->parent, .module = id + 1};
            id = n->module;
        }
        if (id != first)
            t->nodes[first].module = id;
        else
            id++;
    }
}
