/* CUDA's runtime: a wrapper for each line of hooks/cudart.def, reached by the exported name and by
 * dlsym, on the program's threads. cuda.h says what each does. Only a runtime that is a library of
 * its own comes here: one that is linked into the program is seen by its calls of the driver. */
#include "cuda.h"

#include "core/layout.h"

#define HOOK(name, ...) I_##name,
#define WIDE HOOK
enum {
#include "hooks/cudart.def"
    COUNT
};
#undef HOOK

#define HOOK(name, key, kind, ...) {#key, 0, GT_CUDA_##kind},
static const struct gt_cuda_info gt_cuda_runtime_info[] = {
#include "hooks/cudart.def"
};
#undef HOOK

static struct gt_cuda_real gt_cuda_runtime_real[COUNT];
static const struct gt_cuda_api gt_cuda_runtime;

#define HOOK(name, key, kind, bytes, parameters, arguments)                                        \
    GT_CUDA_WRAPPER(gt_cuda_runtime, cudaError_t, name, kind, bytes, parameters, arguments)
#undef WIDE
/* Where fewer are passed, what lies in the places of the others goes on as it is. */
#define WIDE(name, key, kind, bytes)                                                               \
    GT_CUDA_WRAPPER(gt_cuda_runtime, cudaError_t, name, kind, bytes,                               \
                    (uintptr_t a0, uintptr_t a1, uintptr_t a2, uintptr_t a3, uintptr_t a4,         \
                     uintptr_t a5, uintptr_t a6, uintptr_t a7, uintptr_t a8),                      \
                    (a0, a1, a2, a3, a4, a5, a6, a7, a8))
#include "hooks/cudart.def"
#undef HOOK
#undef WIDE

#define HOOK(name, ...) {#name, (void (*)(void))on_##name, NULL},
#define WIDE HOOK
static const struct gt_hook by_name[] = {
#include "hooks/cudart.def"
};
#undef HOOK

static const char *const libraries[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0",
                                        NULL};

static const struct gt_cuda_api gt_cuda_runtime = {by_name, gt_cuda_runtime_info,
                                                   gt_cuda_runtime_real, COUNT, libraries};

static void learn(size_t i, void *theirs)
{
    gt_cuda_learn(&gt_cuda_runtime, i, theirs);
}

const struct gt_hooks gt_cudart_hooks = {
    .prefix = "cuda",
    .prefix_len = 4,
    .hooks = by_name,
    .count = COUNT,
    .source = GT_SOURCE_CUDA,
    .learn = learn,
    .inside = gt_cuda_inside,
    .libraries = libraries,
};

/* what compiled code calls */
const struct gt_hooks gt_cudart_compiled_hooks = {
    .prefix = "__cuda",
    .prefix_len = 6,
    .hooks = by_name,
    .count = COUNT,
    .source = GT_SOURCE_CUDA,
    .learn = learn,
    .inside = gt_cuda_inside,
    .libraries = libraries,
};
