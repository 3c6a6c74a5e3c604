/*
 * The way to the driver, and what it tells. Found when the client first wants something: with no
 * driver the real CUPTI still takes callbacks, and fails only when a kind is enabled.
 */
#include "tests/sim/cupti/cupti_sim.h"
#include <dlfcn.h>
#include <pthread.h>

struct cupti_driver cupti_driver;
__thread int cupti_inside;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Runtime calls open on this thread. */
static __thread unsigned runtime_depth;

static void enter(struct gtsim_call *call)
{
    if (call->domain == GTSIM_RUNTIME)
        runtime_depth++;
    if (cupti_inside)
        return;
    cupti_read_first();
    call->start_ns = cupti_now(); /* the client's clock, if it has one */
    cupti_inside = 1;
    cupti_call_back(call, CUPTI_API_ENTER);
    cupti_inside = 0;
}

/*
 * The record before the callback: a client that detaches in the exit callback has the call. A
 * driver call made by the runtime has its callbacks, but no record of its own where the runtime's
 * is recorded (so PyTorch's traces show it: no cuLaunchKernel below cudaLaunchKernel).
 */
static void leave(struct gtsim_call *call)
{
    if (call->domain == GTSIM_RUNTIME && runtime_depth)
        runtime_depth--;
    if (cupti_inside)
        return;
    cupti_inside = 1;
    call->end_ns = cupti_now();
    bool nested = call->domain == GTSIM_DRIVER && runtime_depth > 0 &&
                  cupti_records(CUPTI_ACTIVITY_KIND_RUNTIME);
    cupti_lock();
    if (!nested && cupti_records_api(call->domain, call->cbid))
        cupti_record_call(call);
    cupti_record_sync(call);
    cupti_unlock();
    cupti_call_back(call, CUPTI_API_EXIT);
    cupti_inside = 0;
}

static void activity(const struct gtsim_activity *a)
{
    int before = cupti_inside;
    cupti_inside = 1;
    cupti_lock();
    cupti_record_activity(a);
    cupti_unlock();
    cupti_inside = before;
}

static void resource(const struct gtsim_resource *r)
{
    if (cupti_inside)
        return;
    cupti_inside = 1;
    cupti_call_back_resource(r);
    cupti_inside = 0;
}

static const struct gtsim_listener listener = {enter, leave, activity, resource};

#define FIND(member, name) *(void **)(void *)&cupti_driver.member = dlsym(library, name)
static void find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return;
    FIND(attach, "gtsim_attach");
    FIND(now, "gtsim_now");
    FIND(poll, "gtsim_poll");
    FIND(context_id, "gtsim_context_id");
    FIND(device_of, "gtsim_device_of");
    FIND(stream_id, "gtsim_stream_id");
    FIND(graph_id, "gtsim_graph_id");
    FIND(exec_id, "gtsim_exec_id");
    FIND(node_id, "gtsim_node_id");
}

CUptiResult cupti_attach(void)
{
    pthread_once(&once, find);
    if (!cupti_driver.attach)
        return CUPTI_ERROR_UNKNOWN;
    (void)cupti_driver.attach(&listener);
    return CUPTI_SUCCESS;
}

void cupti_detach(void)
{
    if (cupti_driver.attach)
        (void)cupti_driver.attach(NULL);
}
