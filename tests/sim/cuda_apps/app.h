// What the CUDA clients share: checked calls, kernels, and NVTX ranges. Their host functions, for
// the simulated device, are in kernels_host.c; durations there come from the names.
#ifndef SIM_CUDA_APP_H
#define SIM_CUDA_APP_H

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess) {                                                                   \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(e_));            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct Range {
    explicit Range(const char *name) { nvtxRangePushA(name); }
    ~Range() { nvtxRangePop(); }
};

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" __global__ void scale_20us(int n, float a, float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = a * x[i];
}

extern "C" __global__ void add_5us(int n, float a, float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = a + x[i];
}

template <typename T> __global__ void fill(T *p, int n, T v)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = v;
}

static inline void expect(const char *what, const float *got, int n, float want(int))
{
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += got[i] != want(i);
    printf("%s %s\n", what, wrong ? "WRONG" : "ok");
    if (wrong)
        exit(1);
}

#endif
