/* Launches: kernels in every way that the API has, and functions of the host. */
#include "sim.h"
#include <string.h>

CUresult sim_kernel_work(struct sim_work *w, CUfunction f, const unsigned grid[3],
                         const unsigned block[3], unsigned shared, int cooperative, void **params,
                         void **extra, void **room)
{
    if (!sim_is(f, SIM_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (!grid[0] || !grid[1] || !grid[2] || !threads || grid[0] > 0x7fffffff || grid[1] > 65535 ||
        grid[2] > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > (uint64_t)f->max_threads || block[2] > 64 || (int)shared > f->max_dynamic)
        return CUDA_ERROR_INVALID_VALUE;
    if (params && extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (!params && f->parameters) {
        char *buffer = NULL;

        for (void **e = extra; e && *e != CU_LAUNCH_PARAM_END; e += 2) {
            if (*e == CU_LAUNCH_PARAM_BUFFER_POINTER)
                buffer = e[1];
        }
        if (!buffer)
            return CUDA_ERROR_INVALID_VALUE;
        for (int i = 0; i < f->parameters; i++)
            room[i] = buffer + f->parameter[i].offset;
        params = room;
    }
    w->type = CU_GRAPH_NODE_TYPE_KERNEL;
    w->kernel.f = f;
    memcpy(w->kernel.grid, grid, sizeof w->kernel.grid);
    memcpy(w->kernel.block, block, sizeof w->kernel.block);
    w->kernel.shared = shared;
    w->kernel.cooperative = cooperative;
    w->kernel.params = params;
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction f, const unsigned grid[3], const unsigned block[3],
                       unsigned shared, int cooperative, CUstream handle, void **params,
                       void **extra)
{
    struct sim_work w;
    void *room[SIM_PARAMETERS];

    SIM_STREAM_OR_RETURN(s, handle);
    CUresult r = sim_kernel_work(&w, f, grid, block, shared, cooperative, params, extra, room);
    return r ? r : sim_submit(s, &w, false);
}

CUresult sim_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                            unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                            unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                            void **kernelParams, void **extra)
{
    return launch(f, (unsigned[]){gridDimX, gridDimY, gridDimZ},
                  (unsigned[]){blockDimX, blockDimY, blockDimZ}, sharedMemBytes, 0, hStream,
                  kernelParams, extra);
}

CUresult sim_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                              void **extra)
{
    int cooperative = 0;

    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            cooperative = config->attrs[i].value.cooperative;
    }
    return launch(f, (unsigned[]){config->gridDimX, config->gridDimY, config->gridDimZ},
                  (unsigned[]){config->blockDimX, config->blockDimY, config->blockDimZ},
                  config->sharedMemBytes, cooperative, config->hStream, kernelParams, extra);
}

CUresult sim_cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                       unsigned int gridDimZ, unsigned int blockDimX,
                                       unsigned int blockDimY, unsigned int blockDimZ,
                                       unsigned int sharedMemBytes, CUstream hStream,
                                       void **kernelParams)
{
    return launch(f, (unsigned[]){gridDimX, gridDimY, gridDimZ},
                  (unsigned[]){blockDimX, blockDimY, blockDimZ}, sharedMemBytes, 1, hStream,
                  kernelParams, NULL);
}

CUresult sim_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    struct sim_work w = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {fn, userData}};

    SIM_STREAM_OR_RETURN(s, hStream);
    return fn ? sim_submit(s, &w, false) : CUDA_ERROR_INVALID_VALUE;
}

/* Runs at once: it could not be told from one that runs when all before it has ended, which it has.
 */
CUresult sim_cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
                                 unsigned int flags)
{
    struct sim_work w = {.type = CU_GRAPH_NODE_TYPE_HOST};

    SIM_STREAM_OR_RETURN(s, hStream);
    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture)
        return sim_capture_sync(s);
    CUresult r = sim_submit(s, &w, false);
    if (!r)
        callback(hStream, CUDA_SUCCESS, userData);
    return r;
}
