/* Allocations that the driver knows in another form: pitched, arrays, what a pointer is. */
#include "tests/sim/cudart/rt.h"
#include <string.h>

/* The widest element that a pitched allocation must be aligned for. */
#define ELEMENT_BYTES 16

RT_API cudaError_t cudaFree(void *devPtr)
{
    RT(cudaFree, 3020, devPtr);
    return RT_END(devPtr ? drv.cuMemFree(RT_ADDRESS(devPtr)) : CUDA_SUCCESS);
}

RT_API cudaError_t cudaMallocHost(void **ptr, size_t size)
{
    RT(cudaMallocHost, 3020, ptr, size);
    return RT_END(drv.cuMemHostAlloc(ptr, size, 0));
}

RT_API cudaError_t cudaFreeHost(void *ptr)
{
    RT(cudaFreeHost, 3020, ptr);
    return RT_END(ptr ? drv.cuMemFreeHost(ptr) : CUDA_SUCCESS);
}

static CUresult pitched(void **p, size_t *pitch, size_t width, size_t rows)
{
    CUdeviceptr d = 0;
    CUresult r = drv.cuMemAllocPitch(&d, pitch, width, rows, ELEMENT_BYTES);
    if (!r)
        *p = (void *)(uintptr_t)d;
    return r;
}

RT_API cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
    RT(cudaMallocPitch, 3020, devPtr, pitch, width, height);
    if (!devPtr || !pitch)
        return RT_END(CUDA_ERROR_INVALID_VALUE);
    return RT_END(pitched(devPtr, pitch, width, height));
}

RT_API cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
    RT(cudaMalloc3D, 3020, pitchedDevPtr, extent);
    if (!pitchedDevPtr)
        return RT_END(CUDA_ERROR_INVALID_VALUE);
    pitchedDevPtr->xsize = extent.width;
    pitchedDevPtr->ysize = extent.height;
    return RT_END(pitched(&pitchedDevPtr->ptr, &pitchedDevPtr->pitch, extent.width,
                          extent.height * extent.depth));
}

/* ---- arrays */
static CUresult format_of(const struct cudaChannelFormatDesc *d, CUarray_format *format,
                          unsigned *n)
{
    static const CUarray_format by_kind[3][3] = {
        {CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32},
        {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32},
        {0, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT},
    };
    int size = d->x == 8 ? 0 : d->x == 16 ? 1 : d->x == 32 ? 2 : -1;
    if (size < 0 || (unsigned)d->f > cudaChannelFormatKindFloat || !by_kind[d->f][size])
        return CUDA_ERROR_INVALID_VALUE;
    *format = by_kind[d->f][size];
    *n = d->w ? 4 : d->y ? 2 : 1;
    return CUDA_SUCCESS;
}

static CUresult array_create(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                             struct cudaExtent extent, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {
        .Width = extent.width, .Height = extent.height, .Depth = extent.depth, .Flags = flags};
    CUresult r =
        !array || !desc ? CUDA_ERROR_INVALID_VALUE : format_of(desc, &d.Format, &d.NumChannels);
    return r ? r : drv.cuArray3DCreate((CUarray *)array, &d);
}

RT_API cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                                   size_t width, size_t height, unsigned flags)
{
    RT(cudaMallocArray, 3020, array, desc, width, height, flags);
    return RT_END(array_create(array, desc, (struct cudaExtent){width, height, 0}, flags));
}

RT_API cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                                     struct cudaExtent extent, unsigned flags)
{
    RT(cudaMalloc3DArray, 3020, array, desc, extent, flags);
    return RT_END(array_create(array, desc, extent, flags));
}

RT_API cudaError_t cudaFreeArray(cudaArray_t array)
{
    RT(cudaFreeArray, 3020, array);
    return RT_END(array ? drv.cuArrayDestroy((CUarray)array) : CUDA_SUCCESS);
}

static unsigned format_bytes(CUarray_format f)
{
    switch (f) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    default:
        return 4;
    }
}

CUresult rt_element_bytes(CUarray array, size_t *bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUresult r = drv.cuArray3DGetDescriptor(&d, array);
    if (!r)
        *bytes = (size_t)format_bytes(d.Format) * d.NumChannels;
    return r;
}

RT_API cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent,
                                    unsigned *flags, cudaArray_t array)
{
    RT(cudaArrayGetInfo, 4010, desc, extent, flags, array);
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUresult r = drv.cuArray3DGetDescriptor(&d, (CUarray)array);
    if (r)
        return RT_END(r);
    int bits = (int)format_bytes(d.Format) * 8;
    if (desc) {
        desc->x = bits;
        desc->y = d.NumChannels > 1 ? bits : 0;
        desc->z = desc->w = d.NumChannels > 2 ? bits : 0;
        desc->f = d.Format == CU_AD_FORMAT_FLOAT || d.Format == CU_AD_FORMAT_HALF
                      ? cudaChannelFormatKindFloat
                  : d.Format < CU_AD_FORMAT_SIGNED_INT8 ? cudaChannelFormatKindUnsigned
                                                        : cudaChannelFormatKindSigned;
    }
    if (extent)
        *extent = (struct cudaExtent){d.Width, d.Height, d.Depth};
    if (flags)
        *flags = d.Flags;
    return RT_END(CUDA_SUCCESS);
}

/* ---- pointers */
RT_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                            const void *ptr)
{
    RT(cudaPointerGetAttributes, 4000, attributes, ptr);
    if (!attributes)
        return RT_END(CUDA_ERROR_INVALID_VALUE);
    memset(attributes, 0, sizeof *attributes);
    attributes->device = -1;
    attributes->type = cudaMemoryTypeUnregistered;
    CUdeviceptr p = RT_ADDRESS(ptr), device = 0;
    unsigned type = 0;
    int managed = 0;
    if (drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p)) {
        attributes->hostPointer = (void *)ptr; /* ordinary memory is no error */
        return RT_END(CUDA_SUCCESS);
    }
    (void)drv.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
    (void)drv.cuPointerGetAttribute(&attributes->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
    if (!drv.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p))
        attributes->devicePointer = (void *)(uintptr_t)device;
    attributes->type = managed                      ? cudaMemoryTypeManaged
                       : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                                    : cudaMemoryTypeDevice;
    if (attributes->type != cudaMemoryTypeDevice)
        attributes->hostPointer = (void *)ptr;
    return RT_END(CUDA_SUCCESS);
}
