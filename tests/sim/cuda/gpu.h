/*
 * What the simulated driver tells the libraries that stand on it: the simulated CUPTI and the
 * simulated runtime. Exported by build/sim/libcuda.so.1 with the prefix gtsim_, to be found with
 * dlsym(); nobody else calls it. The product never does.
 *
 * Time. Everything is in nanoseconds of one clock, gtsim_now(). It is virtual: it starts at the
 * CLOCK_REALTIME of the first cuInit (GTSIM_EPOCH=ns: there) and stands still but for
 *   - a call that waits (cuStreamSynchronize, a synchronous copy ...): it turns to the end of what
 * was waited for, if that is later;
 *   - a query that answers NOT_READY: by GTSIM_POLL_NS (1000), so that a program that polls gets
 * on;
 *   - a launch into a full queue (1024 unfinished activities a device): to the end of the first of
 * them;
 *   - gtsim_advance().
 * With GTSIM_CLOCK=wall it is CLOCK_REALTIME itself and a call that waits really sleeps until then.
 * The durations are the same, exact ones in both.
 *
 * Each thread has such a clock of its own, which begins with the common one at its first call: what
 * another thread waits for does not come between two calls of this one. The common one is the
 * latest of all.
 *
 * An activity starts at the latest of: the thread's clock when it was put into its stream, the end
 * of what is before it there (legacy and per-thread default streams as documented for CUDA), the
 * events that the stream waits for. Streams never slow one another down. Its work on memory is done
 * in the call that puts it there; only its times are later. kernel: GTSIM_DURATIONS="name=ns,..."
 * else the name's end (..._20us, _500ns, _3ms) else GTSIM_KERNEL_NS (10000) copy: bytes /
 * GTSIM_COPY_BPNS (16 bytes a ns, so 16 GB/s), at least 1000 ns;   set: the same at 4 times that
 *
 * Threads. Any function may be called from any thread. The listener's functions are called on the
 * thread that made the API call, with no lock of the driver held: they may call the driver. What
 * they call themselves is announced to them as well (as CUPTI does): guard.
 */
#ifndef GTSIM_GPU_H
#define GTSIM_GPU_H

#include <stddef.h>
#include <stdint.h>
#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GTSIM_VERSION 1

enum gtsim_domain { GTSIM_DRIVER = 1, GTSIM_RUNTIME = 2 };

/* One call of an API function, on its caller's stack. The driver fills one for each of its
   functions; the runtime fills domain, cbid, name, params (and symbol) and calls gtsim_enter and
   gtsim_leave. */
struct gtsim_call {
    enum gtsim_domain domain;
    uint32_t cbid;      /* number in cupti_driver_cbid.h (cupti_runtime_cbid.h); 0: it has none */
    const char *name;   /* as exported: "cuMemAlloc_v2", "cuLaunchKernel_ptsz" */
    const void *params; /* its arguments, laid out as NAME_params of generated_cuda_meta.h; NULL: it
                           has none */
    const char *symbol; /* launch of a kernel: its name, else NULL */
    CUcontext context;  /* current at entry (at exit: then); NULL: none */
    uint32_t context_id; /* 0: none */
    uint32_t
        correlation;   /* given by gtsim_enter, from 1. A driver call inside a runtime call of the
                          same   thread has the runtime call's, as in CUPTI; activities carry it */
    int result;        /* at exit: what it returns */
    uint64_t start_ns; /* gtsim_now() at entry */
    uint64_t end_ns;   /* and at exit */
    uint64_t user;     /* the listener's, kept from enter to leave; 0 at enter */
    struct gtsim_call *up; /* private: the enclosing call */
};

enum gtsim_kind {
    GTSIM_KERNEL = 1,
    GTSIM_MEMCPY = 2,
    GTSIM_MEMSET = 3,
    GTSIM_HOST_FUNC = 4, /* duration 0 */
};

/* numbers as in CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind */
enum gtsim_copy {
    GTSIM_HTOD = 1,
    GTSIM_DTOH = 2,
    GTSIM_HTOA = 3,
    GTSIM_ATOH = 4,
    GTSIM_ATOA = 5,
    GTSIM_ATOD = 6,
    GTSIM_DTOA = 7,
    GTSIM_DTOD = 8,
    GTSIM_HTOH = 9,
    GTSIM_PTOP = 10,
};
enum gtsim_memory {
    GTSIM_PAGEABLE = 1,
    GTSIM_PINNED = 2,
    GTSIM_DEVICE = 3,
    GTSIM_ARRAY = 4,
    GTSIM_MANAGED = 5,
};

