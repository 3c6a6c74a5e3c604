/* Graphs: nodes and what they need. As in CUDA, a graph is not for two threads at once: no lock. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

static atomic_uint ids;

CUgraph sim_graph_new(bool inner)
{
    CUgraph g = sim_new(SIM_GRAPH, sizeof *g);

    if (!g)
        return NULL;
    g->id = atomic_fetch_add(&ids, 1) + 1;
    g->inner = inner;
    sim_announce(&(struct gtsim_resource){.cbid = 9, .graph = g});
    return g;
}

static void node_free(CUgraphNode n)
{
    sim_announce(&(struct gtsim_resource){
        .cbid = 14, .graph = n->graph, .node = n, .node_type = n->work.type});
    sim_work_free(&n->work);
    free(n->needs);
    sim_drop(n);
}

void sim_graph_free(CUgraph g)
{
    sim_announce(&(struct gtsim_resource){.cbid = 10, .graph = g});
    for (size_t i = 0; i < g->node_count; i++)
        node_free(g->nodes[i]);
    free(g->nodes);
    sim_drop(g);
}

CUresult sim_node_depend(CUgraphNode node, CUgraphNode on)
{
    if (!sim_is(node, SIM_NODE) || !sim_is(on, SIM_NODE) || node->graph != on->graph || node == on)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < node->need_count; i++) {
        if (node->needs[i] == on)
            return CUDA_SUCCESS;
    }
    CUgraphNode *grown = realloc(node->needs, (node->need_count + 1) * sizeof *grown);
    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->needs = grown;
    node->needs[node->need_count++] = on;
    sim_announce(&(struct gtsim_resource){.cbid = 15,
                                          .graph = node->graph,
                                          .node = node,
                                          .node_type = node->work.type,
                                          .dependency = on});
    return CUDA_SUCCESS;
}

/* takes the work */
static CUgraphNode append(CUgraph g, const struct sim_work *w)
{
    CUgraphNode *grown = realloc(g->nodes, (g->node_count + 1) * sizeof *grown);

    if (!grown)
        return NULL;
    g->nodes = grown;
    CUgraphNode n = sim_new(SIM_NODE, sizeof *n);
    if (!n)
        return NULL;
    n->graph = g;
    n->index = g->next_index++;
    n->work = *w;
    g->nodes[g->node_count++] = n;
    return n;
}

CUresult sim_node_add(CUgraph g, const CUgraphNode *needs, size_t count, const struct sim_work *w,
                      CUgraphNode *out)
{
    struct sim_work mine;

    if (!sim_is(g, SIM_GRAPH) || !out || (count && !needs))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (!sim_is(needs[i], SIM_NODE) || needs[i]->graph != g)
            return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult r = sim_work_keep(&mine, w);
    if (r)
        return r;
    CUgraphNode n = append(g, &mine);
    if (!n)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_announce(&(struct gtsim_resource){.cbid = 13, .graph = g, .node = n, .node_type = w->type});
    for (size_t i = 0; i < count; i++)
        (void)sim_node_depend(n, needs[i]);
    *out = n;
    return CUDA_SUCCESS;
}

CUgraphNode sim_graph_clone_of(CUgraph g, CUgraphNode original)
{
    for (size_t i = 0; i < g->node_count; i++) {
        if (g->nodes[i]->original == original)
            return g->nodes[i];
    }
    return NULL;
}

CUgraph sim_graph_clone(CUgraph g, bool inner)
{
    CUgraph to = sim_graph_new(inner);

    if (!to)
        return NULL;
    sim_announce(&(struct gtsim_resource){.cbid = 11, .graph = to, .original_graph = g});
    for (size_t i = 0; i < g->node_count; i++) {
        CUgraphNode from = g->nodes[i];
        struct sim_work w = from->work;

        if (w.type == CU_GRAPH_NODE_TYPE_GRAPH)
            w.child = sim_graph_clone(w.child, true);
        else if (sim_work_keep(&w, &from->work))
            break;
        CUgraphNode n = append(to, &w);
        if (!n)
            break;
        n->original = from;
        n->index = from->index;
        n->disabled = from->disabled;
        sim_announce(&(struct gtsim_resource){.cbid = 20,
                                              .graph = to,
                                              .original_graph = g,
                                              .node = n,
                                              .original_node = from,
                                              .node_type = w.type});
    }
    to->next_index = g->next_index;
    for (size_t i = 0; i < to->node_count; i++) {
        CUgraphNode from = to->nodes[i]->original;

        for (size_t k = 0; k < from->need_count; k++)
            (void)sim_node_depend(to->nodes[i], sim_graph_clone_of(to, from->needs[k]));
    }
    return to;
}

CUresult sim_cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    if (!phGraph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *phGraph = sim_graph_new(false);
    return *phGraph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuGraphDestroy(CUgraph hGraph)
{
    if (!sim_is(hGraph, SIM_GRAPH) || hGraph->inner)
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_free(hGraph);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    if (!phGraphClone || !sim_is(originalGraph, SIM_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    *phGraphClone = sim_graph_clone(originalGraph, false);
    return *phGraphClone ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode,
                                    CUgraph hClonedGraph)
{
    if (!phNode || !sim_is(hOriginalNode, SIM_NODE) || !sim_is(hClonedGraph, SIM_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    *phNode = sim_graph_clone_of(hClonedGraph, hOriginalNode);
    return *phNode ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphDestroyNode(CUgraphNode hNode)
{
    if (!sim_is(hNode, SIM_NODE) || hNode->graph->inner)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraph g = hNode->graph;
    size_t kept = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        CUgraphNode n = g->nodes[i];

        for (size_t k = 0; k < n->need_count; k++) {
            if (n->needs[k] == hNode)
                n->needs[k--] = n->needs[--n->need_count];
        }
        if (n != hNode)
            g->nodes[kept++] = n;
    }
    g->node_count = kept;
    node_free(hNode);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                       const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                       size_t numDependencies)
{
    CUresult r = sim_is(hGraph, SIM_GRAPH) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    (void)edgeData;
    if (numDependencies && (!from || !to))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; !r && i < numDependencies; i++)
        r = sim_node_depend(to[i], from[i]);
    return r;
}

CUresult sim_cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                    size_t numDependencies)
{
    return sim_cuGraphAddDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

CUresult sim_cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                          const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                          size_t numDependencies)
{
    (void)edgeData;
    if (!sim_is(hGraph, SIM_GRAPH) || (numDependencies && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < numDependencies; i++) {
        if (!sim_is(to[i], SIM_NODE))
            return CUDA_ERROR_INVALID_VALUE;
        for (size_t k = 0; k < to[i]->need_count; k++) {
            if (to[i]->needs[k] == from[i])
                to[i]->needs[k--] = to[i]->needs[--to[i]->need_count];
        }
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from,
                                       const CUgraphNode *to, size_t numDependencies)
{
    return sim_cuGraphRemoveDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

SIM_API uint32_t gtsim_graph_id(CUgraph graph)
{
    return sim_is(graph, SIM_GRAPH) ? graph->id : 0;
}

SIM_API uint64_t gtsim_node_id(CUgraphNode node)
{
    return sim_is(node, SIM_NODE) ? (uint64_t)node->graph->id << 32 | node->index : 0;
}
