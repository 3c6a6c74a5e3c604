/* Versions, errors, streams and events without flags, the profiler's switch. */
#include "tests/sim/cudart/rt.h"
#include <string.h>

RT_API cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
    RT_BODY(cudaRuntimeGetVersion_v3020, RT_NEEDS_NOTHING, runtimeVersion);
    if (!runtimeVersion)
        return RT_END(CUDA_ERROR_INVALID_VALUE);
    *runtimeVersion = CUDART_VERSION;
    return RT_END(CUDA_SUCCESS);
}

/* 0 and no error where there is no driver. */
RT_API cudaError_t cudaDriverGetVersion(int *driverVersion)
{
    RT_BODY(cudaDriverGetVersion_v3020, RT_NEEDS_NOTHING, driverVersion);
    if (!driverVersion)
        return RT_END(CUDA_ERROR_INVALID_VALUE);
    *driverVersion = 0;
    (void)rt_driver_init();
    return RT_END(rt_lookup() ? drv.cuDriverGetVersion(driverVersion) : CUDA_SUCCESS);
}

RT_API cudaError_t cudaGetLastError(void)
{
    RT_NO_PARAMS(cudaGetLastError_v3020, RT_NEEDS_NOTHING, NULL);
    cudaError_t e = rt_last_error(true);
    (void)RT_END(CUDA_SUCCESS);
    return e;
}

RT_API cudaError_t cudaPeekAtLastError(void)
{
    RT_NO_PARAMS(cudaPeekAtLastError_v3020, RT_NEEDS_NOTHING, NULL);
    cudaError_t e = rt_last_error(false);
    (void)RT_END(CUDA_SUCCESS);
    return e;
}

/* Made at build time from driver_types.h, sorted by number. */
struct error {
    int number;
    const char *name, *text;
};
static const struct error errors[] = {
#include "cudart_errors.inc"
};

static const struct error *error_of(cudaError_t e)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == (int)e)
            return &errors[i];
    return NULL;
}

RT_API const char *cudaGetErrorName(cudaError_t error)
{
    const struct error *e = error_of(error);
    return e ? e->name : "unrecognized error code";
}

RT_API const char *cudaGetErrorString(cudaError_t error)
{
    const struct error *e = error_of(error);
    return e ? e->text : "unrecognized error code";
}

RT_API cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
    RT(cudaStreamCreate, 3020, pStream);
    return RT_END(drv.cuStreamCreate(pStream, CU_STREAM_DEFAULT));
}

RT_API cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    RT(cudaEventCreate, 3020, event);
    return RT_END(drv.cuEventCreate(event, CU_EVENT_DEFAULT));
}

RT_API cudaError_t cudaProfilerStart(void)
{
    RT_VOID(cudaProfilerStart, 4000);
    return RT_END(drv.cuProfilerStart());
}

RT_API cudaError_t cudaProfilerStop(void)
{
    RT_VOID(cudaProfilerStop, 4000);
    return RT_END(drv.cuProfilerStop());
}

RT_API struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                          enum cudaChannelFormatKind f)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, f};
}

/* Tables of functions that are in no header: none is known here. */
RT_API cudaError_t cudaGetExportTable(const void **ppExportTable, const cudaUUID_t *pExportTableId)
{
    (void)pExportTableId;
    if (ppExportTable)
        *ppExportTable = NULL;
    return cudaErrorInvalidValue;
}
