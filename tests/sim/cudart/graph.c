/* Nodes of graphs whose description differs from the driver's: kernels, copies, sets. */
#include "tests/sim/cudart/rt.h"
#include <string.h>

#define NO_FUNCTION ((CUresult)cudaErrorInvalidDeviceFunction)

static CUcontext context(void)
{
    CUcontext c = NULL;
    (void)drv.cuCtxGetCurrent(&c);
    return c;
}

static CUresult kernel_params(const struct cudaKernelNodeParams *p, CUDA_KERNEL_NODE_PARAMS *out)
{
    CUkernel k = p ? rt_kernel(p->func) : NULL;
    if (!k)
        return p ? NO_FUNCTION : CUDA_ERROR_INVALID_VALUE;
    *out = (CUDA_KERNEL_NODE_PARAMS){
        .gridDimX = p->gridDim.x,
        .gridDimY = p->gridDim.y,
        .gridDimZ = p->gridDim.z,
        .blockDimX = p->blockDim.x,
        .blockDimY = p->blockDim.y,
        .blockDimZ = p->blockDim.z,
        .sharedMemBytes = p->sharedMemBytes,
        .kernelParams = p->kernelParams,
        .extra = p->extra,
    };
    return drv.cuKernelGetFunction(&out->func, k);
}

RT_API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                          const cudaGraphNode_t *pDependencies,
                                          size_t numDependencies,
                                          const struct cudaKernelNodeParams *pNodeParams)
{
    RT(cudaGraphAddKernelNode, 10000, pGraphNode, graph, pDependencies, numDependencies,
       pNodeParams);
    CUDA_KERNEL_NODE_PARAMS p;
    CUresult r = kernel_params(pNodeParams, &p);
    return RT_END(
        r ? r : drv.cuGraphAddKernelNode(pGraphNode, graph, pDependencies, numDependencies, &p));
}

RT_API cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                                const struct cudaKernelNodeParams *pNodeParams)
{
    RT(cudaGraphKernelNodeSetParams, 10000, node, pNodeParams);
    CUDA_KERNEL_NODE_PARAMS p;
    CUresult r = kernel_params(pNodeParams, &p);
    return RT_END(r ? r : drv.cuGraphKernelNodeSetParams(node, &p));
}

RT_API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec,
                                                    cudaGraphNode_t node,
                                                    const struct cudaKernelNodeParams *pNodeParams)
{
    RT(cudaGraphExecKernelNodeSetParams, 10010, hGraphExec, node, pNodeParams);
    CUDA_KERNEL_NODE_PARAMS p;
    CUresult r = kernel_params(pNodeParams, &p);
    return RT_END(r ? r : drv.cuGraphExecKernelNodeSetParams(hGraphExec, node, &p));
}

/* ---- copies */
static CUresult add_copy(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *d,
                         size_t n, const struct cudaMemcpy3DParms *p)
{
    CUDA_MEMCPY3D c;
    CUresult r = rt_copy_params(p, &c);
    return r ? r : drv.cuGraphAddMemcpyNode(node, graph, d, n, &c, context());
}

static struct cudaMemcpy3DParms flat(void *dst, const void *src, size_t count,
                                     enum cudaMemcpyKind kind)
{
    return (struct cudaMemcpy3DParms){
        .srcPtr = {(void *)src, count, count, 1},
        .dstPtr = {dst, count, count, 1},
        .extent = {count, 1, 1},
        .kind = kind,
    };
}

RT_API cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                          const cudaGraphNode_t *pDependencies,
                                          size_t numDependencies,
                                          const struct cudaMemcpy3DParms *pCopyParams)
{
    RT(cudaGraphAddMemcpyNode, 10000, pGraphNode, graph, pDependencies, numDependencies,
       pCopyParams);
    return RT_END(add_copy(pGraphNode, graph, pDependencies, numDependencies, pCopyParams));
}

RT_API cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                            const cudaGraphNode_t *pDependencies,
                                            size_t numDependencies, void *dst, const void *src,
                                            size_t count, enum cudaMemcpyKind kind)
{
    RT(cudaGraphAddMemcpyNode1D, 11010, pGraphNode, graph, pDependencies, numDependencies, dst, src,
       count, kind);
    struct cudaMemcpy3DParms p = flat(dst, src, count, kind);
    return RT_END(add_copy(pGraphNode, graph, pDependencies, numDependencies, &p));
}

RT_API cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec,
                                                      cudaGraphNode_t node, void *dst,
                                                      const void *src, size_t count,
                                                      enum cudaMemcpyKind kind)
{
    RT(cudaGraphExecMemcpyNodeSetParams1D, 11010, hGraphExec, node, dst, src, count, kind);
    struct cudaMemcpy3DParms p = flat(dst, src, count, kind);
    CUDA_MEMCPY3D c;
    CUresult r = rt_copy_params(&p, &c);
    return RT_END(r ? r : drv.cuGraphExecMemcpyNodeSetParams(hGraphExec, node, &c, context()));
}

/* ---- sets */
static CUDA_MEMSET_NODE_PARAMS set_params(const struct cudaMemsetParams *p)
{
    return (CUDA_MEMSET_NODE_PARAMS){
        .dst = RT_ADDRESS(p->dst),
        .pitch = p->pitch,
        .value = p->value,
        .elementSize = p->elementSize,
        .width = p->width,
        .height = p->height,
    };
}

RT_API cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                          const cudaGraphNode_t *pDependencies,
                                          size_t numDependencies,
                                          const struct cudaMemsetParams *pMemsetParams)
{
    RT(cudaGraphAddMemsetNode, 10000, pGraphNode, graph, pDependencies, numDependencies,
       pMemsetParams);
    if (!pMemsetParams)
        return RT_END(CUDA_ERROR_INVALID_VALUE);
    CUDA_MEMSET_NODE_PARAMS p = set_params(pMemsetParams);
    return RT_END(
        drv.cuGraphAddMemsetNode(pGraphNode, graph, pDependencies, numDependencies, &p, context()));
}

RT_API cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec,
                                                    cudaGraphNode_t node,
                                                    const struct cudaMemsetParams *pNodeParams)
{
    RT(cudaGraphExecMemsetNodeSetParams, 10020, hGraphExec, node, pNodeParams);
    if (!pNodeParams)
        return RT_END(CUDA_ERROR_INVALID_VALUE);
    CUDA_MEMSET_NODE_PARAMS p = set_params(pNodeParams);
    return RT_END(drv.cuGraphExecMemsetNodeSetParams(hGraphExec, node, &p, context()));
}
