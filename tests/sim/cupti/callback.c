/*
 * The callback interface: one subscriber, told of calls before and after, of contexts, streams,
 * modules and graphs. GTSIM_CUPTI_REFUSE=39 is a process that another tool has taken already.
 */
#include "tests/sim/cupti/cupti_sim.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define IDS 4096
struct CUpti_Subscriber_st {
    CUpti_CallbackFunc function;
    void *data;
};
static struct CUpti_Subscriber_st only;
static atomic_int taken;
static atomic_uchar on[CUPTI_CB_DOMAIN_SIZE][IDS];

static bool ours(CUpti_SubscriberHandle s)
{
    return s == &only && atomic_load(&taken);
}

static bool valid(CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    if ((int)domain <= CUPTI_CB_DOMAIN_INVALID || domain >= CUPTI_CB_DOMAIN_SIZE || !cbid)
        return false;
    switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
        return cbid < cupti_driver_count;
    case CUPTI_CB_DOMAIN_RUNTIME_API:
        return cbid < cupti_runtime_count;
    case CUPTI_CB_DOMAIN_RESOURCE:
        return cbid < CUPTI_CBID_RESOURCE_SIZE;
    case CUPTI_CB_DOMAIN_SYNCHRONIZE:
        return cbid < CUPTI_CBID_SYNCHRONIZE_SIZE;
    case CUPTI_CB_DOMAIN_STATE:
        return cbid < CUPTI_CBID_STATE_SIZE;
    default:
        return cbid < IDS;
    }
}

SIM_API CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                                   void *userdata)
{
    if (!subscriber)
        return CUPTI_ERROR_INVALID_PARAMETER;
    const char *refuse = getenv("GTSIM_CUPTI_REFUSE");
    if (refuse && atoi(refuse) == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    int none = 0;
    if (!atomic_compare_exchange_strong(&taken, &none, 1))
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    only.function = callback;
    only.data = userdata;
    *subscriber = &only;
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber,
                                      CUpti_CallbackFunc callback, void *userdata,
                                      CUpti_SubscriberParams *pParams)
{
    if (pParams && !pParams->structSize)
        return CUPTI_ERROR_INVALID_PARAMETER;
    CUptiResult r = cuptiSubscribe(subscriber, callback, userdata);
    if (r == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && pParams &&
        pParams->oldSubscriberName && pParams->oldSubscriberSize)
        strncpy(pParams->oldSubscriberName, "CUPTI", pParams->oldSubscriberSize);
    return r;
}

void cupti_callbacks_reset(void)
{
    for (int d = 0; d < CUPTI_CB_DOMAIN_SIZE; d++)
        for (int i = 0; i < IDS; i++)
            atomic_store(&on[d][i], 0);
    atomic_store(&taken, 0);
}

SIM_API CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    if (!ours(subscriber))
        return CUPTI_ERROR_INVALID_PARAMETER;
    cupti_callbacks_reset();
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                        CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    if (!ours(subscriber) || !valid(domain, cbid))
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (cupti_attach())
        return CUPTI_ERROR_NOT_INITIALIZED;
    atomic_store(&on[domain][cbid], enable != 0);
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                      CUpti_CallbackDomain domain)
{
    if (!ours(subscriber) || (int)domain <= CUPTI_CB_DOMAIN_INVALID ||
        domain >= CUPTI_CB_DOMAIN_SIZE)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (cupti_attach())
        return CUPTI_ERROR_NOT_INITIALIZED;
    for (CUpti_CallbackId i = 1; i < IDS; i++)
        atomic_store(&on[domain][i], enable != 0);
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber)
{
    CUptiResult r = CUPTI_SUCCESS;
    for (int d = CUPTI_CB_DOMAIN_INVALID + 1; d < CUPTI_CB_DOMAIN_SIZE && !r; d++)
        r = cuptiEnableDomain(enable, subscriber, (CUpti_CallbackDomain)d);
    return r;
}

SIM_API CUptiResult cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle subscriber,
                                          CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    if (!enable || !ours(subscriber) || !valid(domain, cbid))
        return CUPTI_ERROR_INVALID_PARAMETER;
    *enable = atomic_load(&on[domain][cbid]);
    return CUPTI_SUCCESS;
}

static void tell(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data)
{
    if (cbid < IDS && atomic_load(&on[domain][cbid]) && atomic_load(&taken) && only.function)
        only.function(only.data, domain, cbid, data);
}

/* A call that waits is told of in a domain of its own as well, when it is over. */
static void tell_sync(const struct gtsim_call *call)
{
    CUpti_CallbackId id = CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED;
    CUpti_SynchronizeData d = {call->context, NULL};
    switch (call->cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize:
        id = CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED;
        break;
    case CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz:
        d.stream = ((const cuStreamSynchronize_params *)call->params)->hStream;
        break;
    default:
        return;
    }
    tell(CUPTI_CB_DOMAIN_SYNCHRONIZE, id, &d);
}

void cupti_call_back(const struct gtsim_call *call, CUpti_ApiCallbackSite site)
{
    CUpti_CallbackData d = {
        .callbackSite = site,
        .functionName = call->name,
        .functionParams = call->params,
        .functionReturnValue = site == CUPTI_API_EXIT ? (void *)&call->result : NULL,
        .symbolName = call->symbol,
        .context = call->context,
        .contextUid = call->context_id,
        .correlationData = (uint64_t *)&call->user,
        .correlationId = call->correlation,
    };
    bool driver = call->domain == GTSIM_DRIVER;
    if (driver && site == CUPTI_API_EXIT)
        tell_sync(call);
    if (call->cbid)
        tell(driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API, call->cbid, &d);
}

/* The driver numbers them as CUPTI does. */
void cupti_call_back_resource(const struct gtsim_resource *r)
{
    CUpti_GraphData graph = {r->graph,     r->original_graph, r->node, r->original_node,
                             r->node_type, r->dependency,     r->exec};
    CUpti_ModuleResourceData module = {0, r->cubin_bytes, r->cubin};
    CUpti_ResourceData d = {.context = r->context, .resourceHandle.stream = r->stream};
    if (r->cbid >= CUPTI_CBID_RESOURCE_GRAPH_CREATED)
        d.resourceDescriptor = &graph;
    else if (r->cbid >= CUPTI_CBID_RESOURCE_MODULE_LOADED)
        d.resourceDescriptor = &module;
    tell(CUPTI_CB_DOMAIN_RESOURCE, (CUpti_CallbackId)r->cbid, &d);
}
