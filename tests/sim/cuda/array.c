/* Arrays: rows of elements, packed. */
#include "sim.h"
#include <stdlib.h>

static size_t element_bytes(CUarray_format format)
{
    switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

CUresult sim_cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    SIM_CONTEXT_OR_RETURN(c);
    if (!pHandle || !pAllocateArray || !pAllocateArray->Width)
        return CUDA_ERROR_INVALID_VALUE;
    size_t element = element_bytes(pAllocateArray->Format);
    if (!element)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUarray a = sim_new(SIM_ARRAY, sizeof *a);
    if (!a)
        return CUDA_ERROR_OUT_OF_MEMORY;
    a->shape = *pAllocateArray;
    a->element = element * pAllocateArray->NumChannels;
    a->pitch = a->element * a->shape.Width;
    a->height = a->shape.Height ? a->shape.Height : 1;
    a->bytes = a->pitch * a->height * (a->shape.Depth ? a->shape.Depth : 1);
    a->device = c->device;
    a->data = a->bytes ? calloc(1, a->bytes) : NULL;
    if (!a->data) {
        sim_drop(a);
        return a->bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&sim_lock);
    sim_memory_add(a->device, (int64_t)a->bytes);
    pthread_mutex_unlock(&sim_lock);
    *pHandle = a;
    return CUDA_SUCCESS;
}

CUresult sim_cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    if (!pAllocateArray)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = pAllocateArray->Width,
                                 .Height = pAllocateArray->Height,
                                 .Format = pAllocateArray->Format,
                                 .NumChannels = pAllocateArray->NumChannels};
    return sim_cuArray3DCreate_v2(pHandle, &d);
}

CUresult sim_cuArrayDestroy(CUarray hArray)
{
    if (!sim_is(hArray, SIM_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&sim_lock);
    sim_memory_add(hArray->device, -(int64_t)hArray->bytes);
    pthread_mutex_unlock(&sim_lock);
    free(hArray->data);
    sim_drop(hArray);
    return CUDA_SUCCESS;
}

CUresult sim_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    if (!pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(hArray, SIM_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    *pArrayDescriptor = hArray->shape;
    return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    if (!pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(hArray, SIM_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){hArray->shape.Width, hArray->shape.Height,
                                                hArray->shape.Format, hArray->shape.NumChannels};
    return CUDA_SUCCESS;
}
