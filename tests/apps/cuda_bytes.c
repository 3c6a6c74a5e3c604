/* Copies, sets and allocations of every kind, with the sizes that the report must have: by key,
 * with
 * --expect as in nvtx_basic.c. Linked with the stubs of CUDA's driver and runtime, which succeed.
 * Each is called twice, and a third time with a failure, which moves nothing. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "../../preload/abi/cuda.h"
#include "stub/cuda_stub.h"

#define HOOK(name, key, since, kind, bytes, parameters, arguments, ...) CUresult name parameters;
#include "../../preload/hooks/cuda.def"
#undef HOOK
#define HOOK(name, key, kind, bytes, parameters, arguments) cudaError_t name parameters;
#define WIDE(name, ...) cudaError_t name();
#include "../../preload/hooks/cudart.def"

static struct stub_seen *driver, *runtime;
static int printing;

#define EACH(key, bytes, call)                                                                     \
    do {                                                                                           \
        driver->result = runtime->result = 0;                                                      \
        call;                                                                                      \
        call;                                                                                      \
        driver->result = runtime->result = 1;                                                      \
        call;                                                                                      \
        if (printing)                                                                              \
            printf("expect %s 3\nsum %s bytes %llu\nsum %s failed 1\n", key, key,                  \
                   2 * (unsigned long long)(bytes), key);                                          \
    } while (0)

static void drivers_linear(void)
{
    CUdeviceptr d;
    void *h;
    size_t pitch = 512;
    CUmemGenericAllocationHandle handle;

    EACH("cuMemAlloc", 1000, cuMemAlloc_v2(&d, 1000));
    EACH("cuMemAllocAsync", 1001, cuMemAllocAsync(&d, 1001, NULL));
    EACH("cuMemAllocFromPoolAsync", 1002, cuMemAllocFromPoolAsync_ptsz(&d, 1002, NULL, NULL));
    EACH("cuMemAllocHost", 1003, cuMemAllocHost_v2(&h, 1003));
    EACH("cuMemHostAlloc", 1004, cuMemHostAlloc(&h, 1004, 0));
    EACH("cuMemAllocManaged", 1005, cuMemAllocManaged(&d, 1005, 1));
    EACH("cuMemAllocPitch", 512 * 7, cuMemAllocPitch_v2(&d, &pitch, 500, 7, 4));
    EACH("cuMemCreate", 1u << 21, cuMemCreate(&handle, 1u << 21, NULL, 0));
    EACH("cuMemcpyHtoD", 1ull << 40, cuMemcpyHtoD_v2(1, &d, 1ull << 40));
    EACH("cuMemcpyDtoHAsync", 70, cuMemcpyDtoHAsync_v2(&d, 1, 70, NULL));
    EACH("cuMemcpyDtoD", 71, cuMemcpyDtoD_v2_ptds(1, 2, 71));
    EACH("cuMemcpyPeerAsync", 72, cuMemcpyPeerAsync(1, NULL, 2, NULL, 72, NULL));
    EACH("cuMemcpyHtoA", 73, cuMemcpyHtoA_v2(NULL, 0, &d, 73));
    EACH("cuMemsetD8", 11, cuMemsetD8_v2(1, 0, 11));
    EACH("cuMemsetD16Async", 22, cuMemsetD16Async(1, 0, 11, NULL));
    EACH("cuMemsetD32", 44, cuMemsetD32_v2_ptds(1, 0, 11));
    EACH("cuMemsetD2D32", 4 * 3 * 5, cuMemsetD2D32_v2(1, 64, 0, 3, 5));
    EACH("cuMemFree", 0, cuMemFree_v2(1));
    EACH("cuMemAdvise", 0, cuMemAdvise(1, 4096, 0, 0));
}

static void drivers_shaped(void)
{
    CUarray a;
    size_t sizes[] = {1, 20, 300};

    EACH("cuMemcpy2D", 30 * 4, cuMemcpy2D_v2(&(CUDA_MEMCPY2D){.WidthInBytes = 30, .Height = 4}));
    EACH("cuMemcpy2DAsync", 31 * 4,
         cuMemcpy2DAsync(&(CUDA_MEMCPY2D_v1){.WidthInBytes = 31, .Height = 4}, NULL));
    EACH("cuMemcpy3D", 30 * 4 * 2,
         cuMemcpy3D_v2(&(CUDA_MEMCPY3D){.WidthInBytes = 30, .Height = 4, .Depth = 2}));
    EACH("cuMemcpy3DPeer", 30 * 4 * 3,
         cuMemcpy3DPeer(&(CUDA_MEMCPY3D_PEER){.WidthInBytes = 30, .Height = 4, .Depth = 3}));
    EACH("cuMemcpyBatchAsync", 321,
         cuMemcpyBatchAsync_v2(NULL, NULL, sizes, 3, NULL, NULL, 0, NULL));
    CUDA_MEMCPY3D_BATCH_OP ops[] = {{.extent = {2, 3, 4}},
                                    {.extent = {100, 1, 1}, .dst.type = GT_CUDA_OPERAND_ARRAY}};
    EACH("cuMemcpy3DBatchAsync", 24, cuMemcpy3DBatchAsync_v2(2, ops, 0, NULL));
    /* two channels of half; no rows: one */
    EACH("cuArrayCreate", 8 * 4, cuArrayCreate_v2(&a, &(CUDA_ARRAY_DESCRIPTOR){8, 0, 0x10, 2}));
    /* SNORM_INT16X4 */
    EACH("cuArray3DCreate", 8 * 4 * 2 * 8,
         cuArray3DCreate_v2(&a, &(CUDA_ARRAY3D_DESCRIPTOR){8, 4, 2, 0xcb, 4, 0}));
    /* floats of 8 x 4 x 2, 4 x 2 x 1, 2 x 1 x 1, 1; there are no more levels */
    CUmipmappedArray m;
    EACH("cuMipmappedArrayCreate", (64 + 8 + 2 + 1) * 4,
         cuMipmappedArrayCreate(&m, &(CUDA_ARRAY3D_DESCRIPTOR){8, 4, 2, 0x20, 1, 0}, 99));
}

