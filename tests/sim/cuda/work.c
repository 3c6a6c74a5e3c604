/* One piece of work: done at once on the host's memory, timed on the virtual timeline. From an API
   call, or as a node of a graph that is launched. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void move(const struct sim_work *w)
{
    const struct sim_side *from = &w->copy.from, *to = &w->copy.to;

    for (size_t z = 0; z < w->copy.depth; z++) {
        for (size_t y = 0; y < w->copy.height; y++)
            memmove(to->base + z * to->slice + y * to->pitch,
                    from->base + z * from->slice + y * from->pitch, w->copy.width);
    }
}

static void fill(const struct sim_work *w)
{
    for (size_t y = 0; y < w->set.height; y++) {
        char *row = w->set.base + y * w->set.pitch;

        if (w->set.element == 1) {
            memset(row, (int)w->set.value, w->set.width);
            continue;
        }
        for (size_t x = 0; x < w->set.width; x++)
            memcpy(row + x * w->set.element, &w->set.value, w->set.element);
    }
}

static int copy_kind(int from, int to)
{
    /* host, device, array */
    static const int kinds[3][3] = {{GTSIM_HTOH, GTSIM_HTOD, GTSIM_HTOA},
                                    {GTSIM_DTOH, GTSIM_DTOD, GTSIM_DTOA},
                                    {GTSIM_ATOH, GTSIM_ATOD, GTSIM_ATOA}};
    int f = from == GTSIM_ARRAY ? 2 : from == GTSIM_DEVICE || from == GTSIM_MANAGED;
    int t = to == GTSIM_ARRAY ? 2 : to == GTSIM_DEVICE || to == GTSIM_MANAGED;

    return kinds[f][t];
}

static void of_copy(struct gtsim_activity *a, const struct sim_work *w)
{
    const struct sim_side *from = &w->copy.from, *to = &w->copy.to;

    a->kind = GTSIM_MEMCPY;
    a->bytes = w->copy.width * w->copy.height * w->copy.depth;
    a->copy_kind = copy_kind(from->kind, to->kind);
    if (a->copy_kind == GTSIM_DTOD && from->device != to->device)
        a->copy_kind = GTSIM_PTOP;
    a->src_kind = from->kind;
    a->dst_kind = to->kind;
    a->src_device = from->device < 0 ? a->device : (uint32_t)from->device;
    a->dst_device = to->device < 0 ? a->device : (uint32_t)to->device;
    a->end_ns = a->start_ns + sim_copy_ns(a->bytes);
}

static void of_kernel(struct gtsim_activity *a, const struct sim_work *w)
{
    CUfunction f = w->kernel.f;

    a->kind = GTSIM_KERNEL;
    a->name = f->name;
    memcpy(a->grid, w->kernel.grid, sizeof a->grid);
    memcpy(a->block, w->kernel.block, sizeof a->block);
    a->shared_static = (uint32_t)f->shared;
    a->shared_dynamic = w->kernel.shared;
    a->registers = (uint32_t)f->registers;
    a->local_bytes = (uint32_t)f->local;
    a->cooperative = w->kernel.cooperative;
    a->end_ns = a->start_ns + f->ns;
}

uint64_t sim_perform(CUstream s, const struct sim_work *w, const uint64_t *start_ns,
                     CUgraphNode node, bool wait)
{
    struct gtsim_activity a = {.device = (uint32_t)s->context->device,
                               .context_id = s->context->id,
                               .stream_id = s->id,
                               .correlation = sim_correlation,
                               .async = !wait};

    pthread_mutex_lock(&sim_lock);
    a.queued_ns = sim_host_clock();
    a.start_ns = a.end_ns = start_ns ? *start_ns : sim_stream_ready(s);
    if (node) {
        a.graph_id = node->graph->id;
        a.graph_node_id = gtsim_node_id(node);
    }
    switch (w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        of_kernel(&a, w);
        if (w->kernel.f->host) {
            unsigned grid[3], block[3];

            memcpy(grid, w->kernel.grid, sizeof grid);
            memcpy(block, w->kernel.block, sizeof block);
            w->kernel.f->host(w->kernel.params, grid, block);
        }
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        of_copy(&a, w);
        move(w);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        a.kind = GTSIM_MEMSET;
        a.bytes = w->set.width * w->set.height * w->set.element;
        a.value = w->set.value;
        a.dst_kind = w->set.kind;
        a.dst_device = w->set.device < 0 ? a.device : (uint32_t)w->set.device;
        a.end_ns = a.start_ns + sim_set_ns(a.bytes);
        fill(w);
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
        a.kind = GTSIM_HOST_FUNC;
        break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        w->event->recorded = true;
        w->event->capture_id = 0;
        w->event->ns = a.start_ns;
        break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        a.end_ns = later(a.start_ns, w->event->recorded ? w->event->ns : 0);
        break;
    default: /* an empty node, memory of a graph: nothing to do */
        break;
    }
    sim_stream_extend(s, a.end_ns);
    if (a.kind)
        sim_push(&a);
    pthread_mutex_unlock(&sim_lock);
    if (w->type == CU_GRAPH_NODE_TYPE_HOST && w->host.fn)
        w->host.fn(w->host.data);
    return a.end_ns;
}

CUresult sim_submit(CUstream s, const struct sim_work *w, bool wait)
{
    CUresult r = sim_capture_legacy(s);

    if (r)
        return r;
    if (s->capture)
        return wait ? sim_capture_sync(s) : sim_capture_add(s, w);
    uint64_t end = sim_perform(s, w, NULL, NULL, wait);
    if (wait)
        sim_wait_until(end);
    return CUDA_SUCCESS;
}

CUresult sim_work_keep(struct sim_work *to, const struct sim_work *from)
{
    *to = *from;
    if (from->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return CUDA_SUCCESS;
    CUfunction f = from->kernel.f;
    size_t pointers = (size_t)f->parameters * sizeof(void *);
    char *room = malloc(pointers + f->parameter_bytes + 1);
    if (!room)
        return CUDA_ERROR_OUT_OF_MEMORY;
    to->kernel.params = (void **)room;
    for (int i = 0; i < f->parameters; i++) {
        to->kernel.params[i] = room + pointers + f->parameter[i].offset;
        memcpy(to->kernel.params[i], from->kernel.params[i], f->parameter[i].size);
    }
    return CUDA_SUCCESS;
}

void sim_work_free(struct sim_work *w)
{
    if (w->type == CU_GRAPH_NODE_TYPE_KERNEL)
        free(w->kernel.params);
    if (w->type == CU_GRAPH_NODE_TYPE_GRAPH && w->child)
        sim_graph_free(w->child);
    memset(w, 0, sizeof *w);
}
