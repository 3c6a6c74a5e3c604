/* Nodes of each kind: their parameters in and out. */
#include "sim.h"
#include <stddef.h>
#include <string.h>

static CUresult kernel_work(struct sim_work *w, const CUDA_KERNEL_NODE_PARAMS_v3 *k, void **room)
{
    CUfunction f = k->func ? k->func : (CUfunction)k->kern;

    return sim_kernel_work(w, f, (unsigned[]){k->gridDimX, k->gridDimY, k->gridDimZ},
                           (unsigned[]){k->blockDimX, k->blockDimY, k->blockDimZ},
                           k->sharedMemBytes, 0, k->kernelParams, k->extra, room);
}

CUresult sim_node_work(struct sim_work *w, const CUgraphNodeParams *p, void **room)
{
    memset(w, 0, sizeof *w);
    w->type = p->type;
    switch ((int)p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel_work(w, &p->kernel, room);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return sim_copy_work(w, &p->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return sim_set_work(w, p->memset.dst, p->memset.pitch, p->memset.value,
                            p->memset.elementSize, p->memset.width, p->memset.height);
    case CU_GRAPH_NODE_TYPE_HOST:
        w->host.fn = p->host.fn;
        w->host.data = p->host.userData;
        return p->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        if (!sim_is(p->graph.graph, SIM_GRAPH))
            return CUDA_ERROR_INVALID_VALUE;
        w->child = sim_graph_clone(p->graph.graph, true);
        return w->child ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        w->event = p->eventWait.event;
        return sim_is(w->event, SIM_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult sim_node_set(CUgraphNode node, const struct sim_work *w)
{
    struct sim_work mine;

    if (!sim_is(node, SIM_NODE) || node->work.type != w->type)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = sim_work_keep(&mine, w);
    if (r)
        return r;
    sim_work_free(&node->work);
    node->work = mine;
    return CUDA_SUCCESS;
}

static CUresult add(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t count,
                    const CUgraphNodeParams *p)
{
    struct sim_work w;
    void *room[SIM_PARAMETERS];

    if (!out || !sim_is(g, SIM_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = sim_node_work(&w, p, room);
    return r ? r : sim_node_add(g, needs, count, &w, out);
}

CUresult sim_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                               const CUgraphNode *dependencies,
                               const CUgraphEdgeData *dependencyData, size_t numDependencies,
                               CUgraphNodeParams *nodeParams)
{
    (void)dependencyData;
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    return add(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult sim_cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                            const CUgraphNode *dependencies, size_t numDependencies,
                            CUgraphNodeParams *nodeParams)
{
    return sim_cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, NULL, numDependencies,
                                 nodeParams);
}

CUresult sim_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies, size_t numDependencies,
                                     const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&p.kernel, nodeParams, sizeof *nodeParams);
    return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult sim_cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                  const CUgraphNode *dependencies, size_t numDependencies,
                                  const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&p.kernel, nodeParams, sizeof *nodeParams);
    return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult sim_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                  const CUgraphNode *dependencies, size_t numDependencies,
                                  const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};

    if (!copyParams || !sim_is(ctx, SIM_CONTEXT))
        return CUDA_ERROR_INVALID_VALUE;
    p.memcpy.copyParams = *copyParams;
    return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult sim_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                  const CUgraphNode *dependencies, size_t numDependencies,
                                  const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

    if (!memsetParams || !sim_is(ctx, SIM_CONTEXT))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&p.memset, memsetParams, sizeof *memsetParams);
    return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult sim_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                const CUgraphNode *dependencies, size_t numDependencies,
                                const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST};

    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    p.host.fn = nodeParams->fn;
    p.host.userData = nodeParams->userData;
    return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult sim_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      CUgraph childGraph)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = childGraph}};

    return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult sim_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                 const CUgraphNode *dependencies, size_t numDependencies)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EMPTY};

    return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult sim_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                       const CUgraphNode *dependencies, size_t numDependencies,
                                       CUevent event)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event}};

    return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult sim_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies, size_t numDependencies,
                                     CUevent event)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event}};

    return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

static CUresult kind_of(CUgraphNode n, CUgraphNodeType type, const void *out)
{
    return out && sim_is(n, SIM_NODE) && n->work.type == type ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_VALUE;
}

/* `bytes`: of the caller's version of the structure */
static CUresult kernel_out(CUgraphNode n, void *out, size_t bytes)
{
    CUresult r = kind_of(n, CU_GRAPH_NODE_TYPE_KERNEL, out);

    if (r)
        return r;
    const unsigned *grid = n->work.kernel.grid, *block = n->work.kernel.block;
    CUDA_KERNEL_NODE_PARAMS k = {.func = n->work.kernel.f,
                                 .gridDimX = grid[0],
                                 .gridDimY = grid[1],
                                 .gridDimZ = grid[2],
                                 .blockDimX = block[0],
                                 .blockDimY = block[1],
                                 .blockDimZ = block[2],
                                 .sharedMemBytes = n->work.kernel.shared,
                                 .kernelParams = n->work.kernel.params};
    memcpy(out, &k, bytes);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    return kernel_out(hNode, nodeParams, sizeof *nodeParams);
}

CUresult sim_cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    return kernel_out(hNode, nodeParams, sizeof *nodeParams);
}

CUresult sim_cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
    CUresult r = kind_of(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams);

    if (!r)
        *nodeParams = hNode->work.copy.asked;
    return r;
}

CUresult sim_cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    CUresult r = kind_of(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams);

    if (!r)
        *nodeParams = (CUDA_MEMSET_NODE_PARAMS){.dst = (CUdeviceptr)hNode->work.set.base,
                                                .pitch = hNode->work.set.pitch,
                                                .value = hNode->work.set.value,
                                                .elementSize = hNode->work.set.element,
                                                .width = hNode->work.set.width,
                                                .height = hNode->work.set.height};
    return r;
}

CUresult sim_cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
    CUresult r = kind_of(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams);

    if (!r)
        *nodeParams = (CUDA_HOST_NODE_PARAMS){hNode->work.host.fn, hNode->work.host.data};
    return r;
}

CUresult sim_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    CUresult r = kind_of(hNode, CU_GRAPH_NODE_TYPE_GRAPH, phGraph);

    if (!r)
        *phGraph = hNode->work.child;
    return r;
}

CUresult sim_cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    CUresult r = kind_of(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out);

    if (!r)
        *event_out = hNode->work.event;
    return r;
}

CUresult sim_cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    CUresult r = kind_of(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out);

    if (!r)
        *event_out = hNode->work.event;
    return r;
}
