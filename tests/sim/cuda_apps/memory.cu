// Every kind of memory and copy that the runtime has, with what must have arrived.
#include <cstring>
#include "app.h"

__device__ int counter = 7;
__constant__ int table[4];
__managed__ int shared_word = 11;

static void same(const char *what, bool good)
{
    printf("%s %s\n", what, good ? "ok" : "WRONG");
    if (!good)
        exit(1);
}

static void pitched()
{
    char in[10 * 100], out[10 * 100] = {0};
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (char)i;
    void *p;
    size_t pitch = 0;
    CHECK(cudaMallocPitch(&p, &pitch, 100, 10));
    CHECK(cudaMemcpy2D(p, pitch, in, 100, 100, 10, cudaMemcpyHostToDevice));
    CHECK(cudaMemset2D(p, pitch, 1, 50, 1));
    memset(in, 1, 50);
    CHECK(cudaMemcpy2D(out, 100, p, pitch, 100, 10, cudaMemcpyDeviceToHost));
    same("pitched", pitch >= 100 && !memcmp(in, out, sizeof in));
    CHECK(cudaFree(p));
}

static void volume()
{
    const cudaExtent extent = make_cudaExtent(8 * sizeof(int), 4, 3);
    int in[96], out[96] = {0};
    for (int i = 0; i < 96; i++)
        in[i] = i;
    cudaPitchedPtr p;
    CHECK(cudaMalloc3D(&p, extent));
    cudaMemcpy3DParms c = {};
    c.srcPtr = make_cudaPitchedPtr(in, 8 * sizeof(int), 8, 4);
    c.dstPtr = p;
    c.extent = extent;
    c.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&c));
    c.srcPtr = p;
    c.dstPtr = make_cudaPitchedPtr(out, 8 * sizeof(int), 8, 4);
    c.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&c));
    same("volume", !memcmp(in, out, sizeof in));
    CHECK(cudaMemset3D(p, 0, extent));
    CHECK(cudaMemcpy3D(&c));
    same("volume set", !out[0] && !out[95]);
    CHECK(cudaFree(p.ptr));
}

// an array's elements are what its copies are counted in
static void cube()
{
    const cudaExtent extent = make_cudaExtent(4, 3, 2), part = make_cudaExtent(4, 3, 1);
    short in[48], out[48] = {0};
    for (int i = 0; i < 48; i++)
        in[i] = (short)i;
    cudaArray_t a;
    cudaChannelFormatDesc d = cudaCreateChannelDesc(16, 16, 0, 0, cudaChannelFormatKindSigned);
    CHECK(cudaMalloc3DArray(&a, &d, extent, 0));
    cudaMemcpy3DParms c = {};
    c.srcPtr = make_cudaPitchedPtr(in, 16, 4, 3);
    c.dstArray = a;
    c.extent = extent;
    c.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&c));
    c.dstArray = nullptr;
    c.srcPtr = make_cudaPitchedPtr(nullptr, 0, 0, 0);
    c.srcArray = a;
    c.dstPtr = make_cudaPitchedPtr(out, 16, 4, 3);
    c.extent = part;
    c.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&c));
    same("cube", !memcmp(in, out, sizeof in / 2) && !out[24]);
    CHECK(cudaFreeArray(a));
}

static void array()
{
    float in[6 * 5], out[6 * 5] = {0};
    for (int i = 0; i < 30; i++)
        in[i] = i * 0.5f;
    cudaArray_t a;
    cudaChannelFormatDesc d = cudaCreateChannelDesc<float>(), back;
    CHECK(cudaMallocArray(&a, &d, 6, 5));
    CHECK(cudaMemcpy2DToArray(a, 0, 0, in, 6 * sizeof(float), 6 * sizeof(float), 5,
                              cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DFromArray(out, 6 * sizeof(float), a, 0, 0, 6 * sizeof(float), 5,
                                cudaMemcpyDeviceToHost));
    cudaExtent e;
    unsigned flags = 1;
    CHECK(cudaArrayGetInfo(&back, &e, &flags, a));
    same("array", !memcmp(in, out, sizeof in) && e.width == 6 && e.height == 5 && back.x == 32 &&
                      back.f == cudaChannelFormatKindFloat && !flags);
    CHECK(cudaFreeArray(a));
}

static void host_memory()
{
    int *pinned, *mapped, *device, word = 0;
    CHECK(cudaMallocHost((void **)&pinned, 4));
    CHECK(cudaHostAlloc((void **)&mapped, 4, cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer((void **)&device, mapped, 0));
    *pinned = 42;
    CHECK(cudaMemcpy(device, pinned, 4, cudaMemcpyDefault));
    same("mapped", *mapped == 42);
    cudaPointerAttributes a;
    CHECK(cudaPointerGetAttributes(&a, pinned));
    bool host = a.type == cudaMemoryTypeHost;
    CHECK(cudaPointerGetAttributes(&a, &word));
    same("attributes", host && a.type == cudaMemoryTypeUnregistered);
    CHECK(cudaHostRegister(&word, 4, 0));
    CHECK(cudaHostUnregister(&word));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFreeHost(mapped));
}

static void variables()
{
    int got = 0, in[4] = {1, 2, 3, 4}, out[4] = {0};
    CHECK(cudaMemcpyFromSymbol(&got, counter, 4));
    same("variable", got == 7);
    CHECK(cudaMemcpyToSymbol(table, in, sizeof in));
    CHECK(cudaMemcpyFromSymbol(out, table, sizeof out));
    size_t size = 0;
    CHECK(cudaGetSymbolSize(&size, table));
    same("constant", !memcmp(in, out, sizeof in) && size == sizeof in);
    same("managed variable", shared_word == 11);
    same("too much", cudaMemcpyToSymbol(table, in, sizeof in, 4) == cudaErrorInvalidValue &&
                         cudaGetLastError() == cudaErrorInvalidValue);
}

static void pools()
{
    cudaStream_t s;
    cudaMemPool_t pool;
    CHECK(cudaStreamCreate(&s));
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    CHECK(cudaMemPoolCreate(&pool, &props));
    void *p;
    CHECK(cudaMallocFromPoolAsync(&p, 4096, pool, s));
    CHECK(cudaMemsetAsync(p, 9, 4096, s));
    char out[4096];
    CHECK(cudaMemcpyAsync(out, p, sizeof out, cudaMemcpyDeviceToHost, s));
    CHECK(cudaFreeAsync(p, s));
    CHECK(cudaStreamSynchronize(s));
    same("pool", out[0] == 9 && out[4095] == 9);
    CHECK(cudaMemPoolDestroy(pool));
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cudaStreamDestroy(s));
    int *m;
    CHECK(cudaMallocManaged(&m, 64));
    *m = 5;
    CHECK(cudaFree(m));
}

int main()
{
    pitched();
    volume();
    array();
    cube();
    host_memory();
    variables();
    pools();
    size_t left = 0, total = 0;
    CHECK(cudaMemGetInfo(&left, &total));
    same("info", left && left <= total);
    CHECK(cudaFree(nullptr));
    CHECK(cudaDeviceReset());
    printf("done\n");
    return 0;
}
