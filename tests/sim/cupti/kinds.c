/*
 * Which kinds of records are wanted. Refusals: GTSIM_CUPTI_REFUSE=N makes cuptiActivityEnable
 * return N (999: as on a machine whose driver CUPTI can't use).
 */
#include "tests/sim/cupti/cupti_sim.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The most numbers of functions a domain has; checked against the names in names.c. */
#define CALLS 4096

/* Read without a lock by every call. */
static atomic_uchar on[CUPTI_ACTIVITY_KIND_COUNT];
static atomic_uchar calls[2][CALLS]; /* functions wanted one by one, of the driver, the runtime */

bool cupti_records(CUpti_ActivityKind kind)
{
    return atomic_load_explicit(&on[kind], memory_order_relaxed) != 0;
}

static CUpti_ActivityKind kind_of(enum gtsim_domain domain)
{
    return domain == GTSIM_DRIVER ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME;
}

/* The kind overrides what was set for single functions before it, so it is written into them. */
bool cupti_records_api(enum gtsim_domain domain, uint32_t cbid)
{
    return cbid < CALLS && atomic_load_explicit(&calls[domain - 1][cbid], memory_order_relaxed);
}

/* Kinds that are taken; of those from STREAM on there are no records here. Memory's are refused:
   their records would have to know the bytes that a free gives back. */
static bool known(CUpti_ActivityKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
    case CUPTI_ACTIVITY_KIND_MEMSET:
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
    case CUPTI_ACTIVITY_KIND_STREAM:
    case CUPTI_ACTIVITY_KIND_DEVICE:
    case CUPTI_ACTIVITY_KIND_CONTEXT:
    case CUPTI_ACTIVITY_KIND_NAME:
    case CUPTI_ACTIVITY_KIND_MARKER:
    case CUPTI_ACTIVITY_KIND_MARKER_DATA:
    case CUPTI_ACTIVITY_KIND_MODULE:
    case CUPTI_ACTIVITY_KIND_FUNCTION:
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
    case CUPTI_ACTIVITY_KIND_JIT:
        return true;
    default:
        return false;
    }
}

static CUptiResult set(CUpti_ActivityKind kind, bool want)
{
    if ((int)kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT)
        return CUPTI_ERROR_INVALID_KIND;
    if (want && !known(kind))
        return CUPTI_ERROR_NOT_COMPATIBLE;
    if (kind == CUPTI_ACTIVITY_KIND_DRIVER || kind == CUPTI_ACTIVITY_KIND_RUNTIME)
        for (size_t i = 0; i < CALLS; i++)
            atomic_store(&calls[kind - CUPTI_ACTIVITY_KIND_DRIVER][i], want);
    atomic_store(&on[kind], want);
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    const char *refuse = getenv("GTSIM_CUPTI_REFUSE");
    if (refuse && *refuse)
        return (CUptiResult)atoi(refuse);
    CUptiResult r = cupti_attach();
    return r ? r : set(kind, true);
}

/* Existing contexts and streams have no records here: there is nothing to dump. */
SIM_API CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
    return cuptiActivityEnable(kind);
}

SIM_API CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    return set(kind, false);
}

static CUptiResult set_call(enum gtsim_domain domain, CUpti_CallbackId cbid, uint8_t enable)
{
    if (cbid >= CALLS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    CUptiResult r = cupti_attach();
    if (r)
        return r;
    atomic_store(&calls[domain - 1][cbid], enable != 0);
    /* a runtime call that has a record hides the driver's below it, however it was enabled */
    if (enable)
        atomic_store(&on[kind_of(domain)], 1);
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
    return set_call(GTSIM_DRIVER, cbid, enable);
}

SIM_API CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
    return set_call(GTSIM_RUNTIME, cbid, enable);
}

void cupti_kinds_reset(void)
{
    for (int k = CUPTI_ACTIVITY_KIND_INVALID + 1; k < CUPTI_ACTIVITY_KIND_COUNT; k++)
        (void)set((CUpti_ActivityKind)k, false);
}
