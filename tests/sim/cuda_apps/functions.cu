// Kernels asked about and launched in every way but <<<>>>: by address, with a configuration,
// cooperatively, from a library, as nodes of a graph put together by hand; and the driver's functions
// through the runtime.
#include <cstring>
#include <cuda.h>
#include "app.h"
#include <cuda_profiler_api.h>

static const int N = 512;
static float *x, host[N];

static float value;
static float all(int) { return value; }

static void check(const char *what, float want)
{
    CHECK(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
    value = want;
    expect(what, host, N, all);
}

static void launches()
{
    int n = N;
    float v = 4;
    void *args[] = {&x, &n, &v};
    CHECK(cudaLaunchKernel((const void *)fill<float>, dim3(2), dim3(256), args, 0, 0));
    check("by address", 4);
    v = 5;
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(2);
    c.blockDim = dim3(256);
    CHECK(cudaLaunchKernelExC(&c, (const void *)fill<float>, args));
    check("configured", 5);
    v = 6;
    CHECK(cudaLaunchCooperativeKernel((const void *)fill<float>, dim3(2), dim3(256), args, 0, 0));
    check("cooperative", 6);
    cudaError_t e = cudaLaunchKernel(&n, dim3(1), dim3(1), args, 0, 0);
    printf("no kernel: %s\n", cudaGetErrorName(e));
    (void)cudaGetLastError();
}

static void questions()
{
    cudaFuncAttributes a;
    CHECK(cudaFuncGetAttributes(&a, (const void *)saxpy));
    int blocks = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, saxpy, 256, 0));
    const char *name = "";
    CHECK(cudaFuncGetName(&name, (const void *)saxpy));
    size_t offset = 0, size = 0;
    CHECK(cudaFuncGetParamInfo((const void *)saxpy, 2, &offset, &size));
    printf("kernel %s threads %d registers %s blocks %s parameter at %zu of %zu bytes\n", name,
           a.maxThreadsPerBlock, a.numRegs > 0 ? "some" : "none", blocks > 0 ? "some" : "none",
           offset, size);
    cudaDeviceProp p;
    CHECK(cudaGetDeviceProperties(&p, 0));
    printf("device has a name: %d warp %d memory: %d\n", p.name[0] != 0, p.warpSize,
           p.totalGlobalMem > 0);
}

static void by_hand()
{
    int n = N;
    float v = 2, twice = 2;
    void *fill_args[] = {&x, &n, &v}, *scale_args[] = {&n, &twice, &x};
    cudaGraph_t g;
    cudaGraphExec_t exec;
    cudaGraphNode_t set, first, second, copy;
    CHECK(cudaGraphCreate(&g, 0));
    cudaMemsetParams m = {};
    m.dst = x;
    m.elementSize = 1;
    m.width = sizeof host;
    m.height = 1;
    CHECK(cudaGraphAddMemsetNode(&set, g, nullptr, 0, &m));
    cudaKernelNodeParams k = {};
    k.func = (void *)fill<float>;
    k.gridDim = dim3(2);
    k.blockDim = dim3(256);
    k.kernelParams = fill_args;
    CHECK(cudaGraphAddKernelNode(&first, g, &set, 1, &k));
    k.func = (void *)scale_20us;
    k.kernelParams = scale_args;
    CHECK(cudaGraphAddKernelNode(&second, g, &first, 1, &k));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, g, &second, 1, host, x, sizeof host,
                                   cudaMemcpyDeviceToHost));
    CHECK(cudaGraphInstantiate(&exec, g, 0));
    CHECK(cudaGraphLaunch(exec, 0));
    CHECK(cudaStreamSynchronize(0));
    value = 4;
    expect("by hand", host, N, all);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(g));
}

static void called(void *flag) { *(int *)flag = 1; }

static void driver()
{
    void *f = nullptr;
    cudaDriverEntryPointQueryResult q;
    CHECK(cudaGetDriverEntryPointByVersion("cuDeviceGetCount", &f, 12000, cudaEnableDefault, &q));
    int n = 0;
    bool good = q == cudaDriverEntryPointSuccess && !((CUresult(*)(int *))f)(&n) && n > 0;
    CHECK(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &f, 12000, cudaEnableDefault, &q));
    printf("entry point %s, none %d\n", good ? "ok" : "WRONG", (int)q);
    int flag = 0;
    CHECK(cudaLaunchHostFunc(0, called, &flag));
    CHECK(cudaStreamSynchronize(0));
    printf("host function %s\n", flag ? "ok" : "WRONG");
    CHECK(cudaProfilerStart());
    CHECK(cudaProfilerStop());
}

int main()
{
    CHECK(cudaMalloc(&x, sizeof host));
    launches();
    questions();
    by_hand();
    driver();
    CHECK(cudaFree(x));
    printf("done\n");
    return 0;
}
