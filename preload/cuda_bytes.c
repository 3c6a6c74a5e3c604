/* How much a call of CUDA moved or allocated, where its arguments do not say so directly. Called
 * when the call has succeeded, so what it was given could be read. */
#include "cuda.h"

#include <errno.h>

uint64_t gt_cuda_batch_bytes(const size_t *sizes, size_t count)
{
    uint64_t n = 0;

    for (size_t i = 0; sizes && i < count; i++)
        n += sizes[i];
    return n;
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

/* ---- arrays ---- */

/* What is only a place for memory has none yet. */
#define LAYERED 0x01u
#define CUBEMAP 0x04u
#define UNBACKED (0x40u | 0x80u) /* sparse, mapped later */

uint64_t gt_cuda_backed(uint64_t bytes, unsigned flags)
{
    return flags & UNBACKED ? 0 : bytes;
}

static size_t side(size_t n, unsigned level)
{
    return n >> level ? n >> level : 1;
}

/* Elements of all levels, each half as long on every side; layers and faces stay as many. */
static uint64_t mipmapped(size_t width, size_t height, size_t depth, unsigned flags,
                          unsigned levels)
{
    size_t longest = width > height ? width : height;
    int stays = (flags & (LAYERED | CUBEMAP)) != 0;
    uint64_t n = 0;

    longest = !stays && depth > longest ? depth : longest;
    for (unsigned l = 0; l < 64 && (l == 0 || (l < levels && longest >> l)); l++)
        n += (uint64_t)side(width, l) * side(height, l) * side(depth, stays ? 0 : l);
    return gt_cuda_backed(n, flags);
}

uint64_t gt_cuda_mipmapped_bytes(const CUDA_ARRAY3D_DESCRIPTOR *a, unsigned levels)
{
    return mipmapped(a->Width, a->Height, a->Depth, a->Flags, levels) *
           element_bytes(a->Format, a->NumChannels);
}

uint64_t gt_cudart_mipmapped_bytes(const cudaChannelFormatDesc *desc, const cudaExtent *extent,
                                   unsigned levels, unsigned flags)
{
    return mipmapped(extent->width, extent->height, extent->depth, flags, levels) *
           gt_cudart_array_bytes(desc, 1, 1, 1);
}

/* Bytes of an element of an array that is there; 0 where that can't be told. The runtime's arrays
 * are the driver's. */
static unsigned element_of(const void *array)
{
    static const struct gt_hook look_up[] = {{"cuArray3DGetDescriptor_v2", NULL, NULL}};
    static struct gt_cuda_real look_up_real[1];
    static const char *const libraries[] = {"libcuda.so.1", "libcuda.so", NULL};
    static const struct gt_cuda_api api = {look_up, NULL, look_up_real, 1, libraries};
    CUresult (*get)(CUDA_ARRAY3D_DESCRIPTOR *, const void *) =
        (CUresult(*)(CUDA_ARRAY3D_DESCRIPTOR *, const void *))gt_cuda_real(&api, look_up_real, 0);
    CUDA_ARRAY3D_DESCRIPTOR d;
    int saved = errno;
    unsigned bytes = 0;

    gt_cuda_thread.asking++;
    if (array && get && get(&d, array) == 0)
        bytes = element_bytes(d.Format, d.NumChannels);
    gt_cuda_thread.asking--;
    errno = saved;
    return bytes;
}

static uint64_t volume(const cudaExtent *e)
{
    return (uint64_t)e->width * e->height * e->depth;
}

uint64_t gt_cudart_array_bytes(const cudaChannelFormatDesc *desc, size_t width, size_t height,
                               size_t depth)
{
    uint64_t bits = (uint64_t)desc->x + (uint64_t)desc->y + (uint64_t)desc->z + (uint64_t)desc->w;

    return (uint64_t)width * (height ? height : 1) * (depth ? depth : 1) * (bits / 8);
}

/* ---- copies in three dimensions: with an array the extent is in its elements ---- */

static uint64_t parms(const cudaExtent *e, const void *from, const void *to)
{
    return volume(e) * (from || to ? element_of(from ? from : to) : 1);
}

uint64_t gt_cudart_3d_bytes(const cudaMemcpy3DParms *p)
{
    return parms(&p->extent, p->srcArray, p->dstArray);
}

uint64_t gt_cudart_peer_bytes(const cudaMemcpy3DPeerParms *p)
{
    return parms(&p->extent, p->srcArray, p->dstArray);
}

static int is_array(const struct gt_cuda_operand *o)
{
    return o->type == GT_CUDA_OPERAND_ARRAY;
}

static uint64_t operation(const cudaMemcpy3DBatchOp *op)
{
    const struct gt_cuda_operand *array = is_array(&op->src) ? &op->src : &op->dst;

    return volume(&op->extent) *
           (is_array(array) ? element_of((const void *)(uintptr_t)array->what[0]) : 1);
}

uint64_t gt_cudart_batch3d_bytes(const cudaMemcpy3DBatchOp *ops, size_t count)
{
    uint64_t n = 0;

    for (size_t i = 0; ops && i < count; i++)
        n += operation(&ops[i]);
    return n;
}

uint64_t gt_cuda_batch3d_bytes(const CUDA_MEMCPY3D_BATCH_OP *ops, size_t count)
{
    _Static_assert(sizeof(*ops) == sizeof(cudaMemcpy3DBatchOp), "laid out alike");
    return gt_cudart_batch3d_bytes((const cudaMemcpy3DBatchOp *)ops, count);
}
