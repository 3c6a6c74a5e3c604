/* Graphs of three nodes, made by capture and by hand: results, times, what each node is announced
 * as. Usage: cuda_graph CUBIN */
#include "cuda_client.h"
#include "tests/sim/cuda/gpu.h"

static CUfunction fill, saxpy;
static CUdeviceptr x, y;
static int n = 8;
static float one = 1, two = 2;

static struct gtsim_activity seen[64];
static int seen_count, nodes_created, nodes_cloned;

/* Who listened before (CUPTI, if a tool is here): it goes on hearing all. */
static const struct gtsim_listener *before;

static void on_enter(struct gtsim_call *c)
{
    if (before && before->enter)
        before->enter(c);
}

static void on_leave(struct gtsim_call *c)
{
    if (before && before->leave)
        before->leave(c);
}

static void on_activity(const struct gtsim_activity *a)
{
    if (seen_count < 64)
        seen[seen_count++] = *a;
    if (before && before->activity)
        before->activity(a);
}

static void on_resource(const struct gtsim_resource *r)
{
    nodes_created += r->cbid == 13;
    nodes_cloned += r->cbid == 20;
    if (before && before->resource)
        before->resource(r);
}

static const struct gtsim_listener listener = {on_enter, on_leave, on_activity, on_resource};

static void report(const char *what)
{
    gtsim_settle();
    printf("%s:", what);
    for (int i = 0; i < seen_count; i++) {
        const struct gtsim_activity *a = &seen[i];
        const char *kinds[] = {"?", "kernel", "copy", "set", "host"};

        SAME(a->correlation, seen[0].correlation);
        SAME(a->graph_id, seen[0].graph_id);
        SAME(a->graph_node_id >> 32, a->graph_id);
        printf(" %s+%d@%d-%d", kinds[a->kind], (int)(a->graph_node_id & 0xffffffff),
               (int)(a->start_ns - seen[0].start_ns), (int)(a->end_ns - seen[0].start_ns));
    }
    printf("\n");
    seen_count = 0;
}

static void work(CUstream s)
{
    OK(cuMemsetD32Async(y, 0, (size_t)n, s));
    OK(cuLaunchKernel(fill, 1, 1, 1, 8, 1, 1, 0, s, (void *[]){&x, &n, &one}, NULL));
    OK(cuLaunchKernel(saxpy, 1, 1, 1, 8, 1, 1, 0, s, (void *[]){&n, &two, &x, &y}, NULL));
}

static float first(void)
{
    float v = -1;

    OK(cuMemcpyDtoH(&v, y, sizeof v));
    gtsim_settle();
    seen_count = 0;
    return v;
}

static void captured(CUstream s)
{
    CUgraph g;
    CUgraphExec e;
    CUgraphNode nodes[8];
    size_t count = 8;

    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    work(s);
    OK(cuStreamEndCapture(s, &g));
    gtsim_settle();
    printf("while capturing: %d activities\n", seen_count);
    OK(cuGraphGetNodes(g, nodes, &count));
    printf("captured %zu nodes, %d announced\n", count, nodes_created);
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    printf("cloned %d\n", nodes_cloned);
    OK(cuGraphLaunch(e, s));
    report("first launch");
    OK(cuGraphLaunch(e, s));
    report("second launch");
    printf("result %g\n", (double)first());

    /* the same with another number, put into the executable graph */
    CUDA_KERNEL_NODE_PARAMS p;
    float three = 3;
    OK(cuGraphKernelNodeGetParams(nodes[1], &p));
    p.kernelParams = (void *[]){&x, &n, &three};
    p.extra = NULL;
    OK(cuGraphExecKernelNodeSetParams(e, nodes[1], &p));
    OK(cuGraphLaunch(e, s));
    printf("changed %g\n", (double)first());
    OK(cuGraphNodeSetEnabled(e, nodes[2], 0));
    OK(cuGraphLaunch(e, s));
    report("without the third");
    CUgraphExecUpdateResultInfo info;
    OK(cuGraphExecUpdate(e, g, &info));
    OK(cuGraphNodeSetEnabled(e, nodes[2], 1));
    OK(cuGraphLaunch(e, s));
    printf("updated %g\n", (double)first());
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
}

