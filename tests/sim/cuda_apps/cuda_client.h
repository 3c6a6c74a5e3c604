/* What the CUDA clients share. They print what they got, never an address or a time of the machine,
 * so that their output is the same in every run, and with and without us. */
#ifndef CUDA_CLIENT_H
#define CUDA_CLIENT_H

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;

/* a call that must succeed */
#define OK(call)                                                                                   \
    do {                                                                                           \
        CUresult r_ = (call);                                                                      \
        if (r_) {                                                                                  \
            printf("line %d: %s: %d\n", __LINE__, #call, (int)r_);                                 \
            failed = 1;                                                                            \
        }                                                                                          \
    } while (0)
/* one that must fail with that */
#define FAILS(error, call)                                                                         \
    do {                                                                                           \
        CUresult r_ = (call);                                                                      \
        if (r_ != (error)) {                                                                       \
            printf("line %d: %s: %d, not %d\n", __LINE__, #call, (int)r_, (int)(error));           \
            failed = 1;                                                                            \
        }                                                                                          \
    } while (0)
#define SAME(a, b)                                                                                 \
    do {                                                                                           \
        long long a_ = (long long)(a), b_ = (long long)(b);                                        \
        if (a_ != b_) {                                                                            \
            printf("line %d: %s is %lld, %s is %lld\n", __LINE__, #a, a_, #b, b_);                 \
            failed = 1;                                                                            \
        }                                                                                          \
    } while (0)

/* The first device's context, current, and the kernels of cuda_kernels.cu: cubin or fatbin,
 * named by the program's last argument. */
static inline CUmodule cuda_start(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    CUmodule module = NULL;

    CUresult r = cuInit(0);
    if (r) {
        printf("cuInit: %d\n", (int)r);
        exit(3);
    }
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoad(&module, argv[argc - 1]));
    return module;
}

static inline int cuda_end(void)
{
    printf(failed ? "FAILED\n" : "SUCCESS\n");
    return failed;
}
#endif
