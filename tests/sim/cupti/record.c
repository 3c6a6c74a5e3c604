/*
 * Records of device work: kernels, copies, sets, and whole graph launches where the client asked
 * for those. Called by the driver when the virtual clock has reached the work's end.
 */
#include "tests/sim/cupti/cupti_sim.h"
#include <string.h>

/* What a reader with its own description of a record relies on. */
#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #field)
AT(CUpti_ActivityKernel10, start, 16);
AT(CUpti_ActivityKernel10, end, 24);
AT(CUpti_ActivityKernel10, deviceId, 40);
AT(CUpti_ActivityKernel10, contextId, 44);
AT(CUpti_ActivityKernel10, streamId, 48);
AT(CUpti_ActivityKernel10, gridX, 52);
AT(CUpti_ActivityKernel10, correlationId, 92);
AT(CUpti_ActivityKernel10, name, 104);
AT(CUpti_ActivityMemcpy6, bytes, 8);
AT(CUpti_ActivityMemcpy6, start, 16);
AT(CUpti_ActivityMemcpy6, end, 24);
AT(CUpti_ActivityMemcpy6, streamId, 40);
AT(CUpti_ActivityMemcpy6, correlationId, 44);
AT(CUpti_ActivityMemcpyPtoP4, bytes, 8);
AT(CUpti_ActivityMemcpyPtoP4, start, 16);
AT(CUpti_ActivityMemcpyPtoP4, end, 24);
AT(CUpti_ActivityMemcpyPtoP4, deviceId, 32);
AT(CUpti_ActivityMemcpyPtoP4, correlationId, 60);
AT(CUpti_ActivityMemset4, bytes, 8);
AT(CUpti_ActivityMemset4, start, 16);
AT(CUpti_ActivityMemset4, end, 24);
AT(CUpti_ActivityMemset4, streamId, 40);
AT(CUpti_ActivityMemset4, correlationId, 44);

