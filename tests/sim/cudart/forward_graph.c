/* Graphs and libraries: the driver's functions under another name. */
#include "tests/sim/cudart/forward.h"

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "edges");
_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS), "exec");
_Static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo),
               "exec");
_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS), "host node");
_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS), "node");

/* what every function that adds a node begins with */
#define ADD cudaGraphNode_t *node, cudaGraph_t g, const cudaGraphNode_t *d, size_t n

/* clang-format off */
FORWARD(cudaGraphCreate, 10000, cuGraphCreate, (cudaGraph_t *g, unsigned flags), g, flags)
FORWARD(cudaGraphDestroy, 10000, cuGraphDestroy, (cudaGraph_t g), g)
FORWARD(cudaGraphClone, 10000, cuGraphClone, (cudaGraph_t *copy, cudaGraph_t g), copy, g)
FORWARD(cudaGraphNodeFindInClone, 10000, cuGraphNodeFindInClone,
        (cudaGraphNode_t *node, cudaGraphNode_t original, cudaGraph_t g), node, original, g)
FORWARD(cudaGraphNodeGetType, 10000, cuGraphNodeGetType,
        (cudaGraphNode_t node, enum cudaGraphNodeType *type), node, type)
FORWARD(cudaGraphGetNodes, 10000, cuGraphGetNodes,
        (cudaGraph_t g, cudaGraphNode_t *nodes, size_t *n), g, nodes, n)
FORWARD(cudaGraphGetRootNodes, 10000, cuGraphGetRootNodes,
        (cudaGraph_t g, cudaGraphNode_t *nodes, size_t *n), g, nodes, n)
FORWARD(cudaGraphGetEdges, 12030, cuGraphGetEdges,
        (cudaGraph_t g, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *e, size_t *n),
        g, from, to, e, n)
FORWARD(cudaGraphNodeGetDependencies, 12030, cuGraphNodeGetDependencies,
        (cudaGraphNode_t node, cudaGraphNode_t *d, cudaGraphEdgeData *e, size_t *n), node, d, e, n)
FORWARD(cudaGraphNodeGetDependentNodes, 12030, cuGraphNodeGetDependentNodes,
        (cudaGraphNode_t node, cudaGraphNode_t *d, cudaGraphEdgeData *e, size_t *n), node, d, e, n)
FORWARD(cudaGraphAddDependencies, 12030, cuGraphAddDependencies,
        (cudaGraph_t g, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
         const cudaGraphEdgeData *e, size_t n), g, from, to, e, n)
FORWARD(cudaGraphRemoveDependencies, 12030, cuGraphRemoveDependencies,
        (cudaGraph_t g, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
         const cudaGraphEdgeData *e, size_t n), g, from, to, e, n)
FORWARD(cudaGraphDestroyNode, 10000, cuGraphDestroyNode, (cudaGraphNode_t node), node)
FORWARD(cudaGraphDebugDotPrint, 11030, cuGraphDebugDotPrint,
        (cudaGraph_t g, const char *path, unsigned flags), g, path, flags)

FORWARD(cudaGraphAddEmptyNode, 10000, cuGraphAddEmptyNode, (ADD), node, g, d, n)
FORWARD(cudaGraphAddHostNode, 10000, cuGraphAddHostNode,
        (ADD, const struct cudaHostNodeParams *p), node, g, d, n, p)
FORWARD(cudaGraphHostNodeGetParams, 10000, cuGraphHostNodeGetParams,
        (cudaGraphNode_t node, struct cudaHostNodeParams *p), node, p)
FORWARD(cudaGraphHostNodeSetParams, 10000, cuGraphHostNodeSetParams,
        (cudaGraphNode_t node, const struct cudaHostNodeParams *p), node, p)
FORWARD(cudaGraphAddChildGraphNode, 10000, cuGraphAddChildGraphNode,
        (ADD, cudaGraph_t child), node, g, d, n, child)
FORWARD(cudaGraphChildGraphNodeGetGraph, 10000, cuGraphChildGraphNodeGetGraph,
        (cudaGraphNode_t node, cudaGraph_t *g), node, g)
FORWARD(cudaGraphAddEventRecordNode, 11010, cuGraphAddEventRecordNode,
        (ADD, cudaEvent_t e), node, g, d, n, e)
FORWARD(cudaGraphAddEventWaitNode, 11010, cuGraphAddEventWaitNode,
        (ADD, cudaEvent_t e), node, g, d, n, e)
FORWARD(cudaGraphAddMemAllocNode, 11040, cuGraphAddMemAllocNode,
        (ADD, struct cudaMemAllocNodeParams *p), node, g, d, n, p)
