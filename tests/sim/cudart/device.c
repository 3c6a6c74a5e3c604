/* Devices: which one the thread uses, what it is. */
#include "tests/sim/cudart/rt.h"
#include <string.h>

RT_API cudaError_t cudaGetDeviceCount(int *count)
{
    if (count)
        *count = 0; /* also where there is no driver */
    RT_DRIVER(cudaGetDeviceCount, 3020, count);
    return RT_END(count ? drv.cuDeviceGetCount(count) : CUDA_ERROR_INVALID_VALUE);
}

RT_API cudaError_t cudaSetDevice(int device)
{
    RT_DRIVER(cudaSetDevice, 3020, device);
    return RT_END(rt_set_device(device));
}

RT_API cudaError_t cudaInitDevice(int device, unsigned deviceFlags, unsigned flags)
{
    RT_DRIVER(cudaInitDevice, 12000, device, deviceFlags, flags);
    CUcontext c;
    return RT_END(rt_primary(device, &c));
}

RT_API cudaError_t cudaGetDevice(int *device)
{
    RT_DRIVER(cudaGetDevice, 3020, device);
    if (!device)
        return RT_END(CUDA_ERROR_INVALID_VALUE);
    *device = rt_device();
    return RT_END(CUDA_SUCCESS);
}

RT_API cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *prop)
{
    RT_DRIVER(cudaChooseDevice, 3020, device, prop);
    if (!device || !prop)
        return RT_END(CUDA_ERROR_INVALID_VALUE);
    *device = 0;
    return RT_END(CUDA_SUCCESS);
}

RT_API cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    RT_DRIVER(cudaSetDeviceFlags, 3020, flags);
    return RT_END(drv.cuDevicePrimaryCtxSetFlags(rt_device(), flags));
}

RT_API cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
    RT_DRIVER(cudaGetDeviceFlags, 7000, flags);
    int active;
    return RT_END(drv.cuDevicePrimaryCtxGetState(rt_device(), flags, &active));
}

RT_API cudaError_t cudaDeviceSynchronize(void)
{
    RT_VOID(cudaDeviceSynchronize, 3020);
    return RT_END(drv.cuCtxSynchronize());
}

RT_API cudaError_t cudaDeviceReset(void)
{
    RT_NO_PARAMS(cudaDeviceReset_v3020, RT_NEEDS_DRIVER, NULL);
    return RT_END(rt_reset_device());
}

RT_API cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned flags)
{
    RT(cudaDeviceEnablePeerAccess, 4000, peerDevice, flags);
    CUcontext c;
    CUresult r = rt_primary(peerDevice, &c);
    return RT_END(r ? r : drv.cuCtxEnablePeerAccess(c, flags));
}

RT_API cudaError_t cudaDeviceDisablePeerAccess(int peerDevice)
{
    RT(cudaDeviceDisablePeerAccess, 4000, peerDevice);
    CUcontext c;
    CUresult r = rt_primary(peerDevice, &c);
    return RT_END(r ? r : drv.cuCtxDisablePeerAccess(c));
}

/* Where each attribute of the driver goes in the structure. Textures and surfaces are left at 0. */
struct place {
    CUdevice_attribute attribute;
    size_t at;
    bool wide; /* size_t, not int */
};
#define INT(attribute, field)                                                                      \
    {                                                                                              \
        CU_DEVICE_ATTRIBUTE_##attribute, offsetof(struct cudaDeviceProp, field), false             \
    }
#define SIZE(attribute, field)                                                                     \
    {                                                                                              \
        CU_DEVICE_ATTRIBUTE_##attribute, offsetof(struct cudaDeviceProp, field), true              \
    }
