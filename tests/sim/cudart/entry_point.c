/* The driver's functions, asked for through the runtime. RT_TWICE: then with the flag. */
#include "tests/sim/cudart/rt.h"

static CUresult entry_point(const char *symbol, void **pointer, unsigned version,
                            unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
    if (!symbol || !*symbol || !pointer || flags > cudaEnablePerThreadDefaultStream)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags == cudaEnableDefault)
        flags = RT_PT ? cudaEnablePerThreadDefaultStream : cudaEnableLegacyStream;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CUresult r = rt_lookup()(symbol, pointer, (int)version, flags, &found);
    if (status)
        *status = (enum cudaDriverEntryPointQueryResult)found;
    if (found == CU_GET_PROC_ADDRESS_SUCCESS)
        return r;
    *pointer = NULL;
    return status ? CUDA_SUCCESS : (CUresult)cudaErrorSymbolNotFound;
}

RT_API cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **funcPtr,
                                           unsigned long long flags,
                                           enum cudaDriverEntryPointQueryResult *driverStatus)
{
    RT2(cudaGetDriverEntryPoint, 11030, ptsz_v11030, symbol, funcPtr, flags, driverStatus);
    return RT_END(entry_point(symbol, funcPtr, CUDART_VERSION, flags, driverStatus));
}

RT_API cudaError_t cudaGetDriverEntryPointByVersion(
    const char *symbol, void **funcPtr, unsigned cudaVersion, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *driverStatus)
{
    RT2(cudaGetDriverEntryPointByVersion, 12050, ptsz_v12050, symbol, funcPtr, cudaVersion, flags,
        driverStatus);
    return RT_END(entry_point(symbol, funcPtr, cudaVersion, flags, driverStatus));
}
