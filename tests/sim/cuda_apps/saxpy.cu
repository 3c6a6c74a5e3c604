// An ordinary CUDA program as nvcc -cudart shared makes it: launches, streams, events, a graph,
// asynchronous memory, NVTX ranges. Prints what it found, which is the same wherever it runs but for
// the time between two events; exits with 1 where something is wrong.
#include "app.h"
#ifdef OWN_CUPTI
#include "cupti_own.h"
#endif

static const int N = 1000;
static const dim3 GRID((N + 255) / 256), BLOCK(256);

static float three(int) { return 3; }
static float saxpy_once(int i) { return 2.0f * i + 1; }
static float saxpy_graph(int i) { return 2 * (2 * (i + 3.0f)) + 5; }

static float *x, *y;
static float host[N];

static void launch()
{
    Range r("launch");
    for (int i = 0; i < N; i++)
        host[i] = i;
    CHECK(cudaMalloc(&x, sizeof host));
    CHECK(cudaMalloc(&y, sizeof host));
    CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    fill<float><<<GRID, BLOCK>>>(y, N, 1);
    CHECK(cudaGetLastError());
    saxpy<<<GRID, BLOCK>>>(N, 2.0f, x, y);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost));
    expect("saxpy", host, N, saxpy_once);
}

// Three kernels of 20 us between two events: 0.060 ms on the simulated device.
static void streams()
{
    Range r("streams");
    cudaStream_t s;
    cudaEvent_t from, to;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    float *z;
    CHECK(cudaMallocAsync(&z, sizeof host, s));
    CHECK(cudaMemsetAsync(z, 0, sizeof host, s));
    fill<float><<<GRID, BLOCK, 0, s>>>(z, N, 3);
    CHECK(cudaEventRecord(from, s));
    for (int i = 0; i < 3; i++)
        scale_20us<<<GRID, BLOCK, 0, s>>>(N, 1.0f, z);
    CHECK(cudaEventRecord(to, s));
    CHECK(cudaMemcpyAsync(host, z, sizeof host, cudaMemcpyDeviceToHost, s));
    CHECK(cudaFreeAsync(z, s));
    CHECK(cudaStreamSynchronize(s));
    expect("stream", host, N, three);
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, from, to));
    printf("between events %.4f ms\n", ms);
    CHECK(cudaEventDestroy(from));
    CHECK(cudaEventDestroy(to));
    CHECK(cudaStreamDestroy(s));
}

static void graph()
{
    Range r("graph");
    for (int i = 0; i < N; i++)
        host[i] = i + 3.0f;
    CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    cudaStream_t s;
    cudaGraph_t g;
    cudaGraphExec_t exec;
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    scale_20us<<<GRID, BLOCK, 0, s>>>(N, 2.0f, x);
    add_5us<<<GRID, BLOCK, 0, s>>>(N, 0.0f, x);
    CHECK(cudaMemcpyAsync(y, x, sizeof host, cudaMemcpyDeviceToDevice, s));
    CHECK(cudaStreamEndCapture(s, &g));
    size_t nodes = 0;
    CHECK(cudaGraphGetNodes(g, nullptr, &nodes));
    printf("graph of %zu nodes\n", nodes);
    CHECK(cudaGraphInstantiate(&exec, g, 0));
    for (int i = 0; i < 2; i++)
        CHECK(cudaGraphLaunch(exec, s));
    add_5us<<<GRID, BLOCK, 0, s>>>(N, 5.0f, y);
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost));
    expect("graph", host, N, saxpy_graph);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(g));
    CHECK(cudaStreamDestroy(s));
}

// Errors that pass: they are the last error until asked for.
static void errors()
{
    Range r("errors");
    cudaError_t e = cudaMemcpy(x, host, 4, (cudaMemcpyKind)77);
    printf("bad direction: %s\n", cudaGetErrorName(e));
    printf("peek %s\n", cudaGetErrorName(cudaPeekAtLastError()));
    printf("last %s\n", cudaGetErrorName(cudaGetLastError()));
    printf("then %s\n", cudaGetErrorName(cudaGetLastError()));
}

int main()
{
    setvbuf(stdout, nullptr, _IOLBF, 0);
#ifdef OWN_CUPTI
    own_start();
#endif
    int devices = 0;
    cudaError_t e = cudaGetDeviceCount(&devices);
    if (e != cudaSuccess) {
        printf("no device: %s\n", cudaGetErrorName(e));
        return 1;
    }
    {
        Range r("main");
        launch();
        streams();
        graph();
        errors();
        CHECK(cudaFree(x));
        CHECK(cudaFree(y));
        CHECK(cudaDeviceSynchronize());
    }
#ifdef OWN_CUPTI
    own_print();
#endif
    printf("done\n");
    return 0;
}
