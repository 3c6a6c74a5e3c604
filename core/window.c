/* The recording window; see window.h. Runs on the program's threads: gt_window_look and _follow at
 * every call that takes the slow path, the rest seldom. No locks. */
#include "core/window.h"
#include <string.h>
#include "core/clock.h"
#include "core/session.h"
#include "core/slot.h"

_Atomic int gt_window_open = 1;
_Atomic uint32_t gt_window_pass = 1; /* 0 would let everybody in while paused */

static uint64_t open_ns, shut_ns; /* window TIME: CLOCK_MONOTONIC_RAW; shut_ns 0: never */
static _Atomic uint64_t begun;    /* ranges of the name, in this process and those before a fork */
static _Atomic uint32_t callers;  /* of gt_window_update: the first does the work */
static int applied;               /* what the session knows: 1 open. Of that worker */

enum { WAITING, OPEN, OVER };
static _Atomic int time_state; /* of the window TIME */

void gt_window_init(void)
{
    const struct gt_window_spec *w = &gt_config.window;
    gt_window_open = w->kind == GT_WINDOW_ALL;
    if (w->kind != GT_WINDOW_TIME)
        return;
    gt_clock_init();
    open_ns = gt_clock_mono_ns() + w->delay_ns;
    shut_ns = w->duration_ns ? open_ns + w->duration_ns : 0;
}

void gt_window_session(int child)
{
    callers = 0; /* somebody may have been at it when we were forked */
    applied = 0;
    /* the ranges of other threads are not here; this one's are counted when they are inherited */
    if (child && gt_config.window.kind == GT_WINDOW_RANGE)
        gt_window_open = 0;
    gt_session.header->window_shut_ns = shut_ns;
}

/* ---- opening and shutting ---- */

static void do_open(struct gt_header *h)
{
    uint32_t pass = gt_window_pass + 1;
    /* 0 is a pause, the other a call of ours */
    gt_window_pass = pass == GT_DOOR_SHUT ? 1 : pass;
    h->window_since = gt_clock_now();
}

static void do_shut(struct gt_header *h, uint64_t tick)
{
    uint32_t n = h->window_shuts;
    if (tick < h->window_since)
        tick = h->window_since;
    h->window_ticks += tick - h->window_since;
    h->window_since = 0;
    h->window_ends[n % GT_WINDOW_ENDS] = tick;
    /* release: pairs with gt_window_follow, and with a reader */
    atomic_store_explicit(&h->window_shuts, n + 1, memory_order_release);
}

void gt_window_update(uint64_t tick)
{
    uint32_t n = 1;
    if (atomic_load(&gt_fork.phase) != GT_PHASE_OPEN || atomic_fetch_add(&callers, 1) != 0)
        return;
    do {
        int open = gt_window_open > 0;
        if (open && !applied)
            do_open(gt_session.header);
        else if (!open && applied)
            do_shut(gt_session.header, tick ? tick : gt_clock_now());
        applied = open;
        gt_pause_apply();
        tick = 0;
    } while (!atomic_compare_exchange_strong(&callers, &n, 0));
}

/* ---- by time ---- */

/* The tick of a moment between the start of the session and now. */
static uint64_t tick_of(uint64_t ns)
{
    const struct gt_pair a = gt_session.header->start, b = gt_clock_pair();
    if (ns <= a.mono_ns || b.mono_ns <= a.mono_ns)
        return a.ticks;
    return a.ticks + (uint64_t)((double)(ns - a.mono_ns) / (double)(b.mono_ns - a.mono_ns) *
                                (double)(b.ticks - a.ticks));
}

void gt_window_look(void)
{
    int state, over;
    uint64_t now;
    if (gt_config.window.kind != GT_WINDOW_TIME || (state = time_state) == OVER)
        return;
    now = gt_clock_mono_ns();
    over = shut_ns && now >= shut_ns;
    if (now < open_ns || (state == OPEN && !over) ||
        !atomic_compare_exchange_strong(&time_state, &state, over ? OVER : OPEN))
        return;
    gt_window_open = !over;
    if (state == OPEN || !over)
        gt_window_update(over ? tick_of(shut_ns) : 0);
}

/* ---- threads ---- */

uint64_t gt_window_end(uint32_t n)
{
    const struct gt_header *h = gt_session.header;
    uint32_t shuts = atomic_load_explicit(&h->window_shuts, memory_order_acquire);
    if (n + GT_WINDOW_ENDS < shuts) /* long ago: the earliest that is still known */
        n = shuts - GT_WINDOW_ENDS;
    return h->window_ends[n % GT_WINDOW_ENDS];
}

void gt_window_follow(struct gt_thread *t)
{
    uint32_t shuts = atomic_load_explicit(&gt_session.header->window_shuts, memory_order_acquire);
    if (t->slot->window == shuts)
        return;
    gt_frame_cut(t, gt_window_end(t->slot->window));
    t->slot->window = shuts;
}

/* ---- range=NAME ---- */

int gt_window_is_step(gt_tag tag, const char *name, size_t n)
{
    if (gt_config.window.kind != GT_WINDOW_RANGE)
        return 0;
    const char *domain = gt_domain_name((tag >> 32) & 0xffff);
    const struct gt_label l = {domain, name, strlen(domain), n};
    return gt_config_match(gt_config.window.range, gt_config.window.range_bytes, &l);
}

/* A range of the name inside another one on the same thread is part of that: it has no number. */
enum gt_step gt_window_step(const struct gt_thread *t, gt_tag tag, const char *name)
{
    const struct gt_window_spec *w = &gt_config.window;
    if (w->kind != GT_WINDOW_RANGE || t->in_step ||
        !gt_window_is_step(tag, name ? name : "(null)", name ? strlen(name) : 6))
        return GT_STEP_NONE;
    uint64_t n = atomic_fetch_add(&begun, 1);
    if (n < w->skip || (w->count && n - w->skip >= w->count))
        return GT_STEP_OUT;
    if (atomic_fetch_add(&gt_window_open, 1) == 0)
        gt_window_update(0);
    return GT_STEP_IN;
}

void gt_window_step_open(struct gt_thread *t, enum gt_step step, int level)
{
    if (level < 0) {
        gt_window_step_closed(t, step == GT_STEP_IN ? GT_FRAME_IN : 0, 0);
        return;
    }
    t->in_step = 1;
    /* so that no fast way takes it for an ordinary one */
    t->top->group |= GT_GROUP_STEP;
    t->top->flags |= GT_FRAME_STEP | (step == GT_STEP_IN ? GT_FRAME_IN : 0u);
}

void gt_window_step_closed(struct gt_thread *t, uint32_t flags, uint64_t now)
{
    t->in_step = 0;
    if (flags & GT_FRAME_IN && atomic_fetch_sub(&gt_window_open, 1) == 1)
        gt_window_update(now);
}

/* ---- what others decide ---- */

void gt_window_resumed(void)
{
    int shut = 0;
    if (gt_config.window.kind == GT_WINDOW_PAUSED &&
        atomic_compare_exchange_strong(&gt_window_open, &shut, 1))
        gt_window_update(0);
}

void gt_window_torch(int running)
{
    if (gt_config.window.kind != GT_WINDOW_TORCH)
        return;
    gt_window_open = running != 0;
    gt_window_update(0);
}
