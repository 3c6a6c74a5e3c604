/* What a graph is asked: its nodes and edges. Each fills as much as there is room for, and the
 * count. */
#include "sim.h"

static CUresult put(CUgraphNode *to, size_t *room, size_t n, CUgraphNode node)
{
    if (to && n < *room)
        to[n] = node;
    return CUDA_SUCCESS;
}

static CUresult end(CUgraphNode *to, CUgraphNode *other, size_t *room, size_t n)
{
    if (to) {
        /* the real one clears what it does not fill */
        for (size_t i = n; i < *room; i++) {
            to[i] = NULL;
            if (other)
                other[i] = NULL;
        }
    }
    *room = n;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    if (!sim_is(hGraph, SIM_GRAPH) || !numNodes)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < hGraph->node_count; i++)
        (void)put(nodes, numNodes, i, hGraph->nodes[i]);
    return end(nodes, NULL, numNodes, hGraph->node_count);
}

CUresult sim_cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
    size_t n = 0;

    if (!sim_is(hGraph, SIM_GRAPH) || !numRootNodes)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < hGraph->node_count; i++) {
        if (!hGraph->nodes[i]->need_count)
            (void)put(rootNodes, numRootNodes, n++, hGraph->nodes[i]);
    }
    return end(rootNodes, NULL, numRootNodes, n);
}

CUresult sim_cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
                                CUgraphEdgeData *edgeData, size_t *numEdges)
{
    size_t n = 0;

    if (!sim_is(hGraph, SIM_GRAPH) || !numEdges || !from != !to)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < hGraph->node_count; i++) {
        CUgraphNode node = hGraph->nodes[i];

        for (size_t k = 0; k < node->need_count; k++, n++) {
            (void)put(from, numEdges, n, node->needs[k]);
            (void)put(to, numEdges, n, node);
            if (edgeData && n < *numEdges)
                edgeData[n] = (CUgraphEdgeData){0};
        }
    }
    return end(from, to, numEdges, n);
}

CUresult sim_cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
    return sim_cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

CUresult sim_cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
                                           CUgraphEdgeData *edgeData, size_t *numDependencies)
{
    if (!sim_is(hNode, SIM_NODE) || !numDependencies)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < hNode->need_count; i++) {
        (void)put(dependencies, numDependencies, i, hNode->needs[i]);
        if (edgeData && i < *numDependencies)
            edgeData[i] = (CUgraphEdgeData){0};
    }
    return end(dependencies, NULL, numDependencies, hNode->need_count);
}

CUresult sim_cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies,
                                        size_t *numDependencies)
{
    return sim_cuGraphNodeGetDependencies_v2(hNode, dependencies, NULL, numDependencies);
}

CUresult sim_cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                             CUgraphEdgeData *edgeData, size_t *numDependentNodes)
{
    size_t n = 0;

    if (!sim_is(hNode, SIM_NODE) || !numDependentNodes)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < hNode->graph->node_count; i++) {
        CUgraphNode other = hNode->graph->nodes[i];

        for (size_t k = 0; k < other->need_count; k++) {
            if (other->needs[k] != hNode)
                continue;
            (void)put(dependentNodes, numDependentNodes, n, other);
            if (edgeData && n < *numDependentNodes)
                edgeData[n] = (CUgraphEdgeData){0};
            n++;
        }
    }
    return end(dependentNodes, NULL, numDependentNodes, n);
}

CUresult sim_cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                          size_t *numDependentNodes)
{
    return sim_cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, NULL, numDependentNodes);
}

CUresult sim_cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    if (!sim_is(hNode, SIM_NODE) || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = hNode->work.type;
    return CUDA_SUCCESS;
}
