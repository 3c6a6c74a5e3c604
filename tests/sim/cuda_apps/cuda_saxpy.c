/* A program of the driver API with the kernels of an nvcc-built cubin: right results, every kind of
 * memory and copy, and the errors of wrong use. Usage: cuda_saxpy CUBIN */
#include "cuda_client.h"

#define N 1000

static void results(CUmodule m)
{
    CUfunction f;
    CUdeviceptr x, y;
    int n = N, wrong = 0;
    float a = 2, hx[N], hy[N];

    for (int i = 0; i < N; i++)
        hx[i] = (float)i, hy[i] = 1;
    OK(cuModuleGetFunction(&f, m, "saxpy"));
    OK(cuMemAlloc(&x, sizeof hx));
    OK(cuMemAlloc(&y, sizeof hy));
    OK(cuMemcpyHtoD(x, hx, sizeof hx));
    OK(cuMemcpyHtoD(y, hy, sizeof hy));
    OK(cuLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, NULL, (void *[]){&n, &a, &x, &y}, NULL));
    OK(cuMemcpyDtoH(hy, y, sizeof hy));
    for (int i = 0; i < N; i++)
        wrong += hy[i] != 2.0f * (float)i + 1;
    printf("saxpy: %d wrong\n", wrong);

    /* the same arguments in a buffer, as their places in the cubin tell */
    char buffer[64];
    size_t at[4], size, used = 0;
    void *args[] = {&n, &a, &x, &y};
    for (size_t i = 0; i < 4; i++) {
        OK(cuFuncGetParamInfo(f, i, &at[i], &size));
        memcpy(buffer + at[i], args[i], size);
        used = at[i] + size;
    }
    FAILS(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(f, 4, &at[0], &size));
    OK(cuLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, NULL, NULL,
                      (void *[]){CU_LAUNCH_PARAM_BUFFER_POINTER, buffer,
                                 CU_LAUNCH_PARAM_BUFFER_SIZE, &used, CU_LAUNCH_PARAM_END}));
    CUlaunchConfig config = {.gridDimX = 4,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 256,
                             .blockDimY = 1,
                             .blockDimZ = 1};
    OK(cuLaunchKernelEx(&config, f, args, NULL));
    OK(cuLaunchCooperativeKernel(f, 4, 1, 1, 256, 1, 1, 0, NULL, args));
    OK(cuMemcpyDtoH(hy, y, sizeof hy));
    for (int i = 0; i < N; i++)
        wrong += hy[i] != 8.0f * (float)i + 1;
    printf("four launches: %d wrong\n", wrong);
    OK(cuMemFree(x));
    OK(cuMemFree(y));
}

static void parameters(CUmodule m)
{
    struct {
        char c[5];
        short s;
    } odd = {{0, 0, 0, 0, 30}, 400};
    CUfunction f;
    CUdeviceptr out, counter;
    char a = 2;
    double b = 1000;
    long long got = 0;
    size_t size = 0;
    int value = 0;

    OK(cuModuleGetFunction(&f, m, "mixed_1ms"));
    OK(cuMemAllocManaged(&out, 8, CU_MEM_ATTACH_GLOBAL));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&a, &b, &odd, &out}, NULL));
    OK(cuCtxSynchronize());
    got = *(long long *)out;
    printf("mixed: %lld\n", got);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
    printf("shared: %d\n", value);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    printf("registers: %s\n", value > 0 ? "some" : "none");
    OK(cuModuleGetGlobal(&counter, &size, m, "counter"));
    OK(cuMemcpyDtoH(&value, counter, sizeof value));
    printf("counter: %d of %zu bytes\n", value, size);
    FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&f, m, "no_such"));
    OK(cuMemFree(out));
}

