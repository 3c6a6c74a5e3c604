/* An annotated CUDA program, for scripts/demo: trains nothing, in steps of forward, backward and
 * update. Runs on the simulated GPU, whose times are made up: 80 us where a kernel's name says so.
 */
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 4096, LAYERS = 3, STEPS = 20 };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult r_ = (call);                                                                      \
        if (r_) {                                                                                  \
            fprintf(stderr, "%s: error %d\n", #call, r_);                                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static CUstream stream;
static CUfunction multiply, relu, update;
static CUdeviceptr batch, weights[LAYERS];
static float host[N];

static void launch(CUfunction f, void **arguments)
{
    CHECK(cuLaunchKernel(f, N / 256, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

static void layer(int i)
{
    int n = N;
    nvtxRangePushA(i ? "layer" : "first layer");
    launch(multiply, (void *[]){&n, &batch, &weights[i]});
    launch(relu, (void *[]){&n, &batch});
    nvtxRangePop();
}

static void step(void)
{
    int n = N;
    float rate = 0.01f;
    nvtxRangePushA("forward");
    CHECK(cuMemcpyHtoDAsync(batch, host, sizeof host, stream));
    for (int i = 0; i < LAYERS; i++)
        layer(i);
    nvtxRangePop();
    nvtxRangePushA("backward");
    for (int i = LAYERS; i-- > 0;)
        launch(multiply, (void *[]){&n, &batch, &weights[i]});
    for (int i = 0; i < LAYERS; i++)
        launch(update, (void *[]){&n, &weights[i], &rate});
    nvtxRangePop();
    nvtxRangePushA("loss");
    CHECK(cuMemcpyDtoHAsync(host, batch, sizeof host, stream));
    CHECK(cuStreamSynchronize(stream));
    nvtxRangePop();
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    (void)argc;
    char path[4096];
    snprintf(path, sizeof path, "%s.cubin", argv[0]);
    nvtxRangePushA("load");
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoad(&module, path));
    CHECK(cuModuleGetFunction(&multiply, module, "multiply_80us"));
    CHECK(cuModuleGetFunction(&relu, module, "relu_5us"));
    CHECK(cuModuleGetFunction(&update, module, "update_10us"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&batch, sizeof host));
    for (int i = 0; i < LAYERS; i++) {
        CHECK(cuMemAlloc(&weights[i], sizeof host));
        CHECK(cuMemsetD32(weights[i], 0x3f800000, N)); /* 1.0f */
    }
    nvtxRangePop();
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    for (int i = 0; i < STEPS; i++) {
        nvtxRangePushA("step");
        step();
        nvtxRangePop();
    }
    CHECK(cuMemFree(batch));
    printf("trained %d steps, loss %g\n", STEPS, host[N - 1]);
    return 0;
}
