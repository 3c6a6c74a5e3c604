/* Contexts of CUDA's driver. One that ends takes along what was allocated in it and not freed.
 * Called by the wrappers of functions that end contexts or give primary ones, and of those that
 * allocate, on the program's threads, while the range of the call is open. */
#include "cuda.h"

#include <errno.h>

/* ---- the driver's functions that we call ---- */

enum { GET_CURRENT, GET_DEVICE, GET_STATE, LOOK_UPS };
static const struct gt_hook look_up[LOOK_UPS] = {
    {"cuCtxGetCurrent", NULL, NULL},
    {"cuCtxGetDevice", NULL, NULL},
    {"cuDevicePrimaryCtxGetState", NULL, NULL},
};
static struct gt_cuda_real look_up_real[LOOK_UPS];
static const char *const libraries[] = {"libcuda.so.1", "libcuda.so", NULL};
static const struct gt_cuda_api api = {look_up, NULL, look_up_real, LOOK_UPS, libraries};

/* 1: the device's primary context is there, or that is not known. */
static int is_active(CUdevice device)
{
    CUresult (*get)(CUdevice, unsigned *, int *) =
        (CUresult(*)(CUdevice, unsigned *, int *))gt_cuda_real(&api, look_up_real, GET_STATE);
    unsigned flags;
    int active = 1;

    gt_cuda_thread.asking++;
    if (!get || get(device, &flags, &active))
        active = 1;
    gt_cuda_thread.asking--;
    return active;
}

CUcontext gt_cuda_context_now(CUdevice *device)
{
    CUresult (*get)(CUcontext *) =
        (CUresult(*)(CUcontext *))gt_cuda_real(&api, look_up_real, GET_CURRENT);
    CUresult (*get_device)(CUdevice *) =
        (CUresult(*)(CUdevice *))gt_cuda_real(&api, look_up_real, GET_DEVICE);
    CUcontext context = NULL;
    int saved = errno;

    *device = 0;
    gt_cuda_thread.asking++;
    if (!get || get(&context))
        context = NULL;
    if (!get_device || get_device(device) || *device < 0)
        *device = 0;
    gt_cuda_thread.asking--;
    errno = saved;
    return context;
}

/* ---- primary contexts ---- */

#define DEVICES 64
static _Atomic(CUcontext) primaries[DEVICES];

void gt_cuda_primary(CUdevice device, CUcontext context)
{
    if (device >= 0 && device < DEVICES)
        atomic_store_explicit(&primaries[device], context, memory_order_relaxed);
}

/* ---- their end ---- */

struct gt_cuda_ending gt_cuda_ending_context(CUcontext context)
{
    return (struct gt_cuda_ending){context, -1, 0};
}

struct gt_cuda_ending gt_cuda_ending_primary(CUdevice device, int counted)
{
    struct gt_cuda_ending e = {NULL, device, counted};

    if (device >= 0 && device < DEVICES)
        e.context = atomic_load_explicit(&primaries[device], memory_order_relaxed);
    return e;
}

struct gt_cuda_ending gt_cuda_ending_devices(void)
{
    CUdevice device;

    return gt_cuda_ending_primary(gt_cuda_context_now(&device) ? device : -1, 0);
}

/* By it the call finds its blocks again: until it has succeeded they may be anybody's once more,
 * and after it a new context may have the address of the old one. A place on a stack is no context.
 */
static uint64_t token(const struct gt_cuda_ending *e)
{
    return (uint64_t)(uintptr_t)e;
}

void gt_cuda_context_ending(const struct gt_cuda_ending *e)
{
    if (e->context)
        gt_memory_ending(GT_SOURCE_CUDA, (uint64_t)(uintptr_t)e->context, token(e));
}

void gt_cuda_context_ended(const struct gt_cuda_ending *e, int failed)
{
    CUcontext ended = e->context;
    int saved = errno;

    if (!ended)
        return;
    if (!failed && e->counted)
        failed = is_active(e->device);
    gt_memory_ended(GT_SOURCE_CUDA, (uint64_t)(uintptr_t)ended, token(e), failed);
    if (!failed && e->device >= 0)
        atomic_compare_exchange_strong_explicit(&primaries[e->device], &ended, NULL,
                                                memory_order_relaxed, memory_order_relaxed);
    errno = saved;
}
