/* Finds PyTorch and registers a callback for every operator that it runs. Runs in our constructor,
 * for programs that are linked with it, and on the way into dlsym, for those that open it: Python
 * looks PyInit__C up as soon as torch/_C.so is in, so no operator can have run.
 *
 * Nothing of PyTorch's is kept in place by us: where a program closes it, the callbacks go with it,
 * and a copy that is opened later is another one. */
#include "torch.h"

#include <errno.h>
#include <string.h>
#include "core/core.h"
#include "core/record.h"
#include "core/say.h"
#include "dl.h"
#include "elf_symbol.h"
#include "torch_forward.h"
#include "torch_inputs.h"

#define LIBRARY "libtorch_cpu.so"

_Atomic unsigned gt_torch_opened;
struct gt_torch_calls gt_torch_calls;
struct gt_torch_wants gt_torch_wants;

/* Release after the tables are written, acquire before they are read by gt_torch_live's callers. */
static _Atomic int live, failed;

/* The copy that our callbacks are in, and the loader's counts when it was last looked at. Of the
 * thread that holds `busy`. */
static atomic_flag busy = ATOMIC_FLAG_INIT;
static uintptr_t base;
static uint64_t seen_adds, seen_subs;

int gt_torch_live(void)
{
    return atomic_load_explicit(&live, memory_order_acquire);
}

int gt_torch_wants_memory(void)
{
    return gt_source_on(GT_SOURCE_TORCH) && gt_config.profile_memory &&
           !atomic_load_explicit(&failed, memory_order_relaxed);
}

static const struct call {
    size_t offset;
    const char *field, *name;
} calls[] = {
#define EXPORT(name)
#define CALL(result, field, parameters, name)                                                      \
    {offsetof(struct gt_torch_calls, field), #field, name},
#include "hooks/torch.def"
#undef CALL
#undef EXPORT
};
#define CALLS (sizeof(calls) / sizeof(*calls))

static void find_calls(const struct gt_elf *elf)
{
    for (size_t i = 0; i < CALLS; i++) {
        void *f = gt_elf_symbol(elf, calls[i].name);

        memcpy((char *)&gt_torch_calls + calls[i].offset, &f, sizeof(f));
    }
}

/* What was asked for but this version can't give is told once, and recorded without. */
static void choose(void)
{
    const struct gt_torch_calls *c = &gt_torch_calls;
    struct gt_torch_wants w = {
        .overloads = gt_config.capture_overload_names && c->overload_name,
        .shapes = gt_config.record_shapes && c->input_sizes,
        .flops = gt_config.with_flops && c->input_sizes,
        .forward = gt_config.stacks != 0,
    };

    if (gt_config.capture_overload_names && !c->overload_name)
        gt_say(GT_SAY_WARNING, "this version of PyTorch does not tell the overloads of operators");
    if ((gt_config.record_shapes || gt_config.with_flops) && !c->input_sizes)
        gt_say(GT_SAY_WARNING, "this version of PyTorch does not tell the shapes of inputs");
    gt_torch_wants = w;
}

/* One callback a scope, so that no field of a RecordFunction has to be read to know it. */
static void add_callbacks(void)
{
    for (unsigned scope = 0; scope < GT_TORCH_SCOPES; scope++) {
        struct gt_torch_callback c = {.start = gt_torch_stub(scope),
                                      .end = gt_torch_end,
                                      .sampling_probability = 1,
                                      .needs_inputs = gt_torch_wants.shapes | gt_torch_wants.flops};

        if (!c.start)
            continue;
        c.scopes[scope] = 1;
        gt_torch_calls.add_callback(c);
    }
}

/* Another copy of PyTorch has come in, or the first. Nobody calls us yet. */
static void start_with(const struct gt_elf *elf)
{
    atomic_store_explicit(&live, 0, memory_order_relaxed);
    find_calls(elf);
    if (!gt_torch_calls.add_callback || !gt_torch_calls.name) {
        if (!atomic_exchange_explicit(&failed, 1, memory_order_relaxed))
            gt_say(GT_SAY_WARNING, LIBRARY " lacks ",
                   calls[gt_torch_calls.add_callback ? 1 : 0].name,
                   ": PyTorch's operators are not recorded");
        return;
    }
    choose();
    if (gt_torch_wants.shapes | gt_torch_wants.flops)
        gt_torch_inputs_init();
    gt_torch_forward_init();
    add_callbacks();
    atomic_store_explicit(&failed, 0, memory_order_relaxed);
    atomic_store_explicit(&live, 1, memory_order_release);
}

/* Finds PyTorch, loaded in full. Another thread may be at it right now: what is still there when
 * the loader's lock has been free once is through. Never dlopen(RTLD_NOLOAD): in a constructor that
 * calls dlsym while this thread loads PyTorch, it would run other libraries' constructors out of
 * their order (libGLX's is one that dies of it). There PyTorch's own may not have run yet; all its
 * addresses are in place, and the list of callbacks makes itself at its first use. */
static int find_loaded(struct gt_elf *elf, uint64_t *adds, uint64_t *subs)
{
    uintptr_t before;

    if (gt_elf_find(LIBRARY, elf, adds, subs) < 0)
        return 0;
    if (elf->base == base && *subs == seen_subs)
        return 1;
    before = elf->base;
    gt_dl_global("getenv"); /* waits for the loader's lock */
    if (gt_elf_find(LIBRARY, elf, adds, subs) < 0)
        return 0;
    return elf->base == before ? 1 : -EAGAIN;
}

/* The copy that has our callbacks? If libraries were removed meanwhile, another may lie at the same
 * place. */
static int is_known(const struct gt_elf *elf, uint64_t subs)
{
    if (elf->base != base)
        return 0;
    return subs == seen_subs || !gt_torch_live() || !gt_torch_calls.has_callbacks ||
           gt_torch_calls.has_callbacks();
}

static void look(void)
{
    struct gt_elf elf;
    uint64_t adds, subs;
    int found;

    if (gt_elf_unchanged(seen_adds, seen_subs) || (found = find_loaded(&elf, &adds, &subs)) < 0)
        return;
    if (!found)
        atomic_store_explicit(&live, 0, memory_order_relaxed);
    else if (!is_known(&elf, subs))
        start_with(&elf);
    base = found ? elf.base : 0;
    seen_adds = adds;
    seen_subs = subs;
}

void gt_torch_look(void)
{
    int saved = errno;

    if (gt_source_on(GT_SOURCE_TORCH) &&
        !atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
        look();
        atomic_flag_clear_explicit(&busy, memory_order_release);
    }
    errno = saved;
}

void gt_torch_init(void)
{
    gt_torch_look();
}

/* No loader lock to wait for: this runs in the middle of PyTorch's allocators. The library is there
 * and relocated, since it is calling us. */
__attribute__((noinline, cold)) void *gt_torch_find_real(struct gt_torch_real *real)
{
    struct gt_elf elf;
    int saved = errno;
    unsigned at = atomic_load_explicit(&gt_torch_opened, memory_order_relaxed);
    void *fn =
        gt_elf_find(real->library, &elf, NULL, NULL) < 0 ? NULL : gt_elf_symbol(&elf, real->name);

    atomic_store_explicit(&real->fn, fn, memory_order_relaxed);
    atomic_store_explicit(&real->at, at, memory_order_release);
    errno = saved;
    return fn;
}
