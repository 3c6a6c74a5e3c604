/* Memory that streams allocate and free, and its pools. A pool holds nothing back: what it has
   reserved is what is used. */
#include "sim.h"

struct CUmemPoolHandle_st {
    uint32_t mark;
    int device;
    uint64_t used, most, threshold;
    int reuse[3];
};

static CUmemoryPool defaults[SIM_DEVICES], current[SIM_DEVICES]; /* under sim_lock */

static CUmemoryPool make(int device)
{
    CUmemoryPool p = sim_new(SIM_POOL, sizeof *p);

    if (p) {
        p->device = device;
        p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
    }
    return p;
}

CUmemoryPool sim_default_pool(int device)
{
    if (device < 0 || device >= sim_devices())
        return NULL;
    pthread_mutex_lock(&sim_lock);
    if (!defaults[device])
        defaults[device] = current[device] = make(device);
    CUmemoryPool p = defaults[device];
    pthread_mutex_unlock(&sim_lock);
    return p;
}

void sim_pool_count(CUmemoryPool pool, int64_t bytes)
{
    if (!sim_is(pool, SIM_POOL))
        return;
    pool->used += (uint64_t)bytes;
    pool->most = pool->used > pool->most ? pool->used : pool->most;
}

CUresult sim_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                     CUstream hStream)
{
    struct sim_work w = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};

    SIM_STREAM_OR_RETURN(s, hStream);
    if (!dptr || !sim_is(pool, SIM_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = sim_alloc(bytesize, GTSIM_DEVICE, pool->device, pool, 0, (void **)dptr);
    if (r)
        return r;
    r = sim_submit(s, &w, false);
    if (r)
        (void)sim_free((void *)*dptr, false);
    return r;
}

CUresult sim_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    if (!sim_default_pool(s->context->device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return sim_cuMemAllocFromPoolAsync(dptr, bytesize, current[s->context->device], hStream);
}

CUresult sim_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct sim_work w = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};

    SIM_STREAM_OR_RETURN(s, hStream);
    if (!dptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = sim_submit(s, &w, false);
    /* what a graph has allocated stays: its launches use it */
    if (!r && !s->capture)
        r = sim_free((void *)dptr, false);
    return r;
}

CUresult sim_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    if (!pool || !poolProps || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (poolProps->location.id < 0 || poolProps->location.id >= sim_devices())
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = make(poolProps->location.id);
    return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuMemPoolDestroy(CUmemoryPool pool)
{
    if (!sim_is(pool, SIM_POOL) || pool == defaults[pool->device])
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sim_lock);
    if (current[pool->device] == pool)
        current[pool->device] = defaults[pool->device];
    sim_drop(pool);
    pthread_mutex_unlock(&sim_lock);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    if (!pool_out)
        return CUDA_ERROR_INVALID_VALUE;
    *pool_out = sim_default_pool(dev);
    return *pool_out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_default_pool(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = current[dev];
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    if (!sim_default_pool(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!sim_is(pool, SIM_POOL) || pool->device != dev)
        return CUDA_ERROR_INVALID_VALUE;
    current[dev] = pool;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    (void)minBytesToKeep;
    return sim_is(pool, SIM_POOL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    if (!sim_is(pool, SIM_POOL) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    if (attr >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
        attr <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
        pool->reuse[attr - 1] = *(int *)value;
    else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = *(cuuint64_t *)value;
    else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH || attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
        pool->most = pool->used;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    if (!sim_is(pool, SIM_POOL) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = pool->reuse[attr - 1];
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = pool->threshold;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = pool->used;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = pool->most;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sim_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    return sim_is(pool, SIM_POOL) && (map || !count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool,
                                CUmemLocation *location)
{
    if (!flags || !location || !sim_is(memPool, SIM_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}
