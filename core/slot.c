/* The slow way into recording: opening the session, giving a thread its slot, following a fork,
 * taking the slot back when the thread ends. Every call whose fast way is shut comes through
 * gt_enter_slow. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include "core/clock.h"
#include "core/compat.h"
#include "core/fork.h"
#include "core/modules.h"
#include "core/registry.h"
#include "core/say.h"
#include "core/session.h"
#include "core/slot.h"
#include "core/stacks.h"
#include "core/strings.h"
#include "core/sys.h"
#include "core/thread.h"
#include "core/window.h"

/* gt_self before a thread has a slot, and while it gets one: then a signal handler stays outside.
 */
struct gt_thread gt_nobody = {.door = GT_DOOR_SHUT};
static struct gt_thread acquiring = {.door = GT_DOOR_SHUT};
__thread struct gt_thread *gt_self = &gt_nobody;

/* All threads' private halves of this session; slots are reused through it. Nothing leaves it. */
static _Atomic(struct gt_thread *) threads;
static pthread_key_t at_thread_end;
static int have_key;

static enum gt_phase phase(void)
{
    return (enum gt_phase)atomic_load_explicit(&gt_fork.phase, memory_order_acquire);
}

/* What was lost while there was no session to count it in: it is being opened, or we are the child
 * of a fork and the header that we see is the parent's. */
static _Atomic uint64_t early[GT_LOST_KINDS];

static void count_early(void)
{
    for (int i = 0; i < GT_LOST_KINDS; i++) {
        uint64_t n = atomic_exchange(&early[i], 0);
        if (n)
            atomic_fetch_add_explicit(&gt_session.header->lost[i], n, memory_order_relaxed);
    }
}

static void lose(enum gt_lost kind)
{
    if (phase() == GT_PHASE_OPEN || phase() == GT_PHASE_CLOSED) {
        atomic_fetch_add_explicit(&gt_session.header->lost[kind], 1, memory_order_relaxed);
        return;
    }
    atomic_fetch_add(&early[kind], 1);
    if (phase() == GT_PHASE_OPEN) /* just now: nobody else may come for it */
        count_early();
}

/* ---- slots ---- */

static void thread_name(char name[16])
{
    memset(name, 0, 16);
    prctl(PR_GET_NAME, name, 0, 0, 0);
}

static void take_over(struct gt_slot *slot, const char name[16])
{
    for (size_t i = 0; i < sizeof slot->name; i++)
        __atomic_store_n(&slot->name[i], name[i], __ATOMIC_RELAXED);
    slot->tid = (uint32_t)gt_sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
    slot->threads++;
}

/* Asked before the slot is ours, so another thread may just be writing its own name there. A name
 * read amid that costs the preference, no more. */
static int is_named(const struct gt_slot *slot, const char name[16])
{
    for (size_t i = 0; i < sizeof slot->name; i++)
        if (__atomic_load_n(&slot->name[i], __ATOMIC_RELAXED) != name[i])
            return 0;
    return 1;
}

/* The slot of a thread that has ended: of the same name if there is one. */
static struct gt_thread *reuse(const char name[16])
{
    for (int any = 0; any < 2; any++) {
        struct gt_thread *t = atomic_load_explicit(&threads, memory_order_acquire);
        for (; t; t = t->next) {
            uint32_t state = GT_SLOT_FREE;
            if ((any || is_named(t->slot, name)) &&
                atomic_load_explicit(&t->slot->state, memory_order_relaxed) == GT_SLOT_FREE &&
                atomic_compare_exchange_strong_explicit(&t->slot->state, &state, GT_SLOT_LIVE,
                                                        memory_order_acquire, memory_order_relaxed))
                return t;
        }
    }
    return NULL;
}

static void give_ring(struct gt_thread *t, struct gt_slot *slot)
{
    gt_ref ref;
    t->ring = t->ring_next = t->dummy;
    t->ring_end = t->dummy + sizeof t->dummy / sizeof *t->dummy;
    size_t bytes = gt_config.ring_records * sizeof(struct gt_record);
    if (!bytes || !gt_session_roomy(bytes))
        return;
    struct gt_record *ring = gt_session_alloc(bytes, &ref);
    if (ring) {
        t->ring = t->ring_next = ring;
        t->ring_end = ring + gt_config.ring_records;
        slot->ring_records = gt_config.ring_records;
        slot->ring = ref;
    }
}

