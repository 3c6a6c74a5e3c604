/* Sets of memory. None waits, as with the real driver's for device memory. */
#include "sim.h"
#include <string.h>

CUresult sim_set_work(struct sim_work *w, CUdeviceptr to, size_t pitch, unsigned value,
                      unsigned element, size_t width, size_t height)
{
    memset(w, 0, sizeof *w);
    w->type = CU_GRAPH_NODE_TYPE_MEMSET;
    w->set.base = (char *)to;
    w->set.pitch = pitch;
    w->set.value = value;
    w->set.element = element;
    w->set.width = width;
    w->set.height = height;
    if (!width || !height)
        return CUDA_SUCCESS;
    if ((element != 1 && element != 2 && element != 4) || to % element ||
        (height > 1 && pitch < width * element))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sim_lock);
    const struct sim_block *b = sim_block_of((void *)to);
    bool inside = b && w->set.base + (height - 1) * pitch + width * element <= b->start + b->size;
    if (b) {
        w->set.kind = b->kind;
        w->set.device = b->device;
    }
    pthread_mutex_unlock(&sim_lock);
    return inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width,
                    size_t height, CUstream handle)
{
    struct sim_work w;

    SIM_STREAM_OR_RETURN(s, handle);
    CUresult r = sim_set_work(&w, to, pitch, value, element, width, height);
    if (r || !width || !height)
        return r;
    return sim_submit(s, &w, false);
}

CUresult sim_cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    return set(dstDevice, 0, uc, 1, N, 1, NULL);
}

CUresult sim_cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
    return set(dstDevice, 0, us, 2, N, 1, NULL);
}

CUresult sim_cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
    return set(dstDevice, 0, ui, 4, N, 1, NULL);
}

CUresult sim_cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                             size_t Height)
{
    return set(dstDevice, dstPitch, uc, 1, Width, Height, NULL);
}

CUresult sim_cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                              size_t Width, size_t Height)
{
    return set(dstDevice, dstPitch, us, 2, Width, Height, NULL);
}

CUresult sim_cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                              size_t Height)
{
    return set(dstDevice, dstPitch, ui, 4, Width, Height, NULL);
}

CUresult sim_cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    return set(dstDevice, 0, uc, 1, N, 1, hStream);
}

CUresult sim_cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
    return set(dstDevice, 0, us, 2, N, 1, hStream);
}

CUresult sim_cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
    return set(dstDevice, 0, ui, 4, N, 1, hStream);
}

CUresult sim_cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                               size_t Width, size_t Height, CUstream hStream)
{
    return set(dstDevice, dstPitch, uc, 1, Width, Height, hStream);
}

CUresult sim_cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                                size_t Width, size_t Height, CUstream hStream)
{
    return set(dstDevice, dstPitch, us, 2, Width, Height, hStream);
}

CUresult sim_cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                                size_t Width, size_t Height, CUstream hStream)
{
    return set(dstDevice, dstPitch, ui, 4, Width, Height, hStream);
}
