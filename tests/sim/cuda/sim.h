/*
 * The simulated driver's own header. gen.py makes an export for each function of cuda.h: it
 * announces the call (call.c) and calls sim_NAME, which is written by hand in one of these files or
 * is missing (CUDA_ERROR_NOT_SUPPORTED). The `_ptsz` and `_ptds` exports call the same sim_NAME
 * with sim_per_thread set.
 *
 * One lock, sim_lock, guards everything but the call announcements; it is never held while code of
 * the program or of a listener runs, except for the host functions that stand for kernels. Objects
 * are never given back to malloc, only reused: a stale handle is seen by its mark, not a crash.
 */
#ifndef GTSIM_SIM_H
#define GTSIM_SIM_H

#include "api.h"
#include "gpu.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define SIM_API __attribute__((visibility("default")))
/* what sim_enter answers when the call shall be made; no CUresult has it */
#define SIM_GO ((CUresult)-1)
#define SIM_DEVICES 16
#define SIM_QUEUE 1024

/* call.c */
struct sim_entry {
    const char *name, *base;
    int since, per_thread;
    uint32_t cbid;
    int early; /* may be called before cuInit */
    void *fn;
};
extern const struct sim_entry sim_entries[]; /* newest first within a base name and variant */
struct sim_error {
    int number;
    const char *name, *text;
};
extern const struct sim_error sim_errors[]; /* entries.c has both */
extern _Thread_local int sim_per_thread;
extern _Thread_local uint32_t sim_correlation;
CUresult sim_enter(struct gtsim_call *call, const struct sim_entry *entry, const void *params,
                   const void *function);
CUresult sim_leave(struct gtsim_call *call, CUresult r);
void sim_announce(const struct gtsim_resource *resource); /* without the lock */
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool sim_hidden(const char *name);
long sim_number(const char *variable, long otherwise);
const struct gtsim_listener *sim_listener(void);

/* clock.c */
void sim_clock_start(void);
uint64_t sim_clock(void);
/* The calling thread's: what others wait for does not turn it. */
uint64_t sim_host_clock(void);
void sim_wait_until(uint64_t ns);      /* without the lock */
CUresult sim_poll_answer(uint64_t ns); /* SUCCESS if the clock has reached it, else NOT_READY */
void sim_push(const struct gtsim_activity *a); /* under the lock */
void sim_deliver(void);                        /* without the lock */
uint64_t sim_copy_ns(uint64_t bytes);
uint64_t sim_set_ns(uint64_t bytes);

/* object.c: `mark` is a kind's name in four letters */
extern pthread_mutex_t sim_lock;
void *sim_new(uint32_t mark, size_t size); /* zeroed but for its mark, the first word; or NULL */
void sim_drop(void *object);
bool sim_is(const void *object, uint32_t mark);
int sim_live(uint32_t mark);
#define SIM_MARK(a, b, c, d)                                                                       \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
#define SIM_CONTEXT SIM_MARK('c', 't', 'x', ' ')
#define SIM_STREAM SIM_MARK('s', 't', 'r', 'm')
#define SIM_EVENT SIM_MARK('e', 'v', 'n', 't')
#define SIM_MODULE SIM_MARK('m', 'o', 'd', 'u')
#define SIM_FUNCTION SIM_MARK('f', 'u', 'n', 'c')
#define SIM_GRAPH SIM_MARK('g', 'r', 'p', 'h')
#define SIM_NODE SIM_MARK('n', 'o', 'd', 'e')
#define SIM_EXEC SIM_MARK('e', 'x', 'e', 'c')
#define SIM_POOL SIM_MARK('p', 'o', 'o', 'l')
#define SIM_ARRAY SIM_MARK('a', 'r', 'r', 'y')

/* context.c, device.c */
extern int sim_state; /* 0 before cuInit, 1, and 2 when the process ends */
int sim_devices(void);
struct CUctx_st {
    uint32_t mark;
    CUdevice device;
    uint32_t id;
    unsigned flags;
    int retained; /* primary: how often */
    bool primary;
    CUstream legacy;      /* the default stream */
    CUstream threads;     /* those of single threads */
    uint64_t blocking_ns; /* end of all that blocking streams have, legacy's included */
    uint64_t all_ns;      /* and of all */
    size_t limits[CU_LIMIT_MAX];
    CUcontext next;
};
CUcontext sim_current(void);
CUresult sim_no_context(void);
CUcontext sim_primary(CUdevice device); /* without retaining it; NULL: no such device */
CUcontext sim_contexts(void);           /* under the lock: the first of the live ones */
#define SIM_CONTEXT_OR_RETURN(c)                                                                   \
    CUcontext c = sim_current();                                                                   \
    if (!c)                                                                                        \
    return sim_no_context()

