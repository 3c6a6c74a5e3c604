/* Executable graphs: a clone of a graph, in an order that respects its edges. A launch runs all
   nodes, each as early as what it needs allows; and what nodes can be told anew. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* what it needs, then it; a node that is met while that goes on is in a circle */
static bool visit(CUgraphNode n, CUgraphNode *order, size_t *count)
{
    if (n->seen)
        return n->seen == 2;
    n->seen = 1;
    for (size_t i = 0; i < n->need_count; i++) {
        if (!visit(n->needs[i], order, count))
            return false;
    }
    n->seen = 2;
    order[(*count)++] = n;
    return true;
}

/* sorts the graph's own table, which is as good an order as any */
static bool put_in_order(CUgraph g)
{
    CUgraphNode *order = malloc((g->node_count + 1) * sizeof *order);
    size_t count = 0;
    bool right = order != NULL;

    for (size_t i = 0; i < g->node_count; i++)
        g->nodes[i]->seen = 0;
    for (size_t i = 0; right && i < g->node_count; i++) {
        right = visit(g->nodes[i], order, &count);
        if (right && g->nodes[i]->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            right = put_in_order(g->nodes[i]->work.child);
    }
    if (right) {
        free(g->nodes);
        g->nodes = order;
    } else {
        free(order);
    }
    return right;
}

static uint64_t run(CUgraph g, CUstream s, uint64_t start_ns)
{
    uint64_t end = start_ns;

    for (size_t i = 0; i < g->node_count; i++) {
        CUgraphNode n = g->nodes[i];
        uint64_t at = start_ns;

        for (size_t k = 0; k < n->need_count; k++)
            at = later(at, n->needs[k]->end_ns);
        if (n->disabled)
            n->end_ns = at;
        else if (n->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            n->end_ns = run(n->work.child, s, at);
        else
            n->end_ns = sim_perform(s, &n->work, &at, n, false);
        end = later(end, n->end_ns);
    }
    return end;
}

static CUresult instantiate(CUgraphExec *out, CUgraph g, uint64_t flags)
{
    if (!out || !sim_is(g, SIM_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphExec e = sim_new(SIM_EXEC, sizeof *e);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->flags = flags;
    e->context = sim_current();
    e->graph = sim_graph_clone(g, true);
    if (!e->graph || !put_in_order(e->graph)) {
        if (e->graph)
            sim_graph_free(e->graph);
        sim_drop(e);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = e;
    sim_announce(&(struct gtsim_resource){
        .cbid = 18, .context = e->context, .graph = e->graph, .original_graph = g, .exec = e});
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                         unsigned long long flags)
{
    return instantiate(phGraphExec, hGraph, flags);
}

CUresult sim_cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
                                   CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    if (phErrorNode)
        *phErrorNode = NULL;
    if (logBuffer && bufferSize)
        logBuffer[0] = 0;
    return instantiate(phGraphExec, hGraph, 0);
}

CUresult sim_cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    if (!instantiateParams)
        return CUDA_ERROR_INVALID_VALUE;
    instantiateParams->hErrNode_out = NULL;
    CUresult r = instantiate(phGraphExec, hGraph, instantiateParams->flags);
    instantiateParams->result_out =
        r ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return r;
}

CUresult sim_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    if (!sim_is(hGraphExec, SIM_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    sim_announce(
        &(struct gtsim_resource){.cbid = 19, .graph = hGraphExec->graph, .exec = hGraphExec});
    sim_graph_free(hGraphExec->graph);
    sim_drop(hGraphExec);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
    if (!sim_is(hGraphExec, SIM_EXEC) || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = hGraphExec->flags;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    (void)s;
    return sim_is(hGraphExec, SIM_EXEC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    SIM_STREAM_OR_RETURN(s, hStream);
    if (!sim_is(hGraphExec, SIM_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = sim_capture_legacy(s);
    if (r)
        return r;
    if (s->capture) {
        struct sim_work w = {.type = CU_GRAPH_NODE_TYPE_GRAPH,
                             .child = sim_graph_clone(hGraphExec->graph, true)};
        return w.child ? sim_capture_add(s, &w) : CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&sim_lock);
    uint64_t start = later(sim_stream_ready(s), hGraphExec->end_ns);
    pthread_mutex_unlock(&sim_lock);
    hGraphExec->end_ns = run(hGraphExec->graph, s, start);
    return CUDA_SUCCESS;
}

static CUresult update(CUgraphExec e, CUgraph g, CUgraphNode *node, CUgraphExecUpdateResult *why)
{
    *node = NULL;
    *why = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (g->node_count != e->graph->node_count)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    for (int write = 0; write < 2; write++) {
        for (size_t i = 0; i < g->node_count; i++) {
            CUgraphNode from = g->nodes[i], to = NULL;

            for (size_t k = 0; k < e->graph->node_count; k++)
                to = e->graph->nodes[k]->index == from->index ? e->graph->nodes[k] : to;
            if (write) {
                CUresult r = sim_node_set(to, &from->work);
                if (r)
                    return r;
            } else if (!to || to->need_count != from->need_count ||
                       to->work.type != from->work.type ||
                       from->work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
                *node = from;
                if (to && to->work.type != from->work.type)
                    *why = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
                return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
            } else {
                to->original = from;
            }
        }
    }
    *why = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                  CUgraphExecUpdateResultInfo *resultInfo)
{
    if (!sim_is(hGraphExec, SIM_EXEC) || !sim_is(hGraph, SIM_GRAPH) || !resultInfo)
        return CUDA_ERROR_INVALID_VALUE;
    memset(resultInfo, 0, sizeof *resultInfo);
    return update(hGraphExec, hGraph, &resultInfo->errorNode, &resultInfo->result);
}

CUresult sim_cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                               CUgraphExecUpdateResult *updateResult_out)
{
    if (!sim_is(hGraphExec, SIM_EXEC) || !sim_is(hGraph, SIM_GRAPH) || !hErrorNode_out ||
        !updateResult_out)
        return CUDA_ERROR_INVALID_VALUE;
    return update(hGraphExec, hGraph, hErrorNode_out, updateResult_out);
}

/* the clone in it of a node of the graph that it was made from */
static CUgraphNode own(CUgraphExec e, CUgraphNode original)
{
    return sim_is(e, SIM_EXEC) ? sim_graph_clone_of(e->graph, original) : NULL;
}

static CUresult set(CUgraphNode n, const CUgraphNodeParams *p)
{
    struct sim_work w;
    void *room[SIM_PARAMETERS];

    if (!sim_is(n, SIM_NODE) || !p)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = sim_node_work(&w, p, room);
    return r ? r : sim_node_set(n, &w);
}

static CUresult set_kernel(CUgraphNode n, const void *params, size_t bytes)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&p.kernel, params, bytes);
    return set(n, &p);
}

static CUresult set_copy(CUgraphNode n, const CUDA_MEMCPY3D *c)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};

    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    p.memcpy.copyParams = *c;
    return set(n, &p);
}

static CUresult set_memset(CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *m)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

    if (!m)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&p.memset, m, sizeof *m);
    return set(n, &p);
}

CUresult sim_cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    return set_kernel(hNode, nodeParams, sizeof *nodeParams);
}

