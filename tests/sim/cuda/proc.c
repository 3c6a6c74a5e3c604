/* How programs that do not link the driver find its functions, and names of errors. */
#include "sim.h"
#include <string.h>

/* the newest of that name that this driver and the caller know; per-thread streams: their variant,
 * if any */
static const struct sim_entry *find(const char *name, int version, bool per_thread, bool *known)
{
    const struct sim_entry *plain = NULL;
    int ours = 0;

    (void)sim_cuDriverGetVersion(&ours);
    for (const struct sim_entry *e = sim_entries; e->name; e++) {
        if (strcmp(e->base, name) || e->since > ours || sim_hidden(e->name))
            continue;
        *known = true;
        if (e->since > version)
            continue;
        if (e->per_thread && per_thread)
            return e;
        if (!e->per_thread && !plain)
            plain = e;
    }
    return plain;
}

static CUresult look_up(const char *symbol, void **pfn, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status)
{
    bool known = false;
    int ours = 0;

    if (!symbol || !pfn || flags > 3)
        return CUDA_ERROR_INVALID_VALUE;
    (void)sim_cuDriverGetVersion(&ours);
    const struct sim_entry *e =
        find(symbol, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &known);
    *pfn = e ? e->fn : NULL;
    if (status)
        *status = e       ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    sim_trace("lookup %s %d %llu %s", *symbol ? symbol : "-", version, (unsigned long long)flags,
              e ? e->name : "-");
    if (version > ours) {
        *pfn = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *symbolStatus)
{
    return look_up(symbol, pfn, cudaVersion, flags, symbolStatus);
}

/* of CUDA 11: what is not there is an error */
CUresult sim_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    CUresult r = look_up(symbol, pfn, cudaVersion, flags, NULL);

    return !r && !*pfn ? CUDA_ERROR_NOT_FOUND : r;
}

/* There are none: the real runtime, whose check that the driver is genuine needs them, ends here.
 */
CUresult sim_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    if (ppExportTable)
        *ppExportTable = NULL;
    (void)pExportTableId;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGetErrorName(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = NULL;
    for (const struct sim_error *e = sim_errors; e->name; e++) {
        if (e->number == (int)error)
            *pStr = e->name;
    }
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGetErrorString(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = NULL;
    for (const struct sim_error *e = sim_errors; e->name; e++) {
        if (e->number == (int)error)
            *pStr = e->text;
    }
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuProfilerStart(void)
{
    return CUDA_SUCCESS;
}

CUresult sim_cuProfilerStop(void)
{
    return CUDA_SUCCESS;
}
