/* What we need of the binary interface of libcupti.so, in words of our own. Records only ever grow
 * at their end, so the offsets hold for every version since 11 (checked against 13.0's header by
 * tests/sim/abi_cupti.c). */
#ifndef GT_ABI_CUPTI_H
#define GT_ABI_CUPTI_H

#include <stddef.h>
#include <stdint.h>

enum gt_cupti_result {
    GT_CUPTI_OK = 0,
    GT_CUPTI_INVALID = 1,
    GT_CUPTI_MAX_LIMIT = 12,       /* no more records in a buffer */
    GT_CUPTI_NOT_INITIALIZED = 15, /* what we say where no CUPTI is behind us */
    GT_CUPTI_MULTIPLE_SUBSCRIBERS = 39,
};

enum gt_cupti_domain {
    GT_CUPTI_DRIVER = 1,
    GT_CUPTI_RUNTIME = 2,
    GT_CUPTI_DOMAINS = 16, /* more than there are */
};
#define GT_CUPTI_CALLBACKS 2048u /* more than a domain has */

/* CUpti_CallbackData, from its beginning */
struct gt_cupti_call {
    int site; /* 0: before the function, 1: after it */
    const char *function;
    const void *parameters;
    void *result;
    const char *symbol;
    void *context;
    uint32_t context_id;
    uint64_t *data;
    uint32_t correlation;
};
typedef void gt_cupti_callback(void *user, int domain, uint32_t id, const void *call);

enum gt_cupti_kind {
    GT_CUPTI_COPY = 1,
    GT_CUPTI_SET = 2,
    GT_CUPTI_SERIAL_KERNEL = 3,
    GT_CUPTI_DRIVER_CALL = 4,
    GT_CUPTI_KERNEL = 10,
    GT_CUPTI_PEER_COPY = 22,
    GT_CUPTI_KINDS = 256, /* more than there are */
};

/* CUpti_ActivityKernel4 and later */
struct gt_cupti_kernel {
    uint32_t kind;
    uint8_t caches[2];
    uint16_t registers;
    uint32_t unused[2];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    uint32_t grid[3], block[3];
    uint32_t shared_static, shared_dynamic;
    uint32_t local[2];
    uint32_t correlation;
    int64_t grid_id;
    const char *name;
};
_Static_assert(offsetof(struct gt_cupti_kernel, correlation) == 92, "as the header has it");
_Static_assert(offsetof(struct gt_cupti_kernel, name) == 104, "as the header has it");

/* CUpti_ActivityMemcpy…6 and CUpti_ActivityMemset…4 */
struct gt_cupti_copy {
    uint32_t kind;
    uint8_t copy_kind, source, target, flags; /* of a set: its value */
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device, context, stream;
    uint32_t correlation;
    uint16_t set_flags, set_memory; /* of a set */
};
_Static_assert(offsetof(struct gt_cupti_copy, correlation) == 44, "as the header has it");

/* CUpti_ActivityMemcpyPtoP…4: from one device to another */
struct gt_cupti_peer_copy {
    uint32_t kind;
    uint8_t copy_kind, source, target, flags;
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device, context, stream;
    uint32_t source_device, source_context, target_device, target_context;
    uint32_t correlation;
};
_Static_assert(offsetof(struct gt_cupti_peer_copy, correlation) == 60, "as the header has it");

/* CUpti_ActivityAPI: a call of the driver or the runtime */
struct gt_cupti_api {
    uint32_t kind, id; /* of its callback */
    uint64_t start, end;
    uint32_t process, thread, correlation;
};
_Static_assert(offsetof(struct gt_cupti_api, correlation) == 32, "as the header has it");

typedef void gt_cupti_request(uint8_t **buffer, size_t *bytes, size_t *most_records);
typedef void gt_cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                               size_t valid);
typedef uint64_t gt_cupti_clock(void);

#endif