CUresult sim_cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    return set_kernel(hNode, nodeParams, sizeof *nodeParams);
}

CUresult sim_cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                               const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    return set_kernel(own(hGraphExec, hNode), nodeParams, sizeof *nodeParams);
}

CUresult sim_cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    return set_kernel(own(hGraphExec, hNode), nodeParams, sizeof *nodeParams);
}

CUresult sim_cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
    return set_copy(hNode, nodeParams);
}

CUresult sim_cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    (void)ctx;
    return set_copy(own(hGraphExec, hNode), copyParams);
}

CUresult sim_cuGraphMemsetNodeSetParams(CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    return set_memset(hNode, nodeParams);
}

CUresult sim_cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                            CUcontext ctx)
{
    (void)ctx;
    return set_memset(own(hGraphExec, hNode), memsetParams);
}

CUresult sim_cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    return set(hNode, nodeParams);
}

CUresult sim_cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      CUgraphNodeParams *nodeParams)
{
    return set(own(hGraphExec, hNode), nodeParams);
}

CUresult sim_cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                   unsigned int isEnabled)
{
    CUgraphNode n = own(hGraphExec, hNode);

    if (!n)
        return CUDA_ERROR_INVALID_VALUE;
    n->disabled = !isEnabled;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                   unsigned int *isEnabled)
{
    CUgraphNode n = own(hGraphExec, hNode);

    if (!n || !isEnabled)
        return CUDA_ERROR_INVALID_VALUE;
    *isEnabled = !n->disabled;
    return CUDA_SUCCESS;
}

SIM_API uint32_t gtsim_exec_id(CUgraphExec exec)
{
    return sim_is(exec, SIM_EXEC) ? exec->graph->id : 0;
}
