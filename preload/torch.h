/* PyTorch's operators: when we listen, and what the files of the part share.
 *   torch.c         finds libtorch_cpu.so and has our callbacks called
 *   torch_op.c      the callbacks
 *   torch_stub.c    the instructions between PyTorch's C++ and our C
 *   torch_inputs.c  input sizes; torch_shapes.c  as text; torch_flops.c  operations of a call
 *   torch_forward.c which node of the autograd graph an operator makes or is of
 *   torch_memory.c  allocations; torch_known.c  which of them the program's own profiler knows
 *   torch_window.c  when the program's own profiler runs */
#ifndef GT_TORCH_H
#define GT_TORCH_H

#include <stdatomic.h>
#include "abi/torch.h"

/* The constructor's part: a program that links PyTorch has it in place already. */
void gt_torch_init(void);

/* 1 while our callbacks are called for every operator of this process: then the NVTX and ITT texts
 * that PyTorch writes for the same operators are duplicates. Any thread, no lock. */
int gt_torch_live(void);

/* ---- dl.c ---- */

/* How many dlopens have begun. Counted before the real one, since dlopen leaves by a jump. */
extern _Atomic unsigned gt_torch_opened __attribute__((visibility("hidden")));
/* Looks whether a library that came in since is PyTorch. Called on the way into dlsym, which is
 * what everybody does first with a library that was opened, and may wait for the loader's lock as
 * dlsym itself does. Cheap when nothing has changed. */
void gt_torch_look(void);

/* ---- between the files ---- */

/* PyTorch's functions that we call; those that this version lacks are NULL. Constant once
 * gt_torch_live(). */
struct gt_torch_calls {
#define EXPORT(name)
#define CALL(result, field, parameters, name) result(*field) parameters;
#include "hooks/torch.def"
#undef CALL
#undef EXPORT
};
extern struct gt_torch_calls gt_torch_calls __attribute__((visibility("hidden")));

/* What the configuration asks for and this version can give, for the callbacks. Constant likewise.
 */
struct gt_torch_wants {
    uint8_t overloads, shapes, flops,
        forward; /* forward: which operator a backward one belongs to */
};
extern struct gt_torch_wants gt_torch_wants __attribute__((visibility("hidden")));

/* 1 if PyTorch's memory is to be recorded: the configuration says so and PyTorch is none that we
 * can't follow. The same answer from the first call on, but for the latter. */
int gt_torch_wants_memory(void);

/* torch_op.c: what start and end do. `scope` is a constant of each stub. */
struct gt_torch_context *gt_torch_start(const struct gt_torch_rf *rf, unsigned scope);
void gt_torch_end(const struct gt_torch_rf *rf, struct gt_torch_context *context);

/* torch_stub.c: the start function of a scope, NULL for scopes that we do not record. */
void (*gt_torch_stub(unsigned scope))(void);

/* A function of PyTorch's that we stand in front of. `at` is gt_torch_opened when it was looked up:
 * a library can't have been replaced without another dlopen. */
struct gt_torch_real {
    const char *library, *name;
    _Atomic(void *) fn;
    _Atomic unsigned at;
};
/* The function itself, NULL if it can't be found. */
void *gt_torch_find_real(struct gt_torch_real *real);
static inline void *gt_torch_real(struct gt_torch_real *real)
{
    /* acquire pairs with the release in gt_torch_find_real */
    unsigned at = atomic_load_explicit(&real->at, memory_order_acquire);
    void *fn = atomic_load_explicit(&real->fn, memory_order_relaxed);

    if (__builtin_expect(fn && at == atomic_load_explicit(&gt_torch_opened, memory_order_relaxed),
                         1))
        return fn;
    return gt_torch_find_real(real);
}

#endif
