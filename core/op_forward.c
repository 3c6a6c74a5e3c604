/* The table behind op_forward.h. One for the process, since the backward pass may run on another
 * thread than the forward one; direct-mapped, so that the nodes of a graph that were made one after
 * the other lie side by side, and bounded: a graph of more nodes than places loses the oldest. Then
 * the backward operators have the stack of the thread that runs them, as where nothing is known.
 *
 * Lock-free. An entry is its value, and beside it the value mixed with whose it is: one that was
 * torn by two writers, is of other numbers, or of the session before a fork, is no match. */
#include "core/op_forward.h"

#include "core/session.h"
#include "core/stacks.h"
#include "core/sys.h"

#define PLACES (1u << 16) /* 1 MiB, of which only what was used has memory */

struct place {
    _Atomic uint64_t value; /* slot << 32 | id in its trie */
    _Atomic uint64_t check;
};
static _Atomic(void *) table;

/* Stacks of other slots that are in this one's trie already. */
#define IMPORTS 128u
struct gt_import {
    uint64_t value; /* as in a place */
    uint32_t id;    /* here */
    uint32_t reserved;
};

static uint64_t whose(uint64_t thread, int64_t sequence)
{
    uint64_t h = (uint64_t)sequence * UINT64_C(0x9e3779b97f4a7c15) ^
                 (thread + 1) * UINT64_C(0xff51afd7ed558ccd) ^
                 gt_session.generation * UINT64_C(0xc4ceb9fe1a85ec53);
    return (h ^ h >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
}

static struct place *place_of(uint64_t thread, int64_t sequence)
{
    struct place *places = gt_sys_map_once(&table, PLACES * sizeof *places);
    uint64_t start = thread * UINT64_C(0x9e3779b97f4a7c15) >> 48;
    return places ? &places[((uint64_t)sequence + start) % PLACES] : NULL;
}

void gt_op_forward_put(const struct gt_thread *t, uint64_t thread, int64_t sequence, uint32_t stack)
{
    struct place *p = place_of(thread, sequence);
    uint64_t slot = (uint64_t)((const char *)t->slot - gt_session.base) / GT_ALIGN;
    uint64_t value = slot << 32 | stack;
    if (!p)
        return;
    atomic_store_explicit(&p->value, value, memory_order_relaxed);
    /* release pairs with the acquire in get: who finds the entry finds the trie's nodes */
    atomic_store_explicit(&p->check, value ^ whose(thread, sequence), memory_order_release);
}

/* ---- stacks of another slot ---- */

/* The published node of a slot's trie. */
static const struct gt_trie_node *node_at(const struct gt_slot *slot, uint32_t id)
{
    if (id >= atomic_load_explicit(&slot->stack_count, memory_order_acquire))
        return NULL;
    gt_ref ref = atomic_load_explicit(&slot->stacks, memory_order_acquire);
    while (ref) {
        const struct gt_trie_chunk *c = gt_session_at(ref);
        if (id - c->first < c->capacity)
            return &c->nodes[id - c->first];
        ref = __atomic_load_n(&c->next, __ATOMIC_ACQUIRE);
    }
    return NULL;
}

/* Enters the stack into this slot's trie, the outermost frame first. The walker's steps are free
 * meanwhile; what does not fit there is left out outside. 0: it can't be had. */
static uint32_t import(struct gt_thread *t, const struct gt_slot *from, uint32_t id)
{
    struct gt_stack_step *steps = t->stack->steps;
    struct gt_trie *trie = &t->stack->trie;
    uint32_t count = 0;
    while (id >= GT_TRIE_FIRST && count < GT_STACK_DEPTH) {
        const struct gt_trie_node *n = node_at(from, id);
        if (!n)
            return 0;
        steps[count++] = (struct gt_stack_step){.pc = n->pc, .rule = n->module};
        id = n->parent;
    }
    if (id >= GT_TRIE_FIRST)
        id = GT_TRIE_TRUNCATED;
    while (count) {
        id = gt_trie_child(trie, id, steps[--count].pc);
        /* something else was loaded in its place since */
        if (id != GT_TRIE_OTHER && gt_trie_node(trie, id)->module != steps[count].rule)
            return 0;
    }
    return id;
}

static uint32_t imported(struct gt_thread *t, uint64_t value)
{
    if (!t->stack && !gt_stacks_prepare(t))
        return 0;
    if (!t->imports && !(t->imports = gt_private_alloc(IMPORTS * sizeof *t->imports)))
        return 0;
    struct gt_import *known = &t->imports[(value ^ value >> 32) % IMPORTS];
    if (known->value != value) {
        uint32_t id = import(t, gt_session_at((gt_ref)(value >> 32)), (uint32_t)value);
        gt_stacks_publish(t);
        if (!id)
            return 0;
        *known = (struct gt_import){value, id, 0};
    }
    return known->id;
}

/* 0: there is none. No value is 0: slots do not lie at the file's start. */
static uint64_t find(uint64_t thread, int64_t sequence)
{
    const struct place *p = place_of(thread, sequence);
    if (!p)
        return 0;
    uint64_t check = atomic_load_explicit(&p->check, memory_order_acquire);
    uint64_t value = atomic_load_explicit(&p->value, memory_order_relaxed);
    return check == (value ^ whose(thread, sequence)) ? value : 0;
}

uint32_t gt_op_forward_get(struct gt_thread *t, uint64_t thread, int64_t sequence)
{
    uint64_t value = find(thread, sequence);
    if (!value)
        return 0;
    if (gt_session_at((gt_ref)(value >> 32)) == (const void *)t->slot)
        return (uint32_t)value;
    return imported(t, value);
}

int gt_op_made(uint64_t thread, int64_t sequence)
{
    return find(thread, sequence) != 0;
}
