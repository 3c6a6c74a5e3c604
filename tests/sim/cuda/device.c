/* cuInit and the devices: GTSIM_DEVICES (1) of them, alike, of compute capability 9.0. */
#include "sim.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* the CUDA version that this build of the library is of; see the Makefile */
#ifndef GTSIM_BUILT
#define GTSIM_BUILT 13000
#endif

int sim_state;

static int devices;
static uint64_t used[SIM_DEVICES]; /* bytes, under sim_lock */
static uint64_t total;
static pthread_once_t once = PTHREAD_ONCE_INIT;

int sim_devices(void)
{
    return devices;
}

/* Runs before destructors of libraries that were loaded first, as the real driver's does: from then
   on every call fails. */
static void end(void)
{
    sim_state = 2;
    if (sim_number("GTSIM_LEAKS", 0))
        sim_leaks();
}

static void start(void)
{
    devices = (int)sim_number("GTSIM_DEVICES", 1);
    if (devices > SIM_DEVICES)
        devices = SIM_DEVICES;
    total = (uint64_t)sim_number("GTSIM_MEMORY", (long)8 << 30);
    sim_clock_start();
    sim_state = devices > 0;
    if (sim_state)
        atexit(end);
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *handle = path && *path ? dlopen(path, RTLD_NOW) : NULL;
    int (*initialize)(void) = handle ? (int (*)(void))dlsym(handle, "InitializeInjection") : NULL;
    if (initialize)
        (void)initialize();
}

CUresult sim_cuInit(unsigned int Flags)
{
    static atomic_int told;

    if (Flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_once(&once, start);
    if (sim_state == 2)
        return CUDA_ERROR_DEINITIALIZED;
    if (!devices)
        return CUDA_ERROR_NO_DEVICE;
    if (!atomic_exchange(&told, 1))
        sim_announce(&(struct gtsim_resource){.cbid = 5});
    return CUDA_SUCCESS;
}

CUresult sim_cuDriverGetVersion(int *driverVersion)
{
    if (!driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = (int)sim_number("GTSIM_DRIVER_VERSION", GTSIM_BUILT);
    return CUDA_SUCCESS;
}

void sim_memory_add(int device, int64_t bytes)
{
    if (device >= 0 && device < SIM_DEVICES)
        used[device] += (uint64_t)bytes;
}

SIM_API uint64_t gtsim_memory_used(int device)
{
    pthread_mutex_lock(&sim_lock);
    uint64_t n = device >= 0 && device < SIM_DEVICES ? used[device] : 0;
    pthread_mutex_unlock(&sim_lock);
    return n;
}

static bool is_device(CUdevice d)
{
    return d >= 0 && d < devices;
}

CUresult sim_cuDeviceGetCount(int *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = devices;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetName(char *name, int len, CUdevice dev)
{
    if (!name || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)len, "Simulated GPU %d", dev);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    memset(uuid, 0x11 * (dev + 1), sizeof *uuid);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev)
{
    if (!luid || !deviceNodeMask)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    memset(luid, 0, 8);
    *deviceNodeMask = 0;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = total;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemGetInfo_v2(size_t *free, size_t *all)
{
    SIM_CONTEXT_OR_RETURN(c);
    if (!free || !all)
        return CUDA_ERROR_INVALID_VALUE;
    *all = total;
    *free = total - gtsim_memory_used(c->device);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    if (!pciBusId || len < 13)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", dev + 1);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    unsigned domain, bus;

    if (!dev || !pciBusId || sscanf(pciBusId, "%x:%x:", &domain, &bus) != 2)
        return CUDA_ERROR_INVALID_VALUE;
    if (domain || !is_device((int)bus - 1))
        return CUDA_ERROR_INVALID_DEVICE;
    *dev = (int)bus - 1;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *major = 9;
    *minor = 0;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    if (!canAccessPeer)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(dev) || !is_device(peerDev))
        return CUDA_ERROR_INVALID_DEVICE;
    *canAccessPeer = dev != peerDev;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                     CUdevice dstDevice)
{
    if (!value || srcDevice == dstDevice)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(srcDevice) || !is_device(dstDevice))
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attrib == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : 1;
    return CUDA_SUCCESS;
}

/* what is not here is 0: not supported */
static int attribute(CUdevice_attribute a, CUdevice d)
{
    static const struct {
        int attribute, value;
    } values[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 << 20},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
        {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
        {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
        {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
        {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
        {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 1},
        {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
        {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0},
        {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    };

    if (a == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
        return d + 1;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i].attribute == (int)a)
            return values[i].value;
    }
    return 0;
}

CUresult sim_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    if (!pi || (int)attrib <= 0 || attrib >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *pi = attribute(attrib, dev);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
    if (!prop)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *prop = (CUdevprop){.maxThreadsPerBlock = 1024,
                        .maxThreadsDim = {1024, 1024, 64},
                        .maxGridSize = {0x7fffffff, 65535, 65535},
                        .sharedMemPerBlock = 49152,
                        .totalConstantMemory = 65536,
                        .SIMDWidth = 32,
                        .memPitch = 0x7fffffff,
                        .regsPerBlock = 65536,
                        .clockRate = 1000000,
                        .textureAlign = 512};
    return CUDA_SUCCESS;
}
