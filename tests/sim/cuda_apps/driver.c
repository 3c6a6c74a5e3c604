/* A C program of the driver's API with an image that nvcc compiled: y = 2 x + y in two streams,
 * with events around. Argument: the image. Prints what it found; exits with 1 where something is
 * wrong. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000, STREAMS = 2 };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult r_ = (call);                                                                      \
        if (r_) {                                                                                  \
            printf("%s: error %d\n", #call, (int)r_);                                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static float host[N];

static int wrong(CUdeviceptr y)
{
    CHECK(cuMemcpyDtoH(host, y, sizeof host));
    for (int i = 0; i < N; i++)
        if (host[i] != 3.0f * (float)i)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction saxpy;
    CUevent begin, end;
    int n = N;
    float two = 2, ms;
    if (argc != 2)
        return 2;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoad(&module, argv[1]));
    CHECK(cuModuleGetFunction(&saxpy, module, "saxpy"));
    CHECK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    for (int s = 0; s < STREAMS; s++) {
        CUstream stream;
        CUdeviceptr x, y;
        CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CHECK(cuMemAlloc(&x, sizeof host));
        CHECK(cuMemAlloc(&y, sizeof host));
        for (int i = 0; i < N; i++)
            host[i] = (float)i;
        CHECK(cuMemcpyHtoD(x, host, sizeof host));
        CHECK(cuMemcpyHtoD(y, host, sizeof host));
        CHECK(cuEventRecord(begin, stream));
        CHECK(cuLaunchKernel(saxpy, 4, 1, 1, 256, 1, 1, 0, stream, (void *[]){&n, &two, &x, &y},
                             NULL));
        CHECK(cuEventRecord(end, stream));
        CHECK(cuStreamSynchronize(stream));
        CHECK(cuEventElapsedTime(&ms, begin, end));
        printf("stream %d: %s, %.3f ms\n", s, wrong(y) ? "WRONG" : "right", (double)ms);
        CHECK(cuMemFree(x));
        CHECK(cuMemFree(y));
        CHECK(cuStreamDestroy(stream));
    }
    return 0;
}