static void kernel(const struct gtsim_activity *a)
{
    bool concurrent = cupti_records(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (!concurrent && !cupti_records(CUPTI_ACTIVITY_KIND_KERNEL))
        return;
    static int64_t grids; /* under the lock */
    CUpti_ActivityKernel10 r;
    memset(&r, 0, sizeof r);
    r.kind = concurrent ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : CUPTI_ACTIVITY_KIND_KERNEL;
    r.registersPerThread = (uint16_t)a->registers;
    r.start = cupti_device_time(a->start_ns);
    r.end = cupti_device_time(a->end_ns);
    r.deviceId = a->device;
    r.contextId = a->context_id;
    r.streamId = a->stream_id;
    r.gridX = (int32_t)a->grid[0];
    r.gridY = (int32_t)a->grid[1];
    r.gridZ = (int32_t)a->grid[2];
    r.blockX = (int32_t)a->block[0];
    r.blockY = (int32_t)a->block[1];
    r.blockZ = (int32_t)a->block[2];
    r.staticSharedMemory = (int32_t)a->shared_static;
    r.dynamicSharedMemory = (int32_t)a->shared_dynamic;
    r.sharedMemoryExecuted = a->shared_static + a->shared_dynamic;
    r.localMemoryPerThread = a->local_bytes;
    r.correlationId = a->correlation;
    r.gridId = ++grids;
    r.name = a->name;
    if (cupti_latency()) {
        r.queued = cupti_device_time(a->queued_ns);
        r.submitted = r.queued;
    }
    r.launchType = a->cooperative ? CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE
                                  : CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR;
    r.graphNodeId = a->graph_node_id;
    r.graphId = a->graph_id;
    r.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
    cupti_put(&r, sizeof r);
}

static void copy_peer(const struct gtsim_activity *a)
{
    if (!cupti_records(CUPTI_ACTIVITY_KIND_MEMCPY2))
        return;
    CUpti_ActivityMemcpyPtoP4 r;
    memset(&r, 0, sizeof r);
    r.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    r.copyKind = (uint8_t)a->copy_kind;
    r.srcKind = (uint8_t)a->src_kind;
    r.dstKind = (uint8_t)a->dst_kind;
    r.flags = a->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
    r.bytes = a->bytes;
    r.start = cupti_device_time(a->start_ns);
    r.end = cupti_device_time(a->end_ns);
    r.deviceId = a->device;
    r.contextId = a->context_id;
    r.streamId = a->stream_id;
    r.srcDeviceId = a->src_device;
    r.dstDeviceId = a->dst_device;
    r.correlationId = a->correlation;
    r.graphNodeId = a->graph_node_id;
    r.graphId = a->graph_id;
    r.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
    cupti_put(&r, sizeof r);
}

static void copy(const struct gtsim_activity *a)
{
    if (!cupti_records(CUPTI_ACTIVITY_KIND_MEMCPY))
        return;
    CUpti_ActivityMemcpy6 r;
    memset(&r, 0, sizeof r);
    r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    r.copyKind = (uint8_t)a->copy_kind;
    r.srcKind = (uint8_t)a->src_kind;
    r.dstKind = (uint8_t)a->dst_kind;
    r.flags = a->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
    r.bytes = a->bytes;
    r.start = cupti_device_time(a->start_ns);
    r.end = cupti_device_time(a->end_ns);
    r.deviceId = a->device;
    r.contextId = a->context_id;
    r.streamId = a->stream_id;
    r.correlationId = a->correlation;
    r.runtimeCorrelationId = a->correlation;
    r.graphNodeId = a->graph_node_id;
    r.graphId = a->graph_id;
    r.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
    r.copyCount = 1;
    cupti_put(&r, sizeof r);
}

static void set(const struct gtsim_activity *a)
{
    if (!cupti_records(CUPTI_ACTIVITY_KIND_MEMSET))
        return;
    CUpti_ActivityMemset4 r;
    memset(&r, 0, sizeof r);
    r.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    r.value = a->value;
    r.bytes = a->bytes;
    r.start = cupti_device_time(a->start_ns);
    r.end = cupti_device_time(a->end_ns);
    r.deviceId = a->device;
    r.contextId = a->context_id;
    r.streamId = a->stream_id;
    r.correlationId = a->correlation;
    r.flags = a->async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
    r.memoryKind = (uint16_t)a->dst_kind;
    r.graphNodeId = a->graph_node_id;
    r.graphId = a->graph_id;
    r.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
    cupti_put(&r, sizeof r);
}

/* ---- GRAPH_TRACE: one record a launch, none for its nodes. Nothing tells that a launch has ended,
   so its record waits for the next flush, or for room. */
#define LAUNCHES 64
static CUpti_ActivityGraphTrace2 launches[LAUNCHES];
static size_t launch_count;

void cupti_record_graphs(void)
{
    for (size_t i = 0; i < launch_count; i++)
        cupti_put(&launches[i], sizeof launches[i]);
    launch_count = 0;
}

static void graph_node(const struct gtsim_activity *a)
{
    uint64_t start = cupti_device_time(a->start_ns), end = cupti_device_time(a->end_ns);
    for (size_t i = 0; i < launch_count; i++)
        if (launches[i].correlationId == a->correlation) {
            if (start < launches[i].start)
                launches[i].start = start;
            if (end > launches[i].end)
                launches[i].end = end;
            return;
        }
    if (launch_count == LAUNCHES)
        cupti_record_graphs();
    launches[launch_count++] = (CUpti_ActivityGraphTrace2){
        .kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
        .correlationId = a->correlation,
        .start = start,
        .end = end,
        .deviceId = a->device,
        .graphId = a->graph_id,
        .contextId = a->context_id,
        .streamId = a->stream_id,
        .endDeviceId = a->device,
        .endContextId = a->context_id,
    };
}

void cupti_record_activity(const struct gtsim_activity *a)
{
    cupti_read_clocks();
    if (a->graph_id && cupti_records(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)) {
        graph_node(a);
        return;
    }
    switch (a->kind) {
    case GTSIM_KERNEL:
        kernel(a);
        break;
    case GTSIM_MEMCPY:
        if (a->copy_kind == GTSIM_PTOP)
            copy_peer(a);
        else
            copy(a);
        break;
    case GTSIM_MEMSET:
        set(a);
        break;
    default:
        break;
    }
}