/* One finished piece of device work. Valid during the call; `name` for the life of the process. */
struct gtsim_activity {
    enum gtsim_kind kind;
    uint32_t device;
    uint32_t context_id;  /* from 1 */
    uint32_t stream_id;   /* 7: the first context's legacy default stream */
    uint32_t correlation; /* of the call that put it there; all nodes of a graph launch have the
                             launch's */
    uint64_t queued_ns;   /* the clock at that call */
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t graph_node_id; /* of the node in the executable graph; 0: no graph */
    uint32_t graph_id;      /* of the executable graph; 0: none */
    /* kernel */
    const char *name; /* mangled; NULL: not a kernel */
    uint32_t grid[3], block[3];
    uint32_t shared_static, shared_dynamic; /* bytes */
    uint32_t registers;                     /* a thread */
    uint32_t local_bytes;                   /* a thread */
    int cooperative;
    /* copy and set */
    uint64_t bytes;
    int copy_kind;          /* enum gtsim_copy */
    int src_kind, dst_kind; /* enum gtsim_memory; a set has dst_kind */
    uint32_t src_device, dst_device;
    int async;      /* the call does not wait for it */
    uint32_t value; /* set */
};

/* Numbers as CUPTI_CBID_RESOURCE_*: 1 context created, 2 destroy starting, 3 stream created, 4
   destroy starting, 5 cuInit finished, 6 module loaded, 7 unload starting, 9 graph created, 10
   destroy starting, 11 cloned, 13 node created, 14 destroy starting, 15 dependency created, 18
   executable graph created, 19 destroy starting, 20 node cloned. What does not belong to the number
   is NULL. */
struct gtsim_resource {
    int cbid;
    CUcontext context;
    CUstream stream;
    CUmodule module;
    const void *cubin; /* module loaded, unload starting */
    size_t cubin_bytes;
    CUgraph graph, original_graph;
    CUgraphNode node, original_node, dependency;
    CUgraphNodeType node_type;
    CUgraphExec exec; /* an executable graph's nodes are clones: 11 and 20 come first, with `graph`
                         the clone inside it */
};

/* Who listens. Functions that are NULL are not called. `activity` comes when the clock has reached
   its end, in order of ends (but for those that several threads hand out at once), from whatever
   call finds it so (or gtsim_poll). */
struct gtsim_listener {
    void (*enter)(struct gtsim_call *call);
    void (*leave)(struct gtsim_call *call);
    void (*activity)(const struct gtsim_activity *activity);
    void (*resource)(const struct gtsim_resource *resource);
};

/* One listener at a time, borrowed until it is replaced; NULL: none. Returns the one before. An
   activity is kept for the listener only if one was attached when it was put into its stream. */
const struct gtsim_listener *gtsim_attach(const struct gtsim_listener *listener);

/* For the runtime: the same announcements for its own functions. enter gives the correlation. A
   call that nobody listens to costs one load. */
void gtsim_enter(struct gtsim_call *call);
void gtsim_leave(struct gtsim_call *call, int result);

/* For the runtime: the error that GTSIM_FAIL="cudaMalloc:3=2,..." wants of this call of that
 * function, 0: none. */
int gtsim_failure(const char *name);

uint64_t gtsim_now(void);
/* Turns the virtual clock on (wall: sleeps) and hands out what ended by then. */
void gtsim_advance(uint64_t ns);
/* Hands out what has ended by now. */
void gtsim_poll(void);
/* Ends of everything that was put into any stream of any device: turns the clock there, and polls.
 */
void gtsim_settle(void);

uint32_t gtsim_context_id(CUcontext context); /* 0: not a context */
uint32_t gtsim_device_of(CUcontext context);
/* NULL: the legacy default stream; CU_STREAM_PER_THREAD: the caller's. 0: not a stream */
uint32_t gtsim_stream_id(CUcontext context, CUstream stream);
uint32_t gtsim_graph_id(CUgraph graph);   /* 0: not a graph */
uint32_t gtsim_exec_id(CUgraphExec exec); /* as in gtsim_activity.graph_id */
uint64_t gtsim_node_id(CUgraphNode node); /* 0: not a node; graph id << 32 | index */

/* What is allocated on a device now: every kind that lies there. */
uint64_t gtsim_memory_used(int device);
/* Kernels that ended so far, on every device: for tests that count without a listener. */
uint64_t gtsim_kernels(void);

#ifdef __cplusplus
}
#endif
#endif
