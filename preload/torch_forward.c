/* Learns where a RecordFunction has its sequence number and the number of the thread of the forward
 * pass. Called for the first operators, on whatever thread they start.
 *
 * The sequence number: an operator that may make a node has the number that the next node on this
 * thread will get, which PyTorch tells (peek); all others have -1. So the one word that was one of
 * both whenever we looked, and has been each, or two different numbers, is it.
 *
 * The thread: 0 in the forward pass. In the backward pass, the number of the thread that made the
 * node, which we know from the forward pass. It lies behind the sequence number, and only one word
 * may fit.
 *
 * Meanwhile what peek says does as well: the last operator to start before a node is made is the
 * one that makes it. Where the words turn out to be none of that, or not to be found, backward
 * operators have the stack of the thread that runs them. */
#include "torch_forward.h"

#include <string.h>
#include "core/say.h"
#include "core/sys.h"

/* Where the sequence number is looked for: 200 in 1.13 and 2.13. The thread: 48 and 104 behind it.
 */
#define FIRST 64u
#define LIMIT 512u
#define WORDS (LIMIT / 8)
#define THREAD_WITHIN 128u
/* Operators that are looked at whatever they say, each by a system call; later ones only where the
 * number is a new one. */
#define LOOKS 32u
#define LOOKS_MOST 1000u
/* Operators that must confirm the word before it is taken for good, and how often that may fail. */
#define ENOUGH 4u
#define MISTAKES 3u

struct gt_torch_forward gt_torch_forward_learned;

/* What peek said at the last look, once LOOKS operators were looked at; else -1. */
static _Atomic int64_t last;
/* Of the thread that holds `busy`; the others do without. */
static atomic_flag busy = ATOMIC_FLAG_INIT;
static struct {
    unsigned looks, mistakes;
    unsigned sequence_at; /* 0: not known yet */
    unsigned right;       /* operators that had -1 or peek's number there since */
    struct {
        int64_t number;   /* the last number of peek's that it was */
        unsigned numbers; /* how many different ones */
        uint8_t minus_one, other, not_zero;
    } words[WORDS];
} seen;

static void set_state(enum gt_torch_forward_state state)
{
    atomic_store_explicit(&gt_torch_forward_learned.state, state, memory_order_release);
}

void gt_torch_forward_init(void)
{
    const struct gt_torch_calls *c = &gt_torch_calls;
    int wanted = gt_torch_wants.forward;

    memset(&seen, 0, sizeof seen);
    atomic_store_explicit(&last, -1, memory_order_relaxed);
    if (wanted && (!c->peek || !c->current_thread)) {
        gt_say(GT_SAY_WARNING, "this version of PyTorch does not tell the forward operators of "
                               "backward ones: these have their own stacks");
        wanted = 0;
    }
    set_state(wanted ? GT_FORWARD_LEARNING : GT_FORWARD_OFF);
}

static void refuse(void)
{
    gt_say(GT_SAY_WARNING,
           "PyTorch's forward operators can't be told from its backward ones: these "
           "have their own stacks");
    set_state(GT_FORWARD_OFF);
}

/* ---- the sequence number ---- */

static void look_at(const int64_t *words, int64_t peek)
{
    for (unsigned i = FIRST / 8; i < WORDS; i++) {
        int64_t w = words[i];

        seen.words[i].not_zero |= w != 0;
        if (w == -1) {
            seen.words[i].minus_one = 1;
        } else if (w != peek) {
            seen.words[i].other = 1;
        } else if (!seen.words[i].numbers || seen.words[i].number != w) {
            seen.words[i].number = w;
            seen.words[i].numbers++;
        }
    }
}

/* The one word that fits; 0 if there is none yet, or more than one. */
static unsigned only_fit(void)
{
    unsigned at = 0;

    for (unsigned i = FIRST / 8; i < WORDS; i++) {
        if (seen.words[i].other || seen.words[i].numbers + seen.words[i].minus_one < 2)
            continue;
        if (at)
            return 0;
        at = i * 8;
    }
    return at;
}

/* What was learned is wrong, or not enough: once more. */
static void start_again(void)
{
    unsigned mistakes = seen.mistakes + 1;

    memset(&seen, 0, sizeof seen);
    seen.mistakes = mistakes;
    atomic_store_explicit(&last, -1, memory_order_relaxed);
    if (mistakes > MISTAKES)
        refuse();
    else
        set_state(GT_FORWARD_LEARNING);
}

static void learn_sequence(const struct gt_torch_rf *rf, int64_t peek)
{
    int64_t words[WORDS];

    if (++seen.looks > LOOKS_MOST) {
        refuse();
        return;
    }
    if (seen.looks >= LOOKS)
        atomic_store_explicit(&last, peek, memory_order_relaxed);
    if (gt_sys_copy(words, rf, LIMIT) < 0)
        return;
    look_at(words, peek);
    if (!seen.sequence_at) {
        seen.sequence_at = only_fit();
        seen.right = 0;
    } else if (seen.words[seen.sequence_at / 8].other) {
        start_again();
    } else if (++seen.right >= ENOUGH && seen.looks >= LOOKS) {
        atomic_store_explicit(&gt_torch_forward_learned.sequence_at, seen.sequence_at,
                              memory_order_relaxed);
        set_state(GT_FORWARD_SEQUENCE);
    }
}

/* ---- the thread ---- */

static void learn_thread(const struct gt_torch_rf *rf, struct gt_op *op)
{
    struct gt_torch_forward *f = &gt_torch_forward_learned;
    unsigned at = seen.sequence_at, thread_at = 0, more = 0;
    int64_t words[WORDS];

    if (!at || gt_sys_copy(words, rf, LIMIT) < 0 || words[at / 8] < 0)
        return;
    for (unsigned i = at / 8 + 1; i < WORDS && i <= (at + THREAD_WITHIN) / 8; i++) {
        if (seen.words[i].not_zero || words[i] <= 0 || words[i] > INT32_MAX ||
            !gt_op_made((uint64_t)words[i], words[at / 8]))
            continue;
        more += thread_at != 0;
        thread_at = i * 8;
    }
    if (more) { /* more operators of the forward pass may tell them apart */
        start_again();
        return;
    }
    if (!thread_at)
        return;
    op->sequence = words[at / 8];
    op->thread = (uint64_t)words[thread_at / 8];
    if (seen.right < ENOUGH)
        return;
    atomic_store_explicit(&f->sequence_at, at, memory_order_relaxed);
    atomic_store_explicit(&f->thread_at, thread_at, memory_order_relaxed);
    set_state(GT_FORWARD_KNOWN);
}

/* ---- the way in ---- */

/* PyTorch's engine runs a backward operator inside of one of the forward pass's kind. */
static int is_engine(const struct gt_op *op)
{
    return op->name && strncmp(op->name, "autograd::engine", 16) == 0;
}

__attribute__((noinline, cold)) void gt_torch_forward_learn(const struct gt_torch_rf *rf,
                                                            unsigned scope, struct gt_op *op)
{
    int64_t peek = -1;

    if (scope == GT_TORCH_FUNCTION) {
        if (is_engine(op))
            return;
        op->sequence = peek = (int64_t)gt_torch_calls.peek();
        op->thread = gt_torch_calls.current_thread();
        if (peek == atomic_load_explicit(&last, memory_order_relaxed))
            return;
    }
    if (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        return;
    if (scope == GT_TORCH_FUNCTION)
        learn_sequence(rf, peek);
    else
        learn_thread(rf, op);
    atomic_flag_clear_explicit(&busy, memory_order_release);
}