static void runtimes(void)
{
    void *p;
    size_t pitch = 256, sizes[] = {5, 6};
    cudaArray_t a;
    cudaMipmappedArray_t mipmapped;
    cudaPitchedPtr pp = {.pitch = 1024};
    const cudaChannelFormatDesc two_floats = {32, 32, 0, 0, 2};
    const cudaMemcpy3DParms parms = {.extent = {30, 4, 2}},
                            with_array = {.dstArray = (void *)&p, .extent = {30, 4, 2}};

    EACH("cudaMalloc", 900, cudaMalloc(&p, 900));
    EACH("cudaMallocHost", 901, cudaMallocHost(&p, 901));
    EACH("cudaHostAlloc", 902, cudaHostAlloc(&p, 902, 0));
    EACH("cudaMallocManaged", 903, cudaMallocManaged(&p, 903, 1));
    EACH("cudaMallocAsync", 904, cudaMallocAsync(&p, 904, NULL));
    EACH("cudaMallocFromPoolAsync", 905, cudaMallocFromPoolAsync(&p, 905, NULL, NULL));
    EACH("cudaMallocPitch", 256 * 3, cudaMallocPitch(&p, &pitch, 200, 3));
    EACH("cudaMalloc3D", 1024 * 2 * 3, cudaMalloc3D(&pp, (cudaExtent){1000, 2, 3}));
    EACH("cudaMallocArray", 0, cudaMallocArray(&a, &two_floats, 10, 2, 0x40)); /* sparse */
    EACH("cudaMalloc3DArray", 8 * 10 * 2 * 3,
         cudaMalloc3DArray(&a, &two_floats, (cudaExtent){10, 2, 3}, 0));
    /* six faces on each of two levels */
    EACH("cudaMallocMipmappedArray", (16 + 4) * 6 * 8,
         cudaMallocMipmappedArray(&mipmapped, &two_floats, (cudaExtent){4, 4, 6}, 2, 0x04));
    EACH("cudaMemcpy", 80, cudaMemcpy(&p, &p, 80, 1));
    EACH("cudaMemcpyAsync", 81, cudaMemcpyAsync_ptsz(&p, &p, 81, 1, NULL));
    EACH("cudaMemcpy2DToArray", 12 * 3, cudaMemcpy2DToArray(NULL, 0, 0, &p, 64, 12, 3, 1));
    EACH("cudaMemcpy3D", 30 * 4 * 2, cudaMemcpy3D(&parms));
    EACH("cudaMemcpy3DAsync", 0, cudaMemcpy3DAsync(&with_array, NULL)); /* nobody describes it */
    EACH("cudaMemcpyToSymbol", 82, cudaMemcpyToSymbol(&p, &p, 82, 0, 1));
    EACH("cudaMemcpyPeer", 83, cudaMemcpyPeer(&p, 0, &p, 1, 83));
    EACH("cudaMemcpyBatchAsync", 11,
         cudaMemcpyBatchAsync(NULL, NULL, sizes, 2ul, NULL, NULL, 0ul, NULL));
    EACH("cudaMemset", 84, cudaMemset(&p, 0, 84));
    EACH("cudaMemset2DAsync", 7 * 8, cudaMemset2DAsync(&p, 64, 0, 7, 8, NULL));
    EACH("cudaMemset3D", 7 * 8 * 9, cudaMemset3D(pp, 0, (cudaExtent){7, 8, 9}));
    EACH("cudaLaunchKernel", 0,
         __cudaLaunchKernel(NULL, (dim3){1, 2, 3}, (dim3){4, 5, 6}, NULL, 0, NULL));
    EACH("cudaFree", 0, cudaFree(&p));
}

int main(int argc, char **argv)
{
    driver = ((stub_seen_fn *)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "stub_driver_seen"))();
    runtime = ((stub_seen_fn *)dlsym(dlopen("libcudart.so.13", RTLD_NOW), "stub_runtime_seen"))();
    printing = argc > 1 && strcmp(argv[1], "--expect") == 0;
    drivers_linear();
    drivers_shaped();
    runtimes();
    printf("driver called %u times, runtime %u\n", driver->calls, runtime->calls);
    return 0;
}