static void copies(void)
{
    CUdeviceptr d, p;
    CUarray array;
    size_t pitch;
    char *pinned;
    unsigned char in[64 * 8], out[64 * 8] = {0};

    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)(i * 7);
    OK(cuMemAllocPitch(&p, &pitch, 64, 8, 4));
    CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = in,
                       .srcPitch = 64,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = p,
                       .dstPitch = pitch,
                       .WidthInBytes = 64,
                       .Height = 8};
    OK(cuMemcpy2D(&c));
    OK(cuArrayCreate(&array, &(CUDA_ARRAY_DESCRIPTOR){64, 8, CU_AD_FORMAT_UNSIGNED_INT8, 1}));
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = p;
    c.srcPitch = pitch;
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    c.dstArray = array;
    OK(cuMemcpy2D(&c));
    OK(cuMemHostAlloc((void **)&pinned, sizeof out, 0));
    CUDA_MEMCPY3D back = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                          .srcArray = array,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = pinned,
                          .dstPitch = 64,
                          .WidthInBytes = 64,
                          .Height = 8,
                          .Depth = 1};
    OK(cuMemcpy3D(&back));
    SAME(memcmp(in, pinned, sizeof in), 0);

    OK(cuMemAllocAsync(&d, sizeof out, NULL));
    OK(cuMemsetD32Async(d, 0x01020304, sizeof out / 4, NULL));
    OK(cuMemsetD2D8(d, 64, 9, 3, 2));
    OK(cuMemcpyDtoD(d + 128, d, 64));
    OK(cuMemcpy((CUdeviceptr)out, d, sizeof out));
    SAME(out[0], 9);
    SAME(out[3], 1);
    SAME(out[4], 4);
    SAME(out[66], 9);
    SAME(out[130], 9);
    SAME(out[131], 1);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(out, d, sizeof out + 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD((CUdeviceptr)out, in, 1));
    OK(cuMemFreeAsync(d, NULL));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(d));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(in));
    OK(cuArrayDestroy(array));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(p));
}

static void mapped(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;
    size_t size = 0, before, during, after, all;
    int value = 0;

    OK(cuMemGetInfo(&before, &all));
    OK(cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    OK(cuMemAddressReserve(&p, 2 * size, 0, 0, 0));
    OK(cuMemCreate(&h, size, &prop, 0));
    OK(cuMemMap(p, size, 0, h, 0));
    OK(cuMemMap(p + size, size, 0, h, 0));
    OK(cuMemSetAccess(p, 2 * size, &access, 1));
    OK(cuMemsetD32(p + 4, 77, 1));
    OK(cuMemcpyDtoH(&value, p + size + 4, sizeof value));
    printf("the same memory twice: %d\n", value);
    OK(cuMemGetInfo(&during, &all));
    OK(cuMemUnmap(p, size));
    OK(cuMemUnmap(p + size, size));
    OK(cuMemRelease(h));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemRelease(h));
    OK(cuMemAddressFree(p, 2 * size));
    OK(cuMemGetInfo(&after, &all));
    SAME(before - during, size);
    SAME(before, after);
}

static void wrong_use(CUmodule m)
{
    CUdeviceptr p;
    CUfunction f;
    CUstream s;

    OK(cuModuleGetFunction(&f, m, "nothing_500ns"));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&p, 0));
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, (size_t)1 << 40));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL, NULL));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamDestroy(s));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(s));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGetExportTable(&(const void *){NULL}, &(CUuuid){{1}}));
    FAILS(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, cuModuleLoadData(&m, ".version 9.0\n.target sm_90\n"));
    FAILS(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&m, "/nonexistent/cubin"));
    const char *name = NULL;
    OK(cuGetErrorName(CUDA_ERROR_LAUNCH_FAILED, &name));
    printf("719: %s\n", name);
}

int main(int argc, char **argv)
{
    CUmodule m = cuda_start(argc, argv);

    results(m);
    parameters(m);
    copies();
    mapped();
    wrong_use(m);
    OK(cuModuleUnload(m));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(m));
    OK(cuDevicePrimaryCtxRelease(0));
    return cuda_end();
}