static const struct place places[] = {
    INT(COMPUTE_CAPABILITY_MAJOR, major),
    INT(COMPUTE_CAPABILITY_MINOR, minor),
    INT(MULTIPROCESSOR_COUNT, multiProcessorCount),
    INT(WARP_SIZE, warpSize),
    INT(MAX_THREADS_PER_BLOCK, maxThreadsPerBlock),
    INT(MAX_THREADS_PER_MULTIPROCESSOR, maxThreadsPerMultiProcessor),
    INT(MAX_BLOCKS_PER_MULTIPROCESSOR, maxBlocksPerMultiProcessor),
    INT(MAX_BLOCK_DIM_X, maxThreadsDim[0]),
    INT(MAX_BLOCK_DIM_Y, maxThreadsDim[1]),
    INT(MAX_BLOCK_DIM_Z, maxThreadsDim[2]),
    INT(MAX_GRID_DIM_X, maxGridSize[0]),
    INT(MAX_GRID_DIM_Y, maxGridSize[1]),
    INT(MAX_GRID_DIM_Z, maxGridSize[2]),
    INT(MAX_REGISTERS_PER_BLOCK, regsPerBlock),
    INT(MAX_REGISTERS_PER_MULTIPROCESSOR, regsPerMultiprocessor),
    SIZE(MAX_SHARED_MEMORY_PER_BLOCK, sharedMemPerBlock),
    SIZE(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, sharedMemPerBlockOptin),
    SIZE(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, sharedMemPerMultiprocessor),
    SIZE(RESERVED_SHARED_MEMORY_PER_BLOCK, reservedSharedMemPerBlock),
    SIZE(TOTAL_CONSTANT_MEMORY, totalConstMem),
    SIZE(MAX_PITCH, memPitch),
    SIZE(TEXTURE_ALIGNMENT, textureAlignment),
    SIZE(TEXTURE_PITCH_ALIGNMENT, texturePitchAlignment),
    SIZE(SURFACE_ALIGNMENT, surfaceAlignment),
    INT(GLOBAL_MEMORY_BUS_WIDTH, memoryBusWidth),
    INT(L2_CACHE_SIZE, l2CacheSize),
    INT(MAX_PERSISTING_L2_CACHE_SIZE, persistingL2CacheMaxSize),
    INT(INTEGRATED, integrated),
    INT(CAN_MAP_HOST_MEMORY, canMapHostMemory),
    INT(CONCURRENT_KERNELS, concurrentKernels),
    INT(ECC_ENABLED, ECCEnabled),
    INT(PCI_BUS_ID, pciBusID),
    INT(PCI_DEVICE_ID, pciDeviceID),
    INT(PCI_DOMAIN_ID, pciDomainID),
    INT(ASYNC_ENGINE_COUNT, asyncEngineCount),
    INT(UNIFIED_ADDRESSING, unifiedAddressing),
    INT(STREAM_PRIORITIES_SUPPORTED, streamPrioritiesSupported),
    INT(MANAGED_MEMORY, managedMemory),
    INT(CONCURRENT_MANAGED_ACCESS, concurrentManagedAccess),
    INT(PAGEABLE_MEMORY_ACCESS, pageableMemoryAccess),
    INT(COOPERATIVE_LAUNCH, cooperativeLaunch),
    INT(CLUSTER_LAUNCH, clusterLaunch),
    INT(MEMORY_POOLS_SUPPORTED, memoryPoolsSupported),
    INT(HOST_REGISTER_SUPPORTED, hostRegisterSupported),
    INT(IPC_EVENT_SUPPORTED, ipcEventSupported),
};

RT_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    RT_DRIVER(cudaGetDeviceProperties, 12000, prop, device);
    if (!prop)
        return RT_END(CUDA_ERROR_INVALID_VALUE);
    memset(prop, 0, sizeof *prop);
    CUresult r = drv.cuDeviceGetName(prop->name, sizeof prop->name, device);
    if (!r)
        r = drv.cuDeviceTotalMem(&prop->totalGlobalMem, device);
    if (!r)
        r = drv.cuDeviceGetUuid((CUuuid *)&prop->uuid, device);
    for (size_t i = 0; i < sizeof places / sizeof *places && !r; i++) {
        int v = 0;
        if (drv.cuDeviceGetAttribute(&v, places[i].attribute, device))
            continue; /* an older driver may not know it */
        char *at = (char *)prop + places[i].at;
        if (places[i].wide)
            *(size_t *)(void *)at = (size_t)v;
        else
            *(int *)(void *)at = v;
    }
    return RT_END(r);
}
