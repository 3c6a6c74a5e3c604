/* CUDA's driver: a wrapper for each line of hooks/cuda.def, reached by the exported name, by dlsym
 * and by cuGetProcAddress, on the program's threads. cuda.h says what each does. */
#include "cuda.h"

#include "core/layout.h"

#define HOOK(name, ...) I_##name,
enum {
#include "hooks/cuda.def"
    COUNT
};
#undef HOOK

#define HOOK(name, key, since, kind, ...) {#key, since, GT_CUDA_##kind},
static const struct gt_cuda_info gt_cuda_driver_info[] = {
#include "hooks/cuda.def"
};
#undef HOOK

static struct gt_cuda_real gt_cuda_driver_real[COUNT];

#define HOOK(name, key, since, kind, bytes, parameters, arguments, ...)                            \
    GT_CUDA_WRAPPER(gt_cuda_driver, CUresult, name, kind, bytes, parameters, arguments,            \
                    ##__VA_ARGS__)
#include "hooks/cuda.def"
#undef HOOK

#define HOOK(name, ...) {#name, (void (*)(void))on_##name, NULL},
static const struct gt_hook by_name[] = {
#include "hooks/cuda.def"
};
#undef HOOK

static const char *const libraries[] = {"libcuda.so.1", "libcuda.so", NULL};

const struct gt_cuda_api gt_cuda_driver = {by_name, gt_cuda_driver_info, gt_cuda_driver_real, COUNT,
                                           libraries};

static void learn(size_t i, void *theirs)
{
    gt_cuda_learn(&gt_cuda_driver, i, theirs);
}

const struct gt_hooks gt_cuda_hooks = {
    .prefix = "cu",
    .prefix_len = 2,
    .hooks = by_name,
    .count = COUNT,
    .source = GT_SOURCE_CUDA,
    .learn = learn,
    .inside = gt_cuda_inside,
    .libraries = libraries,
};
