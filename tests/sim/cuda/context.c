/* Contexts: primary and others, the stack that a thread has of them, limits, synchronisation of a
   whole context, peer access. */
#include "sim.h"
#include <string.h>

#define STACK 64

static _Thread_local CUcontext stack[STACK];
static _Thread_local int depth;
static CUcontext primary[SIM_DEVICES]; /* these and the list: under sim_lock */
static unsigned primary_flags[SIM_DEVICES];
static CUcontext all;
static uint32_t ids;

CUcontext sim_current(void)
{
    return depth && sim_is(stack[depth - 1], SIM_CONTEXT) ? stack[depth - 1] : NULL;
}

CUresult sim_no_context(void)
{
    return depth && stack[depth - 1] ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

CUcontext sim_contexts(void)
{
    return all;
}

static CUcontext make(CUdevice device, unsigned flags)
{
    CUcontext c = sim_new(SIM_CONTEXT, sizeof *c);

    if (!c)
        return NULL;
    c->device = device;
    c->flags = flags;
    c->limits[CU_LIMIT_STACK_SIZE] = 1024;
    c->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
    c->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    pthread_mutex_lock(&sim_lock);
    c->id = ++ids;
    c->legacy = sim_stream_new(c, 0, 0);
    if (c->legacy) {
        c->legacy->legacy = true;
        c->legacy->id = c->id == 1 ? 7 : c->id * 1000 + 7;
    }
    c->next = all;
    all = c;
    pthread_mutex_unlock(&sim_lock);
    return c;
}

static void destroy(CUcontext c)
{
    /* what is in its streams ends first */
    sim_wait_until(c->all_ns);
    sim_deliver();
    sim_announce(&(struct gtsim_resource){.cbid = 2, .context = c});
    sim_free_all(c);
    pthread_mutex_lock(&sim_lock);
    for (CUcontext *p = &all; *p; p = &(*p)->next) {
        if (*p == c) {
            *p = c->next;
            break;
        }
    }
    for (CUstream s = c->threads, next; s; s = next) {
        next = s->next;
        sim_stream_end(s);
    }
    sim_stream_end(c->legacy);
    sim_drop(c);
    pthread_mutex_unlock(&sim_lock);
}

CUcontext sim_primary(CUdevice device)
{
    if (device < 0 || device >= sim_devices())
        return NULL;
    pthread_mutex_lock(&sim_lock);
    CUcontext c = primary[device];
    pthread_mutex_unlock(&sim_lock);
    if (c)
        return c;
    c = make(device, primary_flags[device]);
    if (!c)
        return NULL;
    c->primary = true;
    pthread_mutex_lock(&sim_lock);
    CUcontext other = primary[device];
    if (!other)
        primary[device] = c;
    pthread_mutex_unlock(&sim_lock);
    if (other) {
        destroy(c);
        return other;
    }
    sim_announce(&(struct gtsim_resource){.cbid = 1, .context = c});
    return c;
}

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    CUcontext c = sim_primary(dev);
    if (!c)
        return CUDA_ERROR_INVALID_DEVICE;
    c->retained++;
    *pctx = c;
    return CUDA_SUCCESS;
}

static void drop_primary(CUdevice dev)
{
    pthread_mutex_lock(&sim_lock);
    CUcontext c = primary[dev];
    primary[dev] = NULL;
    pthread_mutex_unlock(&sim_lock);
    if (c)
        destroy(c);
}

CUresult sim_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    if (dev < 0 || dev >= sim_devices())
        return CUDA_ERROR_INVALID_DEVICE;
    if (!primary[dev] || !primary[dev]->retained)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!--primary[dev]->retained)
        drop_primary(dev);
    return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    if (dev < 0 || dev >= sim_devices())
        return CUDA_ERROR_INVALID_DEVICE;
    drop_primary(dev);
    return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    if (dev < 0 || dev >= sim_devices())
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = primary_flags[dev];
    *active = primary[dev] != NULL;
    return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    if (dev < 0 || dev >= sim_devices())
        return CUDA_ERROR_INVALID_DEVICE;
    primary_flags[dev] = flags;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
                            CUdevice dev)
{
    (void)ctxCreateParams;
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (dev < 0 || dev >= sim_devices())
        return CUDA_ERROR_INVALID_DEVICE;
    CUcontext c = depth < STACK ? make(dev, flags) : NULL;
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack[depth++] = c;
    *pctx = c;
    sim_announce(&(struct gtsim_resource){.cbid = 1, .context = c});
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                            unsigned int flags, CUdevice dev)
{
    (void)paramsArray;
    (void)numParams;
    return sim_cuCtxCreate_v4(pctx, NULL, flags, dev);
}

