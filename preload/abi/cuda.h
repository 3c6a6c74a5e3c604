/* CUDA's types as far as our wrappers need them: what is passed by value has the real size and
 * layout, of what we look into only the fields that we read have names. Written from the documented
 * ABI; tests/e2e/test_cuda_abi.py compares sizes and places with the real headers where they are.
 */
#ifndef GT_ABI_CUDA_H
#define GT_ABI_CUDA_H

#include <stddef.h>
#include <stdint.h>

#define HANDLE(name) typedef struct gt_##name *name;
#define NUMBER(name, type) typedef type name;
#define ENUM(name) typedef unsigned int name;
#define RTENUM(name) typedef unsigned int name;
#define OPAQUE(name) typedef struct gt_##name name;
#define RTSTRUCT(name) typedef struct gt_##name name;
#define LAID_OUT(name) typedef struct gt_##name name;
#define RTLAID_OUT(name) typedef struct gt_##name name;
#include "cuda_types.def"
#undef HANDLE
#undef NUMBER
#undef ENUM
#undef RTENUM
#undef OPAQUE
#undef RTSTRUCT
#undef LAID_OUT
#undef RTLAID_OUT

/* ---- error codes, the same numbers in the driver and the runtime ---- */

#define GT_CUDA_NOT_INITIALIZED 3
#define GT_CUDA_NOT_READY 600 /* what a query says of work that still runs: no failure */

/* ---- the driver's ---- */

struct gt_CUmemLocation {
    unsigned int type;
    int id;
};
struct gt_CUlaunchConfig {
    unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    void *attrs;
    unsigned int numAttrs;
};
struct gt_CUipcMemHandle {
    char reserved[64];
};
struct gt_CUipcEventHandle {
    char reserved[64];
};

struct gt_CUDA_ARRAY_DESCRIPTOR {
    size_t Width, Height;
    unsigned int Format, NumChannels;
};
struct gt_CUDA_ARRAY_DESCRIPTOR_v1 {
    unsigned int Width, Height, Format, NumChannels;
};
struct gt_CUDA_ARRAY3D_DESCRIPTOR {
    size_t Width, Height, Depth;
    unsigned int Format, NumChannels, Flags;
};
struct gt_CUDA_ARRAY3D_DESCRIPTOR_v1 {
    unsigned int Width, Height, Depth, Format, NumChannels, Flags;
};

/* `from_to`: the two sides of a copy */
struct gt_CUDA_MEMCPY2D {
    uint64_t from_to[14];
    size_t WidthInBytes, Height;
};
struct gt_CUDA_MEMCPY2D_v1 {
    uint64_t from_to[10];
    unsigned int dstPitch, WidthInBytes, Height;
};
struct gt_CUDA_MEMCPY3D {
    uint64_t from_to[22];
    size_t WidthInBytes, Height, Depth;
};
struct gt_CUDA_MEMCPY3D_PEER {
    uint64_t from_to[22];
    size_t WidthInBytes, Height, Depth;
};
struct gt_CUDA_MEMCPY3D_v1 {
    uint64_t from_to[16];
    unsigned int WidthInBytes, Height, Depth;
};

/* A side of a copy in a batch: memory with a pitch, or an array, whose handle is what[0]. */
#define GT_CUDA_OPERAND_ARRAY 2
struct gt_cuda_operand {
    unsigned int type;
    uint64_t what[4];
};
struct gt_CUDA_MEMCPY3D_BATCH_OP {
    struct gt_cuda_operand src, dst;
    struct {
        size_t width, height, depth;
    } extent;
    unsigned int srcAccessOrder, flags;
};

/* ---- the runtime's ---- */

struct gt_dim3 {
    unsigned int x, y, z;
};
struct gt_cudaExtent {
    size_t width, height, depth;
};
struct gt_cudaPitchedPtr {
    void *ptr;
    size_t pitch, xsize, ysize;
};
struct gt_cudaIpcMemHandle_t {
    char reserved[64];
};
struct gt_cudaIpcEventHandle_t {
    char reserved[64];
};
struct gt_cudaChannelFormatDesc {
    int x, y, z, w; /* bits */
    unsigned int f;
};
struct gt_cudaMemcpy3DParms {
    cudaArray_t srcArray;
    size_t srcPos[3];
    struct gt_cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    size_t dstPos[3];
    struct gt_cudaPitchedPtr dstPtr;
    struct gt_cudaExtent extent;
    unsigned int kind;
};
struct gt_cudaMemcpy3DPeerParms {
    cudaArray_t srcArray;
    size_t srcPos[3];
    struct gt_cudaPitchedPtr srcPtr;
    int srcDevice;
    cudaArray_t dstArray;
    size_t dstPos[3];
    struct gt_cudaPitchedPtr dstPtr;
    int dstDevice;
    struct gt_cudaExtent extent;
};
struct gt_cudaMemcpy3DBatchOp {
    struct gt_cuda_operand src, dst;
    struct gt_cudaExtent extent;
    unsigned int srcAccessOrder, flags;
};

#endif
