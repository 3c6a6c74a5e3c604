/* Kernels as the API tells of them: names, parameters, attributes, occupancy. A CUkernel is the
 * CUfunction. */
#include "sim.h"

#define SM_THREADS 2048
#define SM_BLOCKS 32
#define SM_SHARED 233472
#define SM_REGISTERS 65536
#define BLOCK_SHARED 232448

CUresult sim_function_name(CUfunction f, const char **name)
{
    if (!sim_is(f, SIM_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *name = f->name;
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetName(const char **name, CUfunction hfunc)
{
    return name ? sim_function_name(hfunc, name) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuKernelGetName(const char **name, CUkernel hfunc)
{
    return sim_cuFuncGetName(name, (CUfunction)hfunc);
}

CUresult sim_cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    if (!pFunc)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(kernel, SIM_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *pFunc = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
    if (!pLib)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(kernel, SIM_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *pLib = (CUlibrary)((CUfunction)kernel)->module;
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    return sim_cuKernelGetLibrary((CUlibrary *)hmod, (CUkernel)hfunc);
}

CUresult sim_cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
                                size_t *paramSize)
{
    if (!sim_is(func, SIM_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!paramOffset || paramIndex >= (size_t)func->parameters)
        return CUDA_ERROR_INVALID_VALUE;
    *paramOffset = func->parameter[paramIndex].offset;
    if (paramSize)
        *paramSize = func->parameter[paramIndex].size;
    return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset,
                                  size_t *paramSize)
{
    return sim_cuFuncGetParamInfo((CUfunction)kernel, paramIndex, paramOffset, paramSize);
}

CUresult sim_cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(hfunc, SIM_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    switch ((int)attrib) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *pi = hfunc->max_threads;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *pi = hfunc->shared;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *pi = hfunc->local;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *pi = hfunc->registers;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *pi = 90;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *pi = hfunc->max_dynamic;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *pi = -1;
        break;
    default:
        *pi = 0;
    }
    return (int)attrib < 0 || attrib >= CU_FUNC_ATTRIBUTE_MAX ? CUDA_ERROR_INVALID_VALUE
                                                              : CUDA_SUCCESS;
}

CUresult sim_cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    if (!sim_is(hfunc, SIM_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    if (attrib == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        if (value < 0 || value + hfunc->shared > BLOCK_SHARED)
            return CUDA_ERROR_INVALID_VALUE;
        hfunc->max_dynamic = value;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel,
                                  CUdevice dev)
{
    (void)dev;
    return sim_cuFuncGetAttribute(pi, attrib, (CUfunction)kernel);
}

CUresult sim_cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel,
                                  CUdevice dev)
{
    (void)dev;
    return sim_cuFuncSetAttribute((CUfunction)kernel, attrib, val);
}

CUresult sim_cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    (void)config;
    return sim_is(hfunc, SIM_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
    (void)dev;
    return sim_cuFuncSetCacheConfig((CUfunction)kernel, config);
}

CUresult sim_cuFuncLoad(CUfunction function)
{
    return sim_is(function, SIM_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return sim_is(function, SIM_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
                                                                  int blockSize,
                                                                  size_t dynamicSMemSize,
                                                                  unsigned int flags)
{
    (void)flags;
    if (!numBlocks || blockSize <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(func, SIM_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    int n = blockSize > func->max_threads ? 0 : SM_THREADS / blockSize;
    size_t shared = (size_t)func->shared + dynamicSMemSize;
    n = n > SM_BLOCKS ? SM_BLOCKS : n;
    if (shared && (size_t)n > SM_SHARED / shared)
        n = (int)(SM_SHARED / shared);
    if (func->registers && n > SM_REGISTERS / (func->registers * blockSize))
        n = SM_REGISTERS / (func->registers * blockSize);
    *numBlocks = n;
    return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func,
                                                         int blockSize, size_t dynamicSMemSize)
{
    return sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                    dynamicSMemSize, 0);
}

CUresult
sim_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                              CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                              size_t dynamicSMemSize, int blockSizeLimit,
                                              unsigned int flags)
{
    int best = 0, n;

    if (!minGridSize || !blockSize)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(func, SIM_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    int limit = blockSizeLimit > 0 && blockSizeLimit < func->max_threads ? blockSizeLimit
                                                                         : func->max_threads;
    *blockSize = *minGridSize = 0;
    for (int size = limit; size > 0; size -= size % 32 ? size % 32 : 32) {
        size_t dynamic =
            blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(size) : dynamicSMemSize;

        (void)sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, func, size, dynamic,
                                                                       flags);
        if (n * size > best) {
            best = n * size;
            *blockSize = size;
            *minGridSize = n * 4; /* multiprocessors */
        }
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                              CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                              size_t dynamicSMemSize, int blockSizeLimit)
{
    return sim_cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func,
                                                         blockSizeToDynamicSMemSize,
                                                         dynamicSMemSize, blockSizeLimit, 0);
}