CUresult sim_cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return sim_cuCtxCreate_v4(pctx, NULL, flags, dev);
}

CUresult sim_cuCtxDestroy_v2(CUcontext ctx)
{
    if (!sim_is(ctx, SIM_CONTEXT) || ctx->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth && stack[depth - 1] == ctx)
        depth--;
    destroy(ctx);
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetCurrent(CUcontext *pctx)
{
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = sim_current();
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCurrent(CUcontext ctx)
{
    if (ctx && !sim_is(ctx, SIM_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth)
        depth--;
    if (ctx)
        stack[depth++] = ctx;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxPushCurrent_v2(CUcontext ctx)
{
    if (!sim_is(ctx, SIM_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth == STACK)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack[depth++] = ctx;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxPopCurrent_v2(CUcontext *pctx)
{
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (pctx)
        *pctx = stack[depth];
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice(CUdevice *device)
{
    SIM_CONTEXT_OR_RETURN(c);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = c->device;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!ctx)
        return sim_cuCtxGetDevice(device);
    if (!sim_is(ctx, SIM_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = ctx->device;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSynchronize(void)
{
    SIM_CONTEXT_OR_RETURN(c);
    CUresult r = sim_capture_unsafe();
    if (r)
        return r;
    pthread_mutex_lock(&sim_lock);
    uint64_t end = c->all_ns;
    pthread_mutex_unlock(&sim_lock);
    sim_wait_until(end);
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSynchronize_v2(CUcontext ctx)
{
    if (!ctx)
        return sim_cuCtxSynchronize();
    if (!sim_is(ctx, SIM_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    sim_wait_until(ctx->all_ns);
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    SIM_CONTEXT_OR_RETURN(c);
    (void)c;
    if (leastPriority)
        *leastPriority = 0;
    if (greatestPriority)
        *greatestPriority = -5;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    if (ctx ? !sim_is(ctx, SIM_CONTEXT) : !sim_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetFlags(unsigned int *flags)
{
    SIM_CONTEXT_OR_RETURN(c);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = c->flags;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetFlags(unsigned int flags)
{
    SIM_CONTEXT_OR_RETURN(c);
    c->flags = flags;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    CUcontext c = ctx ? ctx : sim_current();

    if (!ctxId)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(c, SIM_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    *ctxId = c->id;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    SIM_CONTEXT_OR_RETURN(c);
    if (!pvalue || (int)limit < 0 || limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *pvalue = c->limits[limit];
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetLimit(CUlimit limit, size_t value)
{
    SIM_CONTEXT_OR_RETURN(c);
    if ((int)limit < 0 || limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    c->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    if (!pconfig)
        return CUDA_ERROR_INVALID_VALUE;
    *pconfig = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCacheConfig(CUfunc_cache config)
{
    (void)config;
    return sim_current() ? CUDA_SUCCESS : sim_no_context();
}

/* every device sees every other's memory anyway */
CUresult sim_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    SIM_CONTEXT_OR_RETURN(c);
    if (Flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(peerContext, SIM_CONTEXT) || peerContext == c)
        return CUDA_ERROR_INVALID_CONTEXT;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxDisablePeerAccess(CUcontext peerContext)
{
    return sim_is(peerContext, SIM_CONTEXT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

SIM_API uint32_t gtsim_context_id(CUcontext context)
{
    return sim_is(context, SIM_CONTEXT) ? context->id : 0;
}

SIM_API uint32_t gtsim_device_of(CUcontext context)
{
    return sim_is(context, SIM_CONTEXT) ? (uint32_t)context->device : 0;
}
