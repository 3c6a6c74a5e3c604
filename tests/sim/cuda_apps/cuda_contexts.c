/* Contexts that end with memory in them that nobody freed. Usage: cuda_contexts CUBIN */
#include "cuda_client.h"

/* 1000 bytes of each kind that goes with its context, and of those that stay. */
static void allocate(void)
{
    CUdeviceptr p;
    CUarray array;
    CUmemoryPool pool;
    void *host;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle;

    OK(cuMemAlloc(&p, 1000));
    OK(cuMemAllocManaged(&p, 1000, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemAllocHost(&host, 1000));
    OK(cuArrayCreate(&array, &(CUDA_ARRAY_DESCRIPTOR){250, 1, CU_AD_FORMAT_FLOAT, 1}));
    OK(cuMemAllocAsync(&p, 1000, NULL));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemAllocFromPoolAsync(&p, 1000, pool, NULL));
    OK(cuMemCreate(&handle, 2 << 20, &prop, 0));
}

static void own(void)
{
    CUcontext c, other;
    CUdeviceptr kept, freed;

    OK(cuCtxCreate(&other, NULL, 0, 0));
    OK(cuMemAlloc(&kept, 64));
    OK(cuCtxCreate(&c, NULL, 0, 0));
    OK(cuMemAlloc(&freed, 32));
    allocate();
    OK(cuMemFree(freed));
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(NULL));
    /* the first time it fails if the simulated driver was told so: nothing has gone then */
    if (cuCtxDestroy(c))
        OK(cuCtxDestroy(c));
    OK(cuCtxSetCurrent(other));
    OK(cuMemFree(kept));
    OK(cuCtxDestroy(other));
}

static void primary(void)
{
    CUcontext c;
    CUdeviceptr p;

    OK(cuDevicePrimaryCtxRetain(&c, 0)); /* after that of cuda_start */
    OK(cuCtxSetCurrent(c));
    OK(cuMemAlloc(&p, 5000));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuMemsetD8(p, 1, 5000)); /* is there */
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxSetCurrent(c));
    OK(cuMemAlloc(&p, 700));
    OK(cuDevicePrimaryCtxReset(0));
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxSetCurrent(c));
    OK(cuMemAlloc(&p, 300)); /* when the process ends it is still there */
}

int main(int argc, char **argv)
{
    cuda_start(argc, argv);
    own();
    primary();
    return cuda_end();
}