FORWARD(cudaGraphAddMemFreeNode, 11040, cuGraphAddMemFreeNode, (ADD, void *p), node, g, d, n, p)
FORWARD(cudaGraphKernelNodeCopyAttributes, 11000, cuGraphKernelNodeCopyAttributes,
        (cudaGraphNode_t to, cudaGraphNode_t from), to, from)
FORWARD(cudaGraphKernelNodeGetAttribute, 11000, cuGraphKernelNodeGetAttribute,
        (cudaGraphNode_t node, cudaLaunchAttributeID id, cudaLaunchAttributeValue *v), node, id, v)
FORWARD(cudaGraphKernelNodeSetAttribute, 11000, cuGraphKernelNodeSetAttribute,
        (cudaGraphNode_t node, cudaLaunchAttributeID id, const cudaLaunchAttributeValue *v),
        node, id, v)

FORWARD(cudaGraphInstantiate, 12000, cuGraphInstantiateWithFlags,
        (cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long flags), exec, g, flags)
FORWARD(cudaGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags,
        (cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long flags), exec, g, flags)
FORWARD(cudaGraphInstantiateWithParams, 12000, cuGraphInstantiateWithParams,
        (cudaGraphExec_t *exec, cudaGraph_t g, cudaGraphInstantiateParams *p), exec, g, p)
FORWARD(cudaGraphExecGetFlags, 12000, cuGraphExecGetFlags,
        (cudaGraphExec_t exec, unsigned long long *flags), exec, flags)
FORWARD(cudaGraphExecDestroy, 10000, cuGraphExecDestroy, (cudaGraphExec_t exec), exec)
FORWARD(cudaGraphExecUpdate, 10020, cuGraphExecUpdate,
        (cudaGraphExec_t exec, cudaGraph_t g, cudaGraphExecUpdateResultInfo *info), exec, g, info)
FORWARD(cudaGraphNodeSetEnabled, 11060, cuGraphNodeSetEnabled,
        (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned on), exec, node, on)
FORWARD(cudaGraphNodeGetEnabled, 11060, cuGraphNodeGetEnabled,
        (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *on), exec, node, on)
FORWARD(cudaGraphExecHostNodeSetParams, 10020, cuGraphExecHostNodeSetParams,
        (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaHostNodeParams *p),
        exec, node, p)
FORWARD(cudaGraphExecChildGraphNodeSetParams, 11010, cuGraphExecChildGraphNodeSetParams,
        (cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child), exec, node, child)

FORWARD(cudaUserObjectCreate, 11030, cuUserObjectCreate,
        (cudaUserObject_t *o, void *p, cudaHostFn_t destroy, unsigned refs, unsigned flags),
        o, p, destroy, refs, flags)
FORWARD(cudaUserObjectRetain, 11030, cuUserObjectRetain, (cudaUserObject_t o, unsigned n), o, n)
FORWARD(cudaUserObjectRelease, 11030, cuUserObjectRelease, (cudaUserObject_t o, unsigned n), o, n)
FORWARD(cudaGraphRetainUserObject, 11030, cuGraphRetainUserObject,
        (cudaGraph_t g, cudaUserObject_t o, unsigned n, unsigned flags), g, o, n, flags)
FORWARD(cudaGraphReleaseUserObject, 11030, cuGraphReleaseUserObject,
        (cudaGraph_t g, cudaUserObject_t o, unsigned n), g, o, n)

FORWARD(cudaLibraryLoadData, 12060, cuLibraryLoadData,
        (cudaLibrary_t *l, const void *code, enum cudaJitOption *j, void **jv, unsigned jn,
         enum cudaLibraryOption *o, void **ov, unsigned on), l, code, j, jv, jn, o, ov, on)
FORWARD(cudaLibraryLoadFromFile, 12060, cuLibraryLoadFromFile,
        (cudaLibrary_t *l, const char *path, enum cudaJitOption *j, void **jv, unsigned jn,
         enum cudaLibraryOption *o, void **ov, unsigned on), l, path, j, jv, jn, o, ov, on)
FORWARD(cudaLibraryUnload, 12060, cuLibraryUnload, (cudaLibrary_t l), l)
FORWARD(cudaLibraryGetGlobal, 12060, cuLibraryGetGlobal,
        (void **p, size_t *n, cudaLibrary_t l, const char *name), p, n, l, name)
FORWARD(cudaLibraryGetManaged, 12060, cuLibraryGetManaged,
        (void **p, size_t *n, cudaLibrary_t l, const char *name), p, n, l, name)
FORWARD(cudaLibraryGetKernelCount, 12060, cuLibraryGetKernelCount, (unsigned *n, cudaLibrary_t l), n, l)
FORWARD(cudaLibraryEnumerateKernels, 12060, cuLibraryEnumerateKernels,
        (cudaKernel_t *k, unsigned n, cudaLibrary_t l), k, n, l)
/* clang-format on */
