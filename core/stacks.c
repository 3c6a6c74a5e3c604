/* See stacks.h. A thread's state for captures is made at its first one and stays with its slot. It
 * comes out of the half of the memory that is for what is nice to have: stacks must not take the
 * names' place. */
#include "core/stacks.h"

#include <signal.h>
#include <string.h>
#include "core/eh_frame.h"
#include "core/modules.h"
#include "core/rules.h"
#include "core/session.h"
#include "core/sys.h"

/* Rules for so many return addresses: 512 KiB. PyTorch's reference needs some 5,000. */
enum { RULE_BITS = 14 };

_Atomic(gt_python_fn *) gt_python_walk;
_Atomic uint8_t gt_stack_how[4];
_Static_assert((int)GT_STACK_PYTHON == GT_STACKS_PYTHON && (int)GT_STACK_NATIVE == GT_STACKS_NATIVE,
               "the configuration's bits");

/* ---- memory ---- */

static void *own(size_t bytes)
{
    return gt_session_roomy(bytes) ? gt_private_alloc(bytes) : NULL;
}

/* The process's, so not the session's: a fork's child goes on with it. */
static void *rules_memory(size_t bytes)
{
    static _Atomic(void *) table;
    return gt_sys_map_once(&table, bytes);
}

/* ---- a thread's state ---- */

static _Atomic int ready; /* release, after the table of rules was filled */

static int rules_ready(void)
{
    if (atomic_load_explicit(&ready, memory_order_acquire))
        return 1;
    if (gt_rules_init(RULE_BITS, rules_memory) < 0)
        return 0;
    atomic_store_explicit(&ready, 1, memory_order_release);
    return 1;
}

GT_COLD int gt_stacks_prepare(struct gt_thread *t)
{
    static const struct gt_trie_memory memory = {gt_session_alloc_roomy, own, gt_modules_of,
                                                 gt_modules_forget};
    if (t->stack)
        return 1;
    struct gt_stack *s = !t->no_stack && rules_ready() ? own(sizeof *s) : NULL;
    if (s && gt_stack_init(s, GT_STACK_DEPTH, &memory) == 0)
        t->stack = s;
    else
        t->no_stack = 1; /* not tried again: what was taken is not given back */
    t->slot->stack_missing += !t->stack;
    return t->stack != NULL;
}

static GT_COLD int prepare_python(struct gt_thread *t)
{
    t->python = own(GT_PYTHON_STATE_BYTES);
    return t->python != NULL;
}

void gt_stacks_hand_over(struct gt_thread *t)
{
    if (t->stack)
        gt_stack_reset(t->stack);
    if (t->python)
        memset(t->python, 0, GT_PYTHON_STATE_BYTES);
}

/* ---- the process ---- */

static void ask(enum gt_stack_want want, uint32_t how)
{
    atomic_store_explicit(&gt_stack_how[want], (uint8_t)how, memory_order_relaxed);
}

void gt_stacks_init(void)
{
    uint32_t kinds = gt_config.stacks & (GT_STACK_PYTHON | GT_STACK_NATIVE);
    if (!kinds)
        return;
    if (*gt_config.include || *gt_config.exclude)
        kinds |= GT_STACK_FILTERED;
    ask(GT_STACK_BOTH, kinds);
    ask(GT_STACK_EITHER, kinds | GT_STACK_OR);
    if (gt_config.stacks & GT_STACKS_RANGES)
        ask(GT_STACK_RANGE, kinds);
    if (!(kinds & GT_STACK_NATIVE))
        return;
    gt_module_prepare();
    /* Who asks for stacks of everything gets whole ones from the first on, as far as the program
     * calls the loader before. */
    if (gt_config.stacks & GT_STACKS_RANGES)
        atomic_store_explicit(&gt_unwind_wanted, 1, memory_order_relaxed);
}

/* The loader takes 5 KiB of the stack and calls malloc: not from a signal handler, as far as its
 * stack shows that it is one. */
static int on_signal_stack(void)
{
    stack_t alt;
    return gt_sys(SYS_sigaltstack, 0, (long)&alt, 0, 0, 0, 0) == 0 && alt.ss_flags & SS_ONSTACK;
}

void gt_stacks_load(void)
{
    if (on_signal_stack())
        return; /* the wish stays */
    if (atomic_exchange_explicit(&gt_unwind_wanted, 0, memory_order_relaxed))
        gt_unwind_open();
}

void gt_stacks_unloading(void)
{
    if (atomic_load_explicit(&ready, memory_order_acquire))
        gt_rules_forget();
}

void gt_stacks_unloaded(void)
{
    if (atomic_load_explicit(&ready, memory_order_acquire) && gt_rules_look())
        gt_modules_check();
}

/* ---- captures ---- */

/* Readers see the new nodes, and what happened. */
__attribute__((noinline)) void gt_stacks_publish(struct gt_thread *t)
{
    struct gt_slot *slot = t->slot;
    struct gt_stack *s = t->stack;
    s->news = 0;
    slot->stack_truncated = s->truncated + s->python_truncated;
    slot->stack_cut = s->cut;
    if (s->trie.count == atomic_load_explicit(&slot->stack_count, memory_order_relaxed))
        return;
    atomic_store_explicit(&slot->stacks, s->trie.first_chunk, memory_order_relaxed);
    /* release: who sees the count finds the nodes, their modules and their code objects */
    atomic_store_explicit(&slot->stack_count, s->trie.count, memory_order_release);
}

static uint32_t python_frames(struct gt_thread *t, struct gt_stack *s)
{
    gt_python_fn *walk = atomic_load_explicit(&gt_python_walk, memory_order_acquire);
    int truncated = 0;
    if (!walk)
        return 0;
    if (unlikely(!t->python) && !prepare_python(t)) {
        t->slot->stack_missing++;
        return 0;
    }
    uint32_t before = s->trie.count, id = walk(t->python, &s->trie, &truncated);
    s->python_truncated += (unsigned)truncated;
    s->news |= s->trie.count != before || truncated;
    return id;
}

struct gt_stack_ids gt_stacks_get(struct gt_thread *t, const struct gt_regs *at, uint32_t how)
{
    struct gt_stack_ids ids = {0, 0};
    struct gt_stack *s = t->stack;
    if (unlikely(!s)) {
        if (!(how & GT_STACK_NATIVE) &&
            !atomic_load_explicit(&gt_python_walk, memory_order_relaxed))
            return ids; /* there are none: no memory is taken */
        if (!gt_stacks_prepare(t))
            return ids;
        s = t->stack;
    }
    if (how & GT_STACK_PYTHON)
        ids.python = python_frames(t, s);
    if (how & GT_STACK_NATIVE && !(how & GT_STACK_OR && ids.python))
        ids.native = gt_stack_capture(s, at);
    if (unlikely(s->news))
        gt_stacks_publish(t);
    if (unlikely(ids.native == GT_TRIE_OTHER || ids.python == GT_TRIE_OTHER))
        t->slot->stack_missing++;
    return ids;
}