/* The frame below the first one: it lies where the block's head is, so that popping the outermost
 * frame needs no check. Its level and flags are the head's words and are never written. */
#define BELOW_BYTES offsetof(struct gt_frame, level)
_Static_assert(sizeof(struct gt_frame) - BELOW_BYTES == offsetof(struct gt_frame_block, frames),
               "the frame below overlaps just the block's head");

static struct gt_thread *make(void)
{
    struct gt_header *h = gt_session.header;
    gt_ref ref, below;
    /* the file first: where it is full, a thread comes here at each of its calls */
    struct gt_slot *slot = gt_session_alloc(sizeof *slot, &ref);
    char *block =
        slot ? gt_session_alloc(BELOW_BYTES + sizeof(struct gt_frame_block), &below) : NULL;
    struct gt_thread *t = block ? gt_private_alloc(sizeof *t) : NULL;
    if (!t)
        return NULL;
    t->slot = slot;
    t->generation = gt_session.generation;
    t->door = GT_DOOR_SHUT;
    slot->frames = t->block_refs[0] = below + (gt_ref)(BELOW_BYTES / GT_ALIGN);
    slot->last = h->start;
    slot->window = h->window_shuts;
    give_ring(t, slot);
    if (gt_tree_init(t) < 0)
        return NULL;
    struct gt_frame *first = gt_frame_at(t, 0);
    first[-1].link = t->root;
    t->top = first - 1;
    t->limit = first + GT_FRAMES_PER_BLOCK - 1;
    t->cur = t->root;
    slot->id = atomic_fetch_add_explicit(&h->slot_count, 1, memory_order_relaxed);
    atomic_store_explicit(&slot->state, GT_SLOT_LIVE, memory_order_relaxed);
    slot->next = atomic_load_explicit(&h->slots, memory_order_relaxed);
    /* release: a reader that finds the slot finds it complete */
    while (!atomic_compare_exchange_weak_explicit(&h->slots, &slot->next, ref, memory_order_release,
                                                  memory_order_relaxed))
        ;
    t->next = atomic_load_explicit(&threads, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&threads, &t->next, t, memory_order_release,
                                                  memory_order_relaxed))
        ;
    return t;
}

static int is_main(void)
{
    return (uint32_t)gt_sys(SYS_gettid, 0, 0, 0, 0, 0, 0) == gt_session.pid;
}

static struct gt_thread *acquire(void)
{
    char name[16];
    thread_name(name);
    /* the main thread's slot is its own: people look for it by name */
    struct gt_thread *t = is_main() ? NULL : reuse(name);
    if (t)
        gt_stacks_hand_over(t);
    else
        t = make();
    if (!t) {
        lose(GT_LOST_MEMORY);
        return NULL;
    }
    take_over(t->slot, name);
    if (have_key)
        pthread_setspecific(at_thread_end, t);
    return t;
}

/* The thread ends: its slot goes to the next one. Its open ranges end with it. */
static void release(void *p)
{
    struct gt_thread *t = p;
    /* A thread that was cancelled, or left by a jump, in the middle of a call of ours: its slot may
     * be half changed. It stays as it is, a reader counts its open ranges as it would a killed
     * one's. */
    if (t->door == GT_DOOR_SHUT) {
        gt_self = &gt_nobody;
        return;
    }
    if (t == gt_self && phase() == GT_PHASE_OPEN && t->generation == gt_session.generation) {
        t->door = GT_DOOR_SHUT;
        gt_frame_close_all(t);
        gt_self = &gt_nobody;
        if (!is_main())
            atomic_store_explicit(&t->slot->state, GT_SLOT_FREE, memory_order_release);
    }
    gt_self = &gt_nobody;
}

void gt_slot_init(void)
{
    /* Made early, the key is one of the first 32, for which glibc needs no malloc. */
    have_key = pthread_key_create(&at_thread_end, release) == 0;
}

/* ---- opening ---- */

