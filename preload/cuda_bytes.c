/* How much a call of CUDA moved or allocated, where its arguments do not say so directly. Called
 * when the call has succeeded, so what it was given could be read. */
#include "cuda.h"

uint64_t gt_cuda_batch_bytes(const size_t *sizes, size_t count)
{
    uint64_t n = 0;

    for (size_t i = 0; sizes && i < count; i++)
        n += sizes[i];
    return n;
}

uint64_t gt_cuda_batch3d_bytes(const CUDA_MEMCPY3D_BATCH_OP *ops, size_t count)
{
    uint64_t n = 0;

    /* with an array the extent is in elements, whose size nobody but the driver knows */
    for (size_t i = 0; ops && i < count; i++)
        if (ops[i].src.type != GT_CUDA_OPERAND_ARRAY && ops[i].dst.type != GT_CUDA_OPERAND_ARRAY)
            n += (uint64_t)ops[i].extent.width * ops[i].extent.height * ops[i].extent.depth;
    return n;
}

uint64_t gt_cudart_batch3d_bytes(const cudaMemcpy3DBatchOp *ops, size_t count)
{
    _Static_assert(sizeof(*ops) == sizeof(CUDA_MEMCPY3D_BATCH_OP), "laid out alike");
    return gt_cuda_batch3d_bytes((const CUDA_MEMCPY3D_BATCH_OP *)ops, count);
}

/* Bytes of one element of a CUarray_format with so many channels; 0 for packed and planar formats,
 * which have no such thing. */
static unsigned element_bytes(unsigned format, unsigned channels)
{
    switch (format) {
    case 0x01: /* unsigned and signed, 8 bits */
    case 0x08:
        return channels;
    case 0x02: /* 16 bits, half */
    case 0x09:
    case 0x10:
        return 2 * channels;
    case 0x03: /* 32 bits, float */
    case 0x0a:
    case 0x20:
        return 4 * channels;
    case 0x50: /* 10 + 10 + 10 + 2 bits */
        return 4;
    default:
        /* normalised: 8 and 16 bits, unsigned and signed, each with 1, 2 and 4 channels */
        if (format >= 0xc0 && format <= 0xcb)
            return (format - 0xc0) / 3 % 2 ? 2u << (format - 0xc0) % 3 : 1u << (format - 0xc0) % 3;
        return 0;
    }
}

uint64_t gt_cuda_array_format_bytes(uint64_t elements, unsigned format, unsigned channels)
{
    return elements * element_bytes(format, channels);
}

uint64_t gt_cudart_array_bytes(const cudaChannelFormatDesc *desc, size_t width, size_t height,
                               size_t depth)
{
    uint64_t bits = (uint64_t)desc->x + (uint64_t)desc->y + (uint64_t)desc->z + (uint64_t)desc->w;

    return (uint64_t)width * (height ? height : 1) * (depth ? depth : 1) * (bits / 8);
}

static uint64_t volume(const cudaExtent *e)
{
    return (uint64_t)e->width * e->height * e->depth;
}

uint64_t gt_cudart_3d_bytes(const cudaMemcpy3DParms *p)
{
    return p->srcArray || p->dstArray ? 0 : volume(&p->extent);
}

uint64_t gt_cudart_peer_bytes(const cudaMemcpy3DPeerParms *p)
{
    return p->srcArray || p->dstArray ? 0 : volume(&p->extent);
}
