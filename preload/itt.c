/* ITT: the way in, tasks, and what concerns the whole process. Called by the program's copies of
 * ITT (it and any library of it may have its own) on its own threads; __itt_api_init once for each,
 * while that copy holds its lock, so nothing here calls back.
 *
 * Tasks nest by domain: task_end ends the youngest task of its domain on this thread. The ids and
 * parents that tasks may carry describe relations that a tree by nesting has no use for. Timestamps
 * of the calls with _ex are not used: they are of clocks that only the program knows, and we hand
 * out no clock domain to go with them; such a call counts at the time when it is made. */
#include "itt.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "core/hot.h"
#include "hook.h"
#include "torch.h"

#define NOT_USED(x) (void)(x)

/* ---- tasks ---- */

/* A library's own marks are not the user's annotation. */
static int push_library(gt_tag tag, const char *name)
{
    return gt_push_attr(
        tag, &(struct gt_attr){.name = name, .scope = GT_SCOPE_FUNCTION, .stack = GT_STACK_RANGE});
}

/* PyTorch's emit_itt gives the bare name of each operator and record_function. */
static int names_operator(const char *name)
{
    size_t n = strlen(name);

    while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
        n--;
    return strstr(name, "::") || (n >= 8 && strncmp(name + n - 8, "Backward", 8) == 0);
}

/* 1 if PyTorch's callback has just opened a range of that name. What it leaves out is an operator
 * by its name; what is neither was given to torch.profiler.itt by the user and is known from here
 * only.
 */
static int known_to_torch(const char *name)
{
    const struct gt_link *top = gt_self->cur;

    if (!gt_torch_live())
        return 0;
    if (names_operator(name) || strncmp(name, "ProfilerStep#", 13) == 0)
        return 1;
    return top && top->tag >> 56 == GT_SOURCE_TORCH &&
           (top->node->flags & GT_NODE_FOLDED || strcmp(top->text, name) == 0);
}

static __attribute__((noinline)) void push_torch(gt_tag tag, const char *name)
{
    if (!name)
        name = "(null)";
    if (known_to_torch(name))
        gt_push_duplicate(tag);
    else
        gt_hot_push(tag, name, names_operator(name) ? push_library : gt_push_name);
}

static inline void push(const struct gt_itt_domain *d, const char *name)
{
    int info = gt_itt_info(d);

    if (unlikely(info & (GT_ITT_OFF | GT_ITT_TORCH))) {
        if (!(info & GT_ITT_OFF))
            push_torch(gt_itt_tag(info), name);
        return;
    }
    gt_hot_push(gt_itt_tag(info), name, info & GT_ITT_LIBRARY ? push_library : gt_push_name);
}

static inline void pop(const struct gt_itt_domain *d)
{
    int info = gt_itt_info(d);

    if (likely(!(info & GT_ITT_OFF)))
        gt_hot_pop(GT_TAG_GROUP(gt_itt_tag(info)));
}

void on_task_begin(const struct gt_itt_domain *d, struct gt_itt_id id, struct gt_itt_id parent,
                   const struct gt_itt_string *name)
{
    NOT_USED(id), NOT_USED(parent);
    push(d, gt_itt_text(name));
}

void on_task_begin_ex(const struct gt_itt_domain *d, void *clock, unsigned long long timestamp,
                      struct gt_itt_id id, struct gt_itt_id parent,
                      const struct gt_itt_string *name)
{
    NOT_USED(clock), NOT_USED(timestamp), NOT_USED(id), NOT_USED(parent);
    push(d, gt_itt_text(name));
}

void on_task_begin_fn(const struct gt_itt_domain *d, struct gt_itt_id id, struct gt_itt_id parent,
                      void *fn)
{
    NOT_USED(id), NOT_USED(parent);
    push(d, gt_itt_function(fn));
}

void on_task_begin_fn_ex(const struct gt_itt_domain *d, void *clock, unsigned long long timestamp,
                         struct gt_itt_id id, struct gt_itt_id parent, void *fn)
{
    NOT_USED(clock), NOT_USED(timestamp), NOT_USED(id), NOT_USED(parent);
    push(d, gt_itt_function(fn));
}

