/* Copies from one device to another, of every kind that the driver has. With a second argument the
 * program reads CUPTI's records itself (cupti_own.c) and prints them. Usage: cuda_peer CUBIN, or
 * cuda_peer own CUBIN; two devices (GTSIM_DEVICES=2) */
#include "cuda_client.h"
#include "cupti_own.h"

#define N 64000

static CUcontext contexts[2];
static CUdeviceptr blocks[2];

/* The whole block on the second device is `value` now, after which it is 0 again. */
static void arrived(const char *how, unsigned char value, size_t n)
{
    static unsigned char got[N];
    size_t right = 0;

    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(got, blocks[1], N));
    while (right < n && got[right] == value)
        right++;
    printf("%s: %zu of %zu\n", how, right, n);
    OK(cuMemsetD8(blocks[1], 0, N));
}

int main(int argc, char **argv)
{
    CUstream stream;
    int devices = 0;

    cuda_start(argc, argv);
    OK(cuDeviceGetCount(&devices));
    SAME(devices, 2);
    if (argc > 2)
        own_start();
    for (int i = 1; i >= 0; i--) {
        OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
        OK(cuCtxSetCurrent(contexts[i]));
        OK(cuMemAlloc(&blocks[i], N));
        if (i == 1)
            OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    }
    OK(cuMemsetD8(blocks[0], 7, N));
    OK(cuMemcpyPeer(blocks[1], contexts[1], blocks[0], contexts[0], N));
    arrived("peer", 7, N);
    OK(cuCtxSetCurrent(contexts[1]));
    OK(cuMemcpyPeerAsync(blocks[1], contexts[1], blocks[0], contexts[0], N / 2, stream));
    arrived("in the other's stream", 7, N / 2);
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuMemcpy(blocks[1], blocks[0], N / 4));
    arrived("by address", 7, N / 4);
    OK(cuMemcpyDtoD(blocks[1], blocks[0], N / 4));
    arrived("by device address", 7, N / 4);
    CUDA_MEMCPY3D_PEER p = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = blocks[0],
                            .srcContext = contexts[0],
                            .srcPitch = 100,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = blocks[1],
                            .dstContext = contexts[1],
                            .dstPitch = 100,
                            .WidthInBytes = 100,
                            .Height = 80,
                            .Depth = 1};
    OK(cuMemcpy3DPeer(&p));
    arrived("rows", 7, 8000);
    /* within one device it is none of these */
    OK(cuMemcpyDtoD(blocks[0] + N / 2, blocks[0], N / 2));
    OK(cuCtxSynchronize());
    for (int i = 0; i < 2; i++)
        OK(cuMemFree(blocks[i]));
    if (argc > 2)
        own_print();
    return cuda_end();
}
