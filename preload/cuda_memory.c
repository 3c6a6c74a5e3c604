/* Memory that CUDA's driver gives and takes: called by the wrappers of the driver's functions of
 * kinds ALLOC and FREE, on the program's threads, while the range of the call is open. The
 * runtime's functions come down to these. Host memory, which the driver gives too, is not a
 * device's. */
#include "cuda.h"

#include <errno.h>
#include <string.h>
#include "core/record.h"

static const struct gt_hook look_up[] = {{"cuCtxGetDevice", NULL, NULL}};
static struct gt_cuda_real look_up_real[1];
static const char *const libraries[] = {"libcuda.so.1", "libcuda.so", NULL};
static const struct gt_cuda_api api = {look_up, NULL, look_up_real, 1, libraries};

/* That of the calling thread's context, which the allocation was made in. */
static uint32_t device_now(void)
{
    CUresult (*get)(CUdevice *) = (CUresult(*)(CUdevice *))gt_cuda_real(&api, look_up_real, 0);
    CUdevice device = 0;
    int saved = errno;

    if (!get || get(&device) || device < 0)
        device = 0;
    errno = saved;
    return (uint32_t)device;
}

/* Host memory; or its stream is captured: what it would allocate or free happens when the graph is
 * launched, as part of it. */
static int is_left_out(const struct gt_cuda_info *info, CUstream stream)
{
    return strstr(info->key, "Host") || (stream != GT_CUDA_UNTIMED && gt_cuda_captured(stream));
}

void gt_cuda_allocated(const struct gt_cuda_info *info, CUstream stream, uint64_t address,
                       uint64_t bytes)
{
    if (bytes && !is_left_out(info, stream))
        gt_memory_allocated(GT_SOURCE_CUDA, device_now(), address, bytes);
}

struct gt_memory_block gt_cuda_freeing(int begun, const struct gt_cuda_info *info, CUstream stream,
                                       uint64_t address)
{
    if (begun == GT_CUDA_OFF || is_left_out(info, stream))
        return (struct gt_memory_block){0};
    return gt_memory_freeing(GT_SOURCE_CUDA, address);
}