void on_task_end(const struct gt_itt_domain *d)
{
    pop(d);
}

void on_task_end_ex(const struct gt_itt_domain *d, void *clock, unsigned long long timestamp)
{
    NOT_USED(clock), NOT_USED(timestamp);
    pop(d);
}

/* ---- the whole process ---- */

/* ITT's pause does not nest in itself, so all of it is one of ours. 0: recording, PAUSING: a thread
 * is at it, and a resume that comes just then was earlier. */
enum { RECORDING = 0, PAUSING = 1, PAUSED = 2, DETACHED = 3 };
static _Atomic int state;

static int pause_as(int what)
{
    int was = RECORDING, pausing = PAUSING;

    if (!atomic_compare_exchange_strong(&state, &was, PAUSING))
        return was;
    gt_pause();
    atomic_compare_exchange_strong(&state, &pausing, what); /* unless detached meanwhile */
    return RECORDING;
}

void on_pause(void)
{
    if (gt_source_on(GT_SOURCE_ITT))
        pause_as(PAUSED);
}

void on_resume(void)
{
    int was = PAUSED;

    if (!gt_source_on(GT_SOURCE_ITT))
        return;
    /* without a pause of ITT's it must not end one of another source's, but it may be what a window
     * waits for that begins with a resume */
    if (atomic_compare_exchange_strong(&state, &was, RECORDING) ||
        (was == RECORDING && atomic_load(&gt_paused) == 0))
        gt_resume();
}

void on_pause_scoped(int scope)
{
    if (scope & GT_ITT_SCOPE_HOST)
        on_pause();
}

void on_resume_scoped(int scope)
{
    if (scope & GT_ITT_SCOPE_HOST)
        on_resume();
}

/* For good: a pause that no resume ends. */
void on_detach(void)
{
    if (gt_source_on(GT_SOURCE_ITT) && pause_as(DETACHED) != RECORDING)
        atomic_store(&state, DETACHED);
}

void on_thread_set_name(const char *name)
{
    gt_name_thread(GT_SOURCE_ITT, 0, name);
}

int on_thr_name_set(const char *name, int length)
{
    NOT_USED(length); /* older programs' way; the text ends with a NUL all the same */
    on_thread_set_name(name);
    return 0;
}

/* ---- the way in ---- */

struct call {
    const char *name;
    void (*fn)(void);
};

#define EXPORT(name)
#define CALL(name, result, parameters) {"__itt_" #name, (void (*)(void))on_##name},
static const struct call calls[] = {
#include "hooks/itt.def"
};
#undef CALL
#undef EXPORT

static int compare(const void *name, const void *call)
{
    return strcmp(name, ((const struct call *)call)->name);
}

/* Both sources come through the same door; it is open while one of them is asked for. */
const struct gt_hooks gt_itt_hooks = {.source = GT_SOURCE_ITT, .variable = "INTEL_LIBITTNOTIFY64"};
const struct gt_hooks gt_onednn_hooks = {.source = GT_SOURCE_ONEDNN,
                                         .variable = "INTEL_LIBITTNOTIFY64"};

GT_EXPORT void __itt_api_init(struct gt_itt_global *g, int groups);
GT_EXPORT void __itt_api_init(struct gt_itt_global *g, int groups)
{
    NOT_USED(groups);
    if (!g || memcmp(g->magic, GT_ITT_MAGIC, sizeof(g->magic)) != 0 ||
        g->version_build < GT_ITT_FIRST_BUILD || !g->api_list)
        return;
    if (!gt_source_on(GT_SOURCE_ITT) && !gt_source_on(GT_SOURCE_ONEDNN))
        return;
    if (gt_itt_names_init() < 0 || gt_itt_open_init() < 0)
        return;
    for (struct gt_itt_call *c = g->api_list; c->name; c++) {
        const struct call *ours =
            bsearch(c->name, calls, sizeof(calls) / sizeof(*calls), sizeof(*calls), compare);

        if (c->func_ptr)
            *c->func_ptr = ours ? (void *)ours->fn : c->null_func;
    }
}