/* stream.c */
struct sim_capture;
struct CUstream_st {
    uint32_t mark;
    CUcontext context;
    unsigned flags; /* CU_STREAM_NON_BLOCKING */
    int priority;
    uint32_t id;
    int thread; /* a thread's own: whose */
    bool legacy;
    uint64_t end_ns; /* of what is in it */
    struct sim_capture *capture;
    CUgraphNode *last; /* capture: what the next node depends on */
    size_t last_count;
    CUstream joined; /* the next of the same capture */
    CUstream next;
};
/* The stream that a handle means; NULL: it means none. Takes the lock for a thread's own. */
CUstream sim_stream(CUstream handle);
CUstream sim_stream_new(CUcontext c, unsigned flags, int priority); /* under the lock */
void sim_stream_end(CUstream s);                                    /* under the lock */
uint64_t sim_stream_ready(CUstream s); /* under the lock: when the next thing could start */
void sim_stream_extend(CUstream s, uint64_t end); /* under the lock */
int sim_streams(void);                            /* that the program has made and not destroyed */
uint64_t sim_stream_done(CUstream s);             /* end of what a synchronisation waits for */
#define SIM_STREAM_OR_RETURN(s, handle)                                                            \
    SIM_CONTEXT_OR_RETURN(s##_context);                                                            \
    (void)s##_context;                                                                             \
    CUstream s = sim_stream(handle);                                                               \
    if (!s)                                                                                        \
    return CUDA_ERROR_INVALID_HANDLE

/* event.c */
struct CUevent_st {
    uint32_t mark;
    unsigned flags;
    CUcontext context;
    uint32_t context_id; /* its context's: another one may lie there by now */
    bool recorded;
    uint64_t ns;
    uint64_t capture_id; /* recorded while capturing: where */
    CUgraphNode *last;
    size_t last_count;
};

/* memory.c: what lies behind addresses */
struct sim_block {
    char *start;
    size_t size;
    int kind;   /* enum gtsim_memory */
    int device; /* of host memory: -1 */
    uint64_t id;
    CUcontext context;
    CUmemoryPool pool;
    bool mapped; /* by mmap */
    bool module; /* a variable of a module */
    unsigned flags;
};
CUresult sim_alloc(size_t size, int kind, int device, CUmemoryPool pool, unsigned flags,
                   void **out);
CUresult sim_free(void *start, bool host); /* the address as it was given */
void sim_free_all(CUcontext c);            /* what ends with it: all but what is of pools */
/* Enters memory that is there; forgets it. Under the lock. */
CUresult sim_block_add(const struct sim_block *b);
bool sim_block_remove(const void *start, struct sim_block *out);
const struct sim_block *sim_block_of(const void *address); /* under the lock; or NULL: pageable */
void sim_memory_add(int device, int64_t bytes);
CUmemoryPool sim_default_pool(int device);
void sim_pool_count(CUmemoryPool pool, int64_t bytes);
void sim_leaks(void);

/* array.c */
struct CUarray_st {
    uint32_t mark;
    CUDA_ARRAY3D_DESCRIPTOR shape;
    size_t element, pitch, height, bytes;
    char *data;
    int device;
};

/* module.c, image.c, function.c */
#define SIM_PARAMETERS 256
struct CUmod_st;
struct CUfunc_st {
    uint32_t mark;
    struct CUmod_st *module;
    const char *name;
    void (*host)(void **params, unsigned grid[3], unsigned block[3]);
    uint64_t ns;
    int registers, shared, local, constant, max_threads, max_dynamic;
    int parameters;
    struct {
        uint16_t offset, size;
    } parameter[SIM_PARAMETERS];
    size_t parameter_bytes;
};
struct sim_variable {
    const char *name;
    char *data;
    size_t size;
};
struct CUmod_st {
    uint32_t mark;
    char *image; /* the cubin, ours */
    size_t image_bytes;
    CUfunction *functions;
    int function_count;
    struct sim_variable *variables;
    int variable_count;
    CUcontext context; /* NULL: a library */
};
/* Finds the cubin in an image (cubin, fatbin, wrapper of a fatbin) and copies it. */
CUresult sim_cubin_of(const void *image, char **out, size_t *size);
CUresult sim_cubin_read(struct CUmod_st *m);
CUresult sim_function_name(CUfunction f, const char **name);
const char *sim_intern(const char *text,
                       size_t length); /* for the life of the process; under the lock */
void *sim_host_function(const char *name);
uint64_t sim_kernel_ns(const char *name);

/* work.c: one thing that a stream can do, and that a graph's node can be */
struct sim_side {
    char *base;
    size_t pitch, slice; /* bytes from row to row, from layer to layer */
    int kind, device;
};
struct sim_work {
    CUgraphNodeType type;
    struct {
        CUfunction f;
        unsigned grid[3], block[3], shared;
        int cooperative;
        void **params; /* pointers to each; of a node: into its own memory */
    } kernel;
    struct {
        struct sim_side from, to;
        size_t width, height, depth;
        CUDA_MEMCPY3D asked;
    } copy;
    struct {
        char *base;
        size_t width, height, pitch;
        unsigned value, element;
        int kind, device;
    } set;
    struct {
        CUhostFn fn;
        void *data;
    } host;
    CUevent event;
    CUgraph child;
};
/* Does it in a stream, or makes it a node if the stream captures. `wait`: and waits for its end. */
CUresult sim_submit(CUstream s, const struct sim_work *w, bool wait);
/* Does it now on `s`, when that is ready, or at *start_ns as a node of a graph; returns its end.
   Without the lock. */
uint64_t sim_perform(CUstream s, const struct sim_work *w, const uint64_t *start_ns,
                     CUgraphNode node, bool wait);
CUresult sim_work_keep(struct sim_work *to,
                       const struct sim_work *from); /* copies what it points to */
void sim_work_free(struct sim_work *w);

/* launch.c, copy.c: what an API's arguments mean */
CUresult sim_kernel_work(struct sim_work *w, CUfunction f, const unsigned grid[3],
                         const unsigned block[3], unsigned shared, int cooperative, void **params,
                         void **extra, void **room);
CUresult sim_copy_work(struct sim_work *w, const CUDA_MEMCPY3D *c);
CUresult sim_set_work(struct sim_work *w, CUdeviceptr to, size_t pitch, unsigned value,
                      unsigned element, size_t width, size_t height);

/* capture.c */
struct sim_capture {
    uint64_t id;
    CUgraph graph;
    CUstream origin, streams; /* all that take part */
    CUstreamCaptureMode mode;
    int thread;
    bool invalid, given; /* given: into a graph of the program's */
    struct sim_capture *next;
};
CUresult sim_capture_add(CUstream s, const struct sim_work *w);
CUresult sim_capture_unsafe(void);     /* a call that no capture allows: invalidates it */
CUresult sim_capture_sync(CUstream s); /* waiting for a stream that captures */
CUresult
sim_capture_legacy(CUstream s); /* use of the legacy stream while a blocking stream captures */
void sim_capture_record(CUevent e, CUstream s);
void sim_capture_last(CUstream s, const CUgraphNode *nodes, size_t count,
                      bool too); /* too: beside the others */
CUresult sim_capture_wait(CUstream s, CUevent e);

/* graph.c, exec.c */
struct CUgraphNode_st {
    uint32_t mark;
    CUgraph graph;
    uint32_t index;
    struct sim_work work;
    CUgraphNode *needs;
    size_t need_count;
    CUgraphNode original; /* of a clone */
    uint64_t end_ns;      /* executable: of the last launch */
    bool disabled;
    int seen;
};
struct CUgraph_st {
    uint32_t mark;
    uint32_t id;
    CUgraphNode *nodes;
    size_t node_count;
    uint32_t next_index;
    bool inner; /* belongs to an executable graph or to a node */
};
struct CUgraphExec_st {
    uint32_t mark;
    CUgraph graph;
    uint64_t flags;
    CUcontext context;
    uint64_t end_ns; /* of its last launch: the next starts then at the earliest */
};
CUgraph sim_graph_new(bool inner);
CUgraph sim_graph_clone(CUgraph g, bool inner);
void sim_graph_free(CUgraph g);
CUgraphNode sim_graph_clone_of(CUgraph g, CUgraphNode original);
CUresult sim_node_add(CUgraph g, const CUgraphNode *needs, size_t count, const struct sim_work *w,
                      CUgraphNode *out);
CUresult sim_node_depend(CUgraphNode node, CUgraphNode on);
/* nodes.c: work of what the API calls parameters; room: SIM_PARAMETERS pointers */
CUresult sim_node_work(struct sim_work *w, const CUgraphNodeParams *p, void **room);
CUresult sim_node_set(CUgraphNode node, const struct sim_work *w);

#endif
