/* Versions, names, numbers of contexts and the like, settings, and the way out. */
#include "tests/sim/cupti/cupti_sim.h"
#include <stdatomic.h>
#include <string.h>

static atomic_int latency;

bool cupti_latency(void)
{
    return atomic_load(&latency) != 0;
}

SIM_API CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
    atomic_store(&latency, enable != 0);
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiGetVersion(uint32_t *version)
{
    if (!version)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

/* Made at build time from cupti_result.h. */
struct result {
    int number;
    const char *name;
};
static const struct result results[] = {
#include "cupti_results.inc"
};

SIM_API CUptiResult cuptiGetResultString(CUptiResult result, const char **str)
{
    if (!str)
        return CUPTI_ERROR_INVALID_PARAMETER;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (results[i].number == (int)result) {
            *str = results[i].name;
            return CUPTI_SUCCESS;
        }
    return CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_API CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **str)
{
    return cuptiGetResultString(result, str);
}

SIM_API CUptiResult cuptiGetLastError(void)
{
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
                                         const char **name)
{
    if (!name)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *name = NULL;
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid < cupti_driver_count)
        *name = cupti_driver_names[cbid];
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && cbid < cupti_runtime_count)
        *name = cupti_runtime_names[cbid];
    return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

/* ---- numbers */
SIM_API CUptiResult cuptiGetContextId(CUcontext context, uint32_t *contextId)
{
    if (!contextId)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (cupti_attach())
        return CUPTI_ERROR_NOT_INITIALIZED;
    *contextId = cupti_driver.context_id(context);
    return *contextId ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

SIM_API CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *deviceId)
{
    if (!deviceId)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (cupti_attach())
        return CUPTI_ERROR_NOT_INITIALIZED;
    if (context && !cupti_driver.context_id(context))
        return CUPTI_ERROR_INVALID_DEVICE;
    *deviceId = cupti_driver.device_of(context);
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t perThreadStream,
                                       uint32_t *streamId)
{
    if (!streamId)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (cupti_attach())
        return CUPTI_ERROR_NOT_INITIALIZED;
    if (!stream && perThreadStream)
        stream = CU_STREAM_PER_THREAD;
    *streamId = cupti_driver.stream_id(context, stream);
    return *streamId ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_STREAM;
}

SIM_API CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *streamId)
{
    return cuptiGetStreamIdEx(context, stream, 0, streamId);
}

SIM_API CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *pId)
{
    if (!graph || !pId)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (cupti_attach())
        return CUPTI_ERROR_NOT_INITIALIZED;
    *pId = cupti_driver.graph_id(graph);
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiGetGraphExecId(CUgraphExec graphExec, uint32_t *pId)
{
    if (!graphExec || !pId)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (cupti_attach())
        return CUPTI_ERROR_NOT_INITIALIZED;
    *pId = cupti_driver.exec_id(graphExec);
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *nodeId)
{
    if (!node || !nodeId)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (cupti_attach())
        return CUPTI_ERROR_NOT_INITIALIZED;
    *nodeId = cupti_driver.node_id(node);
    return CUPTI_SUCCESS;
}

/* ---- attributes: kept, and without effect */
#define ATTRIBUTES (CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS + 1)
static size_t attributes[ATTRIBUTES];

/* All are size_t, but for the switches, which are one byte. */
static size_t attribute_size(CUpti_ActivityAttribute attr)
{
    switch (attr) {
    case CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER:
    case CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED:
    case CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER:
        return sizeof(uint8_t);
    default:
        return sizeof(size_t);
    }
}

static CUptiResult attribute(CUpti_ActivityAttribute attr, size_t *valueSize, void *value)
{
    if (!valueSize || !value || (unsigned)attr >= ATTRIBUTES)
        return CUPTI_ERROR_INVALID_PARAMETER;
    return *valueSize < attribute_size(attr) ? CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT
                                             : CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t *valueSize,
                                              void *value)
{
    CUptiResult r = attribute(attr, valueSize, value);
    if (!r)
        memcpy(&attributes[attr], value, attribute_size(attr));
    return r;
}

SIM_API CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t *valueSize,
                                              void *value)
{
    CUptiResult r = attribute(attr, valueSize, value);
    if (!r) {
        *valueSize = attribute_size(attr);
        memcpy(value, &attributes[attr], *valueSize);
    }
    return r;
}

SIM_API CUptiResult cuptiFinalize(void)
{
    cupti_detach();
    cupti_kinds_reset();
    cupti_callbacks_reset();
    cupti_buffers_reset();
    cupti_clock_reset();
    atomic_store(&latency, 0);
    return CUPTI_SUCCESS;
}
