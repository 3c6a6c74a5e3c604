/* Reading unwind data that may be damaged: eh_frame.c, eh_rows.c. Every read goes through struct
 * gt_in, which knows where the segment ends; after a read beyond it `bad` is set, and all further
 * reads give 0. */
#ifndef GT_EH_READ_H
#define GT_EH_READ_H

#include <stdint.h>
#include <string.h>

struct gt_in {
    const unsigned char *p, *end;
    int bad;
};

static inline uint64_t gt_get(struct gt_in *in, unsigned bytes)
{
    uint64_t v = 0;
    if (in->bad || (size_t)(in->end - in->p) < bytes) {
        in->bad = 1;
        return 0;
    }
    memcpy(&v, in->p, bytes); /* both machines are little-endian */
    in->p += bytes;
    return v;
}

/* LEB128: seven bits a byte; of a signed one the last bit of the last byte goes on upwards. */
static inline uint64_t gt_get_leb(struct gt_in *in, int is_signed)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint64_t b = gt_get(in, 1);
        if (in->bad || shift > 63) {
            in->bad = 1;
            return 0;
        }
        v |= (b & 0x7f) << shift;
        if (b & 0x80)
            continue;
        if (is_signed && (b & 0x40) && shift + 7 < 64)
            v |= ~UINT64_C(0) << (shift + 7);
        return v;
    }
}

static inline uint64_t gt_get_uleb(struct gt_in *in)
{
    return gt_get_leb(in, 0);
}

static inline int64_t gt_get_sleb(struct gt_in *in)
{
    return (int64_t)gt_get_leb(in, 1);
}

static inline void gt_skip(struct gt_in *in, uint64_t bytes)
{
    if (in->bad || (uint64_t)(in->end - in->p) < bytes)
        in->bad = 1;
    else
        in->p += bytes;
}

enum {
    GT_PE_OMIT = 0xff,
    GT_PE_PCREL = 0x10,
    GT_PE_DATAREL = 0x30,
    GT_PE_FRAME = 0x1b, /* pcrel, sdata4 */
    GT_PE_COUNT = 0x03, /* udata4 */
    GT_PE_TABLE = 0x3b  /* datarel, sdata4 */
};

/* A value in one of the DW_EH_PE encodings; `data` is what a datarel one counts from. */
static inline uint64_t gt_get_encoded(struct gt_in *in, unsigned enc, uint64_t data)
{
    uint64_t v, here = (uint64_t)(uintptr_t)in->p;
    switch (enc & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
        v = gt_get(in, 8);
        break;
    case 0x01:
        v = gt_get_uleb(in);
        break;
    case 0x02:
        v = gt_get(in, 2);
        break;
    case 0x03:
        v = gt_get(in, 4);
        break;
    case 0x09:
        v = (uint64_t)gt_get_sleb(in);
        break;
    case 0x0a:
        v = (uint64_t)(int64_t)(int16_t)gt_get(in, 2);
        break;
    case 0x0b:
        v = (uint64_t)(int64_t)(int32_t)gt_get(in, 4);
        break;
    default:
        in->bad = 1;
        return 0;
    }
    switch (enc & 0x70) {
    case 0:
        return v;
    case GT_PE_PCREL:
        return v + here;
    case GT_PE_DATAREL:
        return v + data;
    default:
        in->bad = 1;
        return 0;
    }
}

#endif
