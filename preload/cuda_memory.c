/* Memory that CUDA's driver gives and takes: called by the wrappers of the driver's functions of
 * kinds ALLOC and FREE, on the program's threads, while the range of the call is open. The
 * runtime's functions come down to these. Host memory, which the driver gives too, is not a
 * device's. */
#include "cuda.h"

#include <string.h>
#include "core/record.h"

/* Host memory; or its stream is captured: what it would allocate or free happens when the graph is
 * launched, as part of it. */
static int is_left_out(const struct gt_cuda_info *info, CUstream stream)
{
    return strstr(info->key, "Host") || (stream != GT_CUDA_UNTIMED && gt_cuda_captured(stream));
}

/* It is of no context, and stays when one ends: so the driver's manual says of these. */
static int stays(const struct gt_cuda_info *info)
{
    return strstr(info->key, "Async") || !strcmp(info->key, "cuMemCreate");
}

void gt_cuda_allocated(const struct gt_cuda_info *info, CUstream stream, uint64_t address,
                       uint64_t bytes)
{
    CUdevice device = 0;
    CUcontext context;

    if (!bytes || is_left_out(info, stream))
        return;
    context = gt_cuda_context_now(&device);
    gt_memory_allocated_in(GT_SOURCE_CUDA, (uint32_t)device,
                           stays(info) ? 0 : (uint64_t)(uintptr_t)context, address, bytes);
}

struct gt_memory_block gt_cuda_freeing(int begun, const struct gt_cuda_info *info, CUstream stream,
                                       uint64_t address)
{
    if (begun == GT_CUDA_OFF || is_left_out(info, stream))
        return (struct gt_memory_block){0};
    return gt_memory_freeing(GT_SOURCE_CUDA, address);
}
