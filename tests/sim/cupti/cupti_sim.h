/*
 * What the files of the simulated CUPTI (build/sim/libcupti.so.13) share. It listens to the
 * simulated driver (tests/sim/cuda/gpu.h) and turns what it hears into callbacks and activity
 * records of the real ABI; the toolkit's own header says how they look and what is refused.
 *
 * Threads: any. One lock (lock_records) guards buffers and settings. The client's callbacks run
 * with `inside` set on their thread: what they call of CUDA is not announced again.
 */
#ifndef SIM_CUPTI_H
#define SIM_CUPTI_H

#include <cupti.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tests/sim/cuda/gpu.h"

#define SIM_API __attribute__((visibility("default")))

/* The driver's functions; all NULL until cupti_attach has found one. */
struct cupti_driver {
    const struct gtsim_listener *(*attach)(const struct gtsim_listener *);
    uint64_t (*now)(void);
    void (*poll)(void);
    uint32_t (*context_id)(CUcontext);
    uint32_t (*device_of)(CUcontext);
    uint32_t (*stream_id)(CUcontext, CUstream);
    uint32_t (*graph_id)(CUgraph);
    uint32_t (*exec_id)(CUgraphExec);
    uint64_t (*node_id)(CUgraphNode);
};
extern struct cupti_driver cupti_driver;
/* Finds the driver and listens to it. CUPTI_ERROR_UNKNOWN: there is none, as the real one says. */
CUptiResult cupti_attach(void);
void cupti_detach(void);

/* The calling thread is inside a callback of the client. */
extern __thread int cupti_inside;

/* ---- kinds.c */
bool cupti_records(CUpti_ActivityKind kind);
bool cupti_records_api(enum gtsim_domain domain, uint32_t cbid);
void cupti_kinds_reset(void);

/* ---- buffer.c: recursive, so that the client may call back */
void cupti_lock(void);
void cupti_unlock(void);
/* Appends one record; counts it as dropped where there is no room. With the lock. */
void cupti_put(const void *record, size_t size);
void cupti_buffers_reset(void);
/* Bytes of a record of this kind, 0: unknown. */
size_t cupti_record_size(CUpti_ActivityKind kind);

/* ---- record.c, record_api.c */
void cupti_record_activity(const struct gtsim_activity *a);
/* A call's record, and that of a call that waits. With the lock. */
void cupti_record_call(const struct gtsim_call *call);
void cupti_record_sync(const struct gtsim_call *call);
/* Graph launches that GRAPH_TRACE has summed up so far. With the lock. */
void cupti_record_graphs(void);
/* What a flush costs, where OVERHEAD is enabled. With the lock. */
void cupti_record_flush(void);
uint32_t cupti_thread_id(void);
bool cupti_latency(void);

/* ---- external.c: appends a record for each kind that is open on this thread. With the lock. */
void cupti_put_external(uint32_t correlation);

/* ---- callback.c */
void cupti_call_back(const struct gtsim_call *call, CUpti_ApiCallbackSite site);
void cupti_call_back_resource(const struct gtsim_resource *r);
void cupti_callbacks_reset(void);

/* ---- clock.c: now, in the client's clock if it registered one */
uint64_t cupti_now(void);
/* Reads both clocks, for the times of the device that are turned into the client's. With the lock.
 */
void cupti_read_clocks(void);
uint64_t cupti_device_time(uint64_t ns);
/* Reads them for the first time if the device had no time yet when the client registered. */
void cupti_read_first(void);
void cupti_clock_reset(void);

/* Made at build time (gen.py): "cudaMemcpy_v3020" and the like by number. */
extern const char *const cupti_runtime_names[];
extern const char *const cupti_driver_names[];
extern const size_t cupti_runtime_count, cupti_driver_count;

#endif
