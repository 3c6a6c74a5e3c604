/* NVTX v3 injection interface: the few types a tool needs, written from the documented layout so
 * that no vendor header is needed to build. Used by nvtx.c only.
 *
 * Each copy of NVTX in a process calls InitializeInjectionNvtx2(get_table) once; get_table hands
 * out export tables, and the table of callbacks hands out, for each module, an array of pointers to
 * the function pointers that the copy calls from then on. Every size is checked before use: a copy
 * may be older or newer than this file. */
#ifndef GT_ABI_NVTX_H
#define GT_ABI_NVTX_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum gt_nvtx_table { GT_NVTX_TABLE_CALLBACKS = 1, GT_NVTX_TABLE_VERSION = 3 };
enum gt_nvtx_module { GT_NVTX_CORE = 1, GT_NVTX_CORE2 = 5 };

typedef void gt_nvtx_fn(void);
typedef const void *gt_nvtx_get_table(uint32_t table);

struct gt_nvtx_callbacks {
    size_t size_bytes;
    /* Returns 1 and the array (`*slots` entries, any of them may be NULL), or 0. */
    int (*get_module)(int module, gt_nvtx_fn ****entries, unsigned *slots);
};

struct gt_nvtx_version {
    size_t size_bytes;
    uint32_t version; /* of the copy in the program */
    uint32_t reserved;
    void (*set_tool_version)(uint32_t version);
};
#define GT_NVTX_TOOL_VERSION 3u

enum gt_nvtx_text {
    GT_NVTX_TEXT_NONE = 0,
    GT_NVTX_TEXT_ASCII = 1,
    GT_NVTX_TEXT_WIDE = 2,
    GT_NVTX_TEXT_REGISTERED = 3,
};

/* Any other type, above all the extension's 0xDFBD0009, says that `payload` is a pointer or a
 * handle of a protocol that is not spoken here. */
enum gt_nvtx_payload {
    GT_NVTX_PAYLOAD_NONE = 0,
    GT_NVTX_PAYLOAD_U64 = 1,
    GT_NVTX_PAYLOAD_I64 = 2,
    GT_NVTX_PAYLOAD_DOUBLE = 3,
    GT_NVTX_PAYLOAD_U32 = 4,
    GT_NVTX_PAYLOAD_I32 = 5,
    GT_NVTX_PAYLOAD_FLOAT = 6,
};

struct gt_nvtx_attr {
    uint16_t version;
    uint16_t size_bytes; /* what the program knows of this struct: fields behind it are not there */
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    union {
        uint64_t u64;
        int64_t i64;
        double f64;
        uint32_t u32;
        int32_t i32;
        float f32;
    } payload;
    int32_t text_type;
    union {
        const char *ascii;
        const wchar_t *wide;
        const void *registered;
    } text;
};
/* 1 if the program's struct reaches to the end of `field`. */
#define GT_NVTX_HAS(attr, field)                                                                   \
    ((attr)->size_bytes >=                                                                         \
     offsetof(struct gt_nvtx_attr, field) + sizeof(((struct gt_nvtx_attr *)0)->field))

_Static_assert(sizeof(struct gt_nvtx_attr) == 48, "the size every NVTX since 2 passes");

#endif
