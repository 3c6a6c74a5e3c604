/* preload/abi/cupti.h against the real header: compiled where one is, run never. */
#include <cupti.h>
#include "preload/abi/cupti.h"

#define SAME(ours, our_field, theirs, their_field)                                                 \
    _Static_assert(offsetof(struct ours, our_field) == offsetof(theirs, their_field) &&            \
                       sizeof(((struct ours *)0)->our_field) ==                                    \
                           sizeof(((theirs *)0)->their_field),                                     \
                   #theirs "." #their_field)

#define KERNEL CUpti_ActivityKernel9
SAME(gt_cupti_kernel, registers, KERNEL, registersPerThread);
SAME(gt_cupti_kernel, start, KERNEL, start);
SAME(gt_cupti_kernel, end, KERNEL, end);
SAME(gt_cupti_kernel, device, KERNEL, deviceId);
SAME(gt_cupti_kernel, stream, KERNEL, streamId);
SAME(gt_cupti_kernel, shared_static, KERNEL, staticSharedMemory);
SAME(gt_cupti_kernel, shared_dynamic, KERNEL, dynamicSharedMemory);
SAME(gt_cupti_kernel, correlation, KERNEL, correlationId);
SAME(gt_cupti_kernel, name, KERNEL, name);
_Static_assert(offsetof(struct gt_cupti_kernel, grid) == offsetof(KERNEL, gridX), "grid");
_Static_assert(offsetof(struct gt_cupti_kernel, block) == offsetof(KERNEL, blockX), "block");

SAME(gt_cupti_copy, copy_kind, CUpti_ActivityMemcpy6, copyKind);
SAME(gt_cupti_copy, source, CUpti_ActivityMemcpy6, srcKind);
SAME(gt_cupti_copy, target, CUpti_ActivityMemcpy6, dstKind);
SAME(gt_cupti_copy, bytes, CUpti_ActivityMemcpy6, bytes);
SAME(gt_cupti_copy, start, CUpti_ActivityMemcpy6, start);
SAME(gt_cupti_copy, end, CUpti_ActivityMemcpy6, end);
SAME(gt_cupti_copy, device, CUpti_ActivityMemcpy6, deviceId);
SAME(gt_cupti_copy, correlation, CUpti_ActivityMemcpy6, correlationId);

SAME(gt_cupti_copy, bytes, CUpti_ActivityMemset4, bytes);
SAME(gt_cupti_copy, start, CUpti_ActivityMemset4, start);
SAME(gt_cupti_copy, end, CUpti_ActivityMemset4, end);
SAME(gt_cupti_copy, device, CUpti_ActivityMemset4, deviceId);
SAME(gt_cupti_copy, correlation, CUpti_ActivityMemset4, correlationId);
SAME(gt_cupti_copy, set_memory, CUpti_ActivityMemset4, memoryKind);

#define PEER CUpti_ActivityMemcpyPtoP4
SAME(gt_cupti_peer_copy, copy_kind, PEER, copyKind);
SAME(gt_cupti_peer_copy, source, PEER, srcKind);
SAME(gt_cupti_peer_copy, target, PEER, dstKind);
SAME(gt_cupti_peer_copy, bytes, PEER, bytes);
SAME(gt_cupti_peer_copy, start, PEER, start);
SAME(gt_cupti_peer_copy, end, PEER, end);
SAME(gt_cupti_peer_copy, device, PEER, deviceId);
SAME(gt_cupti_peer_copy, source_device, PEER, srcDeviceId);
SAME(gt_cupti_peer_copy, target_device, PEER, dstDeviceId);
SAME(gt_cupti_peer_copy, correlation, PEER, correlationId);
SAME(gt_cupti_peer_copy, correlation, CUpti_ActivityMemcpyPtoP, correlationId);
SAME(gt_cupti_peer_copy, correlation, CUpti_ActivityMemcpyPtoP2, correlationId);
SAME(gt_cupti_peer_copy, correlation, CUpti_ActivityMemcpyPtoP3, correlationId);

SAME(gt_cupti_api, id, CUpti_ActivityAPI, cbid);
SAME(gt_cupti_api, correlation, CUpti_ActivityAPI, correlationId);

SAME(gt_cupti_call, site, CUpti_CallbackData, callbackSite);
SAME(gt_cupti_call, function, CUpti_CallbackData, functionName);
SAME(gt_cupti_call, correlation, CUpti_CallbackData, correlationId);

_Static_assert(GT_CUPTI_KERNEL == (int)CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kind");
_Static_assert(GT_CUPTI_COPY == (int)CUPTI_ACTIVITY_KIND_MEMCPY, "kind");
_Static_assert(GT_CUPTI_PEER_COPY == (int)CUPTI_ACTIVITY_KIND_MEMCPY2, "kind");
_Static_assert(GT_CUPTI_DRIVER_CALL == (int)CUPTI_ACTIVITY_KIND_DRIVER, "kind");
_Static_assert(GT_CUPTI_SET == (int)CUPTI_ACTIVITY_KIND_MEMSET, "kind");
_Static_assert(GT_CUPTI_DRIVER == (int)CUPTI_CB_DOMAIN_DRIVER_API, "domain");
_Static_assert(GT_CUPTI_RUNTIME == (int)CUPTI_CB_DOMAIN_RUNTIME_API, "domain");
_Static_assert(GT_CUPTI_MULTIPLE_SUBSCRIBERS == (int)CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
               "result");
_Static_assert(GT_CUPTI_NOT_INITIALIZED == (int)CUPTI_ERROR_NOT_INITIALIZED, "result");
_Static_assert(GT_CUPTI_MAX_LIMIT == (int)CUPTI_ERROR_MAX_LIMIT_REACHED, "result");