/* On the one thread that moved the phase from NONE to OPENING; `old` is what it had before. */
static void open_session(struct gt_thread *old)
{
    char *old_base = gt_session.base;
    uint64_t old_size = gt_session.size_bytes;
    int child = old_base != NULL;
    void *parents = child ? gt_private_forget() : NULL;
    gt_core_init();
    if (gt_config.disable || (child && !gt_config.children)) {
        atomic_store(&gt_fork.phase, GT_PHASE_OFF);
        return;
    }
    atomic_store(&threads, NULL);
    if (gt_session_open() < 0 || gt_strings_reset() < 0) {
        gt_say(GT_SAY_WARNING, "no memory for a session: nothing is recorded in this process");
        atomic_store(&gt_fork.phase, GT_PHASE_OFF);
        return;
    }
    if (*gt_config.warning && !child && !*gt_config.run_dir)
        gt_say(GT_SAY_WARNING, gt_config.warning); /* under `run` it has been said */
    gt_modules_reset();
    gt_registry_replay();
    gt_window_session(child);
    if (child && old->generation && old->generation + 1 == gt_session.generation) {
        struct gt_thread *t = acquire();
        if (t) {
            gt_fork_inherit(t, old, old_base);
            gt_self = t;
            /* This is the one thread that a fork leaves, so nobody else looks at the parent's (a
             * thread made since would not know: then it stays). But a call that a signal handler
             * interrupted before its door, and in which we are, still has `old` in its hands. */
            gt_private_free(parents, old);
        }
    }
    if (child)
        gt_sys_munmap(old_base, old_size);
    atomic_store(&gt_fork.phase, GT_PHASE_OPEN);
    count_early();
    gt_window_update(0);
    if (gt_core_opened)
        gt_core_opened();
}

/* Who exits from a signal handler must not find a session half made: it would be nobody's. Signals
 * that an instruction of ours causes stay open, a host may emulate with them. */
static void hold_signals(uint64_t *before)
{
    const uint64_t open = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGFPE - 1) |
                          1ull << (SIGILL - 1) | 1ull << (SIGTRAP - 1) | 1ull << (SIGSYS - 1);
    const uint64_t held = ~open;
    gt_sys(SYS_rt_sigprocmask, SIG_BLOCK, (long)&held, (long)before, sizeof held, 0, 0);
}

/* Returns 1 when there is a session to record into. */
static int session_ready(struct gt_thread *had)
{
    for (;;) {
        uint32_t none = GT_PHASE_NONE;
        uint64_t before = 0;
        switch (phase()) {
        case GT_PHASE_OPEN:
            return 1;
        case GT_PHASE_OFF:
            return 0;
        case GT_PHASE_CLOSED:
            lose(GT_LOST_LATE);
            return 0;
        case GT_PHASE_NONE:
            hold_signals(&before);
            if (atomic_compare_exchange_strong(&gt_fork.phase, &none, GT_PHASE_OPENING))
                open_session(had);
            gt_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0, 0);
            break;
        case GT_PHASE_OPENING:
            gt_sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
            break;
        }
    }
}

struct gt_thread *gt_enter_slow(void)
{
    struct gt_thread *had = gt_self, *t;
    int saved = errno;
    if (had != &gt_nobody && had->door == GT_DOOR_SHUT) { /* inside one of our calls already */
        lose(GT_LOST_NESTED);
        return NULL;
    }
    gt_self = &acquiring;
    atomic_signal_fence(memory_order_seq_cst);
    if (session_ready(had)) {
        t = gt_self; /* opening the session in a fork child may have made it */
        if (t == &acquiring)
            t = had;
        if (t->generation != gt_session.generation) {
            t = acquire();
            if (t && had->generation && had->generation + 1 == gt_session.generation)
                gt_fork_inherit(t, had, NULL); /* another thread of the child opened the session */
            gt_window_update(0);
        }
        if (t) {
            t->door = GT_DOOR_SHUT;
            gt_self = t;
            t->pass = gt_window_pass; /* first: if it opens again meanwhile, we come here again */
            gt_window_look();
            gt_window_follow(t);
            errno = saved;
            return t;
        }
    }
    /* nothing to record now, but not for good: the next call may be a fork child's */
    gt_self = had;
    errno = saved;
    return NULL;
}
