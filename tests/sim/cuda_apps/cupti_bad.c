/*
 * What CUPTI refuses, and what its callbacks say: every line is `what: result`. Needs the simulated
 * driver, no kernels. Uses the driver API, so that driver callbacks come.
 */
#include <cuda.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(const char *what, int result)
{
    printf("%s: %d\n", what, result);
}

static int enters, exits, matched, created;
static uint32_t id_at_enter;

static void CUPTIAPI called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                            const void *data)
{
    (void)user;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED)
        created++;
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API || cbid != CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2)
        return;
    const CUpti_CallbackData *d = data;
    if (d->callbackSite == CUPTI_API_ENTER) {
        enters++;
        id_at_enter = d->correlationId;
        *d->correlationData = 99;
        /* what a callback calls itself is not announced */
        int n;
        (void)cuDeviceGetCount(&n);
    } else {
        exits++;
        const cuMemAlloc_v2_params *p = d->functionParams;
        matched += d->correlationId == id_at_enter && *d->correlationData == 99 &&
                   p->bytesize == 64 && *(CUresult *)d->functionReturnValue == CUDA_SUCCESS &&
                   !strcmp(d->functionName, "cuMemAlloc_v2");
    }
}

static int handed;
static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *most)
{
    static uint8_t small[64] __attribute__((aligned(8)));
    *buffer = handed ? NULL : small;
    *size = handed ? 0 : sizeof small;
    *most = 0;
    handed++;
}
static size_t valid_bytes;
static void CUPTIAPI completed(CUcontext c, uint32_t s, uint8_t *b, size_t size, size_t valid)
{
    (void)c, (void)s, (void)b, (void)size;
    valid_bytes += valid;
}

int main(void)
{
    CUpti_SubscriberHandle s = NULL, second = NULL;
    uint8_t bytes[256] = {0};
    CUpti_Activity *r = NULL;
    size_t n = 0, one = 1;
    say("flush with no callbacks", cuptiActivityFlushAll(0));
    say("no callback", cuptiActivityRegisterCallbacks(NULL, completed));
    say("kind 0", cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID));
    say("kind 9999", cuptiActivityEnable((CUpti_ActivityKind)9999));
    say("kind that can't be", cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING));
    say("disable kind 0", cuptiActivityDisable(CUPTI_ACTIVITY_KIND_INVALID));
    say("push kind 0", cuptiActivityPushExternalCorrelationId(0, 1));
    say("pop kind 99", cuptiActivityPopExternalCorrelationId(99, NULL));
    say("pop nothing",
        cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, NULL));
    say("no buffer", cuptiActivityGetNextRecord(NULL, 1, &r));
    say("empty buffer", cuptiActivityGetNextRecord(bytes, 0, &r));
    say("rubbish", cuptiActivityGetNextRecord(bytes, sizeof bytes, &r));
    bytes[0] = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    say("cut record", cuptiActivityGetNextRecord(bytes, 40, &r));
    say("no count", cuptiActivityGetNumDroppedRecords(NULL, 0, NULL));
    say("no attribute", cuptiActivitySetAttribute((CUpti_ActivityAttribute)77, &one, bytes));
    say("short attribute",
        cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &one, bytes));
    say("no clock", cuptiActivityRegisterTimestampCallback(NULL));
    say("no timestamp", cuptiGetTimestamp(NULL));
    say("no handle", cuptiSubscribe(NULL, called, NULL));
    say("subscribe", cuptiSubscribe(&s, called, NULL));
    say("second subscriber", cuptiSubscribe(&second, called, NULL));
    say("domain 0", cuptiEnableDomain(1, s, CUPTI_CB_DOMAIN_INVALID));
    say("no subscriber", cuptiEnableDomain(1, NULL, CUPTI_CB_DOMAIN_DRIVER_API));
    say("function 9999", cuptiEnableCallback(1, s, CUPTI_CB_DOMAIN_DRIVER_API, 9999));
    say("enable", cuptiEnableDomain(1, s, CUPTI_CB_DOMAIN_DRIVER_API));
    say("enable resources", cuptiEnableDomain(1, s, CUPTI_CB_DOMAIN_RESOURCE));

    CUdevice device;
    CUcontext context;
    CUdeviceptr p;
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context) || cuMemAlloc(&p, 64))
        return 1;
    printf("told %d %d matched %d contexts %d\n", enters, exits, matched, created);
    say("unsubscribe", cuptiUnsubscribe(s));
    say("again", cuptiUnsubscribe(s));

    /* room for one call's record, then none: the others are dropped and counted */
    say("callbacks", cuptiActivityRegisterCallbacks(requested, completed));
    say("enable calls", cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER));
    int v;
    for (int i = 0; i < 3; i++)
        if (cuDriverGetVersion(&v))
            return 1;
    say("flush", cuptiActivityFlushAll(0));
    say("dropped", cuptiActivityGetNumDroppedRecords(NULL, 0, &n));
    printf("dropped %zu got %zu bytes\n", n, valid_bytes);
    (void)cuptiActivityGetNumDroppedRecords(NULL, 0, &n);
    printf("then %zu\n", n);
    say("finalize", cuptiFinalize());
    say("flush after it", cuptiActivityFlushAll(0));
    say("subscribe after it", cuptiSubscribe(&s, called, NULL));
    return 0;
}
