/* Not a client: fails to compile if preload/abi/nvtx.h differs from the real NVTX header. That the
 * callback ids are right is shown by nvtx_basic, which calls every function. */
#include "nvtx_client.h"

#if HAVE_NVTX
#include "../../preload/abi/nvtx.h"

#define SAME(ours, theirs)                                                                         \
    _Static_assert(offsetof(struct gt_nvtx_attr, ours) == offsetof(nvtxEventAttributes_t, theirs), \
                   #theirs);                                                                       \
    _Static_assert(sizeof(((struct gt_nvtx_attr *)0)->ours) ==                                     \
                       sizeof(((nvtxEventAttributes_t *)0)->theirs),                               \
                   #theirs)
#define EQUAL(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(version, version);
SAME(size_bytes, size);
SAME(category, category);
SAME(color_type, colorType);
SAME(color, color);
SAME(payload_type, payloadType);
SAME(payload, payload);
SAME(text_type, messageType);
SAME(text, message);
EQUAL(GT_NVTX_TEXT_NONE, NVTX_MESSAGE_UNKNOWN);
EQUAL(GT_NVTX_TEXT_ASCII, NVTX_MESSAGE_TYPE_ASCII);
EQUAL(GT_NVTX_TEXT_WIDE, NVTX_MESSAGE_TYPE_UNICODE);
EQUAL(GT_NVTX_TEXT_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
EQUAL(GT_NVTX_PAYLOAD_NONE, NVTX_PAYLOAD_UNKNOWN);
EQUAL(GT_NVTX_PAYLOAD_U64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
EQUAL(GT_NVTX_PAYLOAD_I64, NVTX_PAYLOAD_TYPE_INT64);
EQUAL(GT_NVTX_PAYLOAD_DOUBLE, NVTX_PAYLOAD_TYPE_DOUBLE);
EQUAL(GT_NVTX_PAYLOAD_U32, NVTX_PAYLOAD_TYPE_UNSIGNED_INT32);
EQUAL(GT_NVTX_PAYLOAD_I32, NVTX_PAYLOAD_TYPE_INT32);
EQUAL(GT_NVTX_PAYLOAD_FLOAT, NVTX_PAYLOAD_TYPE_FLOAT);
EQUAL(GT_NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
EQUAL(GT_NVTX_TABLE_VERSION, NVTX_ETID_VERSIONINFO);
EQUAL(GT_NVTX_CORE, NVTX_CB_MODULE_CORE);
EQUAL(GT_NVTX_CORE2, NVTX_CB_MODULE_CORE2);
_Static_assert(sizeof(struct gt_nvtx_callbacks) == sizeof(NvtxExportTableCallbacks), "callbacks");
_Static_assert(sizeof(struct gt_nvtx_version) == sizeof(NvtxExportTableVersionInfo), "version");
_Static_assert(sizeof(nvtxRangeId_t) == sizeof(uint64_t), "range id");

int main(void)
{
    puts("done");
    return 0;
}
#else
int main(void)
{
    return no_nvtx();
}
#endif