/* set and kernel side by side, a copy after both */
static void by_hand(CUstream s)
{
    CUgraph g, clone;
    CUgraphExec e;
    CUgraphNode set, kernel, copy, found;
    CUcontext c;
    float host[8] = {0};

    OK(cuCtxGetCurrent(&c));
    OK(cuGraphCreate(&g, 0));
    CUDA_MEMSET_NODE_PARAMS m = {.dst = y, .value = 0, .elementSize = 4, .width = 8, .height = 1};
    OK(cuGraphAddMemsetNode(&set, g, NULL, 0, &m, c));
    CUDA_KERNEL_NODE_PARAMS k = {.func = fill,
                                 .gridDimX = 1,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 8,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .kernelParams = (void *[]){&x, &n, &two}};
    OK(cuGraphAddKernelNode(&kernel, g, NULL, 0, &k));
    CUDA_MEMCPY3D d = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                       .srcDevice = x,
                       .dstMemoryType = CU_MEMORYTYPE_HOST,
                       .dstHost = host,
                       .WidthInBytes = sizeof host,
                       .Height = 1,
                       .Depth = 1};
    OK(cuGraphAddMemcpyNode(&copy, g, (CUgraphNode[]){set, kernel}, 2, &d, c));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&found, g, (CUgraphNode[]){NULL}, 1));
    OK(cuGraphClone(&clone, g));
    OK(cuGraphNodeFindInClone(&found, copy, clone));
    OK(cuGraphInstantiateWithFlags(&e, clone, 0));
    OK(cuGraphLaunch(e, s));
    report("by hand");
    printf("copied %g\n", (double)host[7]);
    OK(cuGraphExecDestroy(e));
    /* a circle can't run */
    OK(cuGraphAddDependencies(g, &copy, &set, NULL, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&e, g, 0));
    OK(cuGraphDestroy(clone));
    OK(cuGraphDestroy(g));
}

static void two_streams(CUstream s)
{
    CUstream other;
    CUevent fork, join;
    CUgraph g = NULL;
    CUgraphExec e;

    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuEventRecord(fork, s));
    OK(cuStreamWaitEvent(other, fork, 0));
    OK(cuLaunchKernel(fill, 1, 1, 1, 8, 1, 1, 0, other, (void *[]){&x, &n, &one}, NULL));
    OK(cuMemsetD32Async(y, 0, (size_t)n, s));
    FAILS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s, &g));

    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuEventRecord(fork, s));
    OK(cuStreamWaitEvent(other, fork, 0));
    OK(cuLaunchKernel(fill, 1, 1, 1, 8, 1, 1, 0, other, (void *[]){&x, &n, &one}, NULL));
    OK(cuMemsetD32Async(y, 0, (size_t)n, s));
    OK(cuEventRecord(join, other));
    OK(cuStreamWaitEvent(s, join, 0));
    OK(cuLaunchKernel(saxpy, 1, 1, 1, 8, 1, 1, 0, s, (void *[]){&n, &two, &x, &y}, NULL));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    OK(cuGraphLaunch(e, s));
    report("two streams");
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuStreamDestroy(other));
}

static void not_allowed(CUstream s)
{
    CUstreamCaptureStatus status;
    CUdeviceptr p;
    CUevent e;
    CUgraph g;

    OK(cuEventCreate(&e, 0));
    FAILS(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(s, &g));
    FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
          cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&p, 8));
    OK(cuStreamIsCapturing(s, &status));
    SAME(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &g));
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuEventQuery(e));
    FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &g));
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s));
    FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &g));
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuEventQuery(e));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphDestroy(g));
}

int main(int argc, char **argv)
{
    CUmodule module = cuda_start(argc, argv);
    CUstream s;

    before = gtsim_attach(&listener);
    OK(cuModuleGetFunction(&fill, module, "_Z9fill_20usPfif"));
    OK(cuModuleGetFunction(&saxpy, module, "saxpy"));
    OK(cuMemAlloc(&x, 32));
    OK(cuMemAlloc(&y, 32));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    captured(s);
    by_hand(s);
    two_streams(s);
    not_allowed(s);
    OK(cuStreamDestroy(s));
    OK(cuMemFree(x));
    OK(cuMemFree(y));
    return cuda_end();
}
