/* Kernels as things to ask and to set: attributes, names, how many fit. */
#include "tests/sim/cudart/rt.h"
#include <string.h>

#define NO_FUNCTION ((CUresult)cudaErrorInvalidDeviceFunction)

RT_API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
    RT(cudaFuncGetAttributes, 3020, attr, func);
    CUkernel k = rt_kernel(func);
    if (!k || !attr)
        return RT_END(k ? CUDA_ERROR_INVALID_VALUE : NO_FUNCTION);
    memset(attr, 0, sizeof *attr);
    int device = rt_device(), bytes[4] = {0};
    const struct {
        CUfunction_attribute attribute;
        int *to;
    } wanted[] = {
        {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &bytes[0]},
        {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &bytes[1]},
        {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &bytes[2]},
        {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &attr->maxThreadsPerBlock},
        {CU_FUNC_ATTRIBUTE_NUM_REGS, &attr->numRegs},
        {CU_FUNC_ATTRIBUTE_PTX_VERSION, &attr->ptxVersion},
        {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &attr->binaryVersion},
        {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &attr->cacheModeCA},
        {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &attr->maxDynamicSharedSizeBytes},
        {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &attr->preferredShmemCarveout},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        CUresult r = drv.cuKernelGetAttribute(wanted[i].to, wanted[i].attribute, k, device);
        if (r)
            return RT_END(r);
    }
    attr->sharedSizeBytes = (size_t)bytes[0];
    attr->constSizeBytes = (size_t)bytes[1];
    attr->localSizeBytes = (size_t)bytes[2];
    return RT_END(CUDA_SUCCESS);
}

/* the numbers of the attributes that can be set are the same in both interfaces */
_Static_assert((int)cudaFuncAttributeMaxDynamicSharedMemorySize ==
                   (int)CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
               "function attributes");

static CUresult set_attribute(CUkernel k, enum cudaFuncAttribute attr, int value, int device)
{
    return k ? drv.cuKernelSetAttribute((CUfunction_attribute)attr, value, k, device) : NO_FUNCTION;
}

RT_API cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
    RT(cudaFuncSetAttribute, 9000, func, attr, value);
    return RT_END(set_attribute(rt_kernel(func), attr, value, rt_device()));
}

RT_API cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr,
                                                   int value, int device)
{
    RT(cudaKernelSetAttributeForDevice, 12060, kernel, attr, value, device);
    return RT_END(set_attribute(kernel, attr, value, device));
}

RT_API cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache cacheConfig)
{
    RT(cudaFuncSetCacheConfig, 3020, func, cacheConfig);
    CUkernel k = rt_kernel(func);
    return RT_END(k ? drv.cuKernelSetCacheConfig(k, (CUfunc_cache)cacheConfig, rt_device())
                    : NO_FUNCTION);
}

RT_API cudaError_t cudaFuncGetName(const char **name, const void *func)
{
    RT(cudaFuncGetName, 12030, name, func);
    CUkernel k = rt_kernel(func);
    return RT_END(k ? drv.cuKernelGetName(name, k) : NO_FUNCTION);
}

RT_API cudaError_t cudaFuncGetParamInfo(const void *func, size_t paramIndex, size_t *paramOffset,
                                        size_t *paramSize)
{
    RT(cudaFuncGetParamInfo, 12040, func, paramIndex, paramOffset, paramSize);
    CUkernel k = rt_kernel(func);
    return RT_END(k ? drv.cuKernelGetParamInfo(k, paramIndex, paramOffset, paramSize)
                    : NO_FUNCTION);
}

RT_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr)
{
    RT(cudaGetFuncBySymbol, 11000, functionPtr, symbolPtr);
    CUkernel k = rt_kernel(symbolPtr);
    return RT_END(k ? drv.cuKernelGetFunction(functionPtr, k) : NO_FUNCTION);
}

RT_API cudaError_t cudaLibraryGetKernel(cudaKernel_t *pKernel, cudaLibrary_t library,
                                        const char *name)
{
    RT(cudaLibraryGetKernel, 12060, pKernel, library, name);
    CUresult r = drv.cuLibraryGetKernel(pKernel, library, name);
    if (!r)
        rt_kernel_known(*pKernel, name);
    return RT_END(r);
}

RT_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *func,
                                                                 int blockSize,
                                                                 size_t dynamicSMemSize)
{
    RT(cudaOccupancyMaxActiveBlocksPerMultiprocessor, 6050, numBlocks, func, blockSize,
       dynamicSMemSize);
    CUkernel k = rt_kernel(func);
    return RT_END(k ? drv.cuOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, (CUfunction)k,
                                                                      blockSize, dynamicSMemSize)
                    : NO_FUNCTION);
}

RT_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize, unsigned flags)
{
    RT(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, numBlocks, func, blockSize,
       dynamicSMemSize, flags);
    CUkernel k = rt_kernel(func);
    return RT_END(k ? drv.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                          numBlocks, (CUfunction)k, blockSize, dynamicSMemSize, flags)
                    : NO_FUNCTION);
}

RT_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize,
                                                             const void *func, int numBlocks,
                                                             int blockSize)
{
    RT(cudaOccupancyAvailableDynamicSMemPerBlock, 10200, dynamicSmemSize, func, numBlocks,
       blockSize);
    CUkernel k = rt_kernel(func);
    return RT_END(k ? drv.cuOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, (CUfunction)k,
                                                                  numBlocks, blockSize)
                    : NO_FUNCTION);
}
