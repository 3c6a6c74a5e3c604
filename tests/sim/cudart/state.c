/*
 * What the runtime remembers of a thread: its device, whether it has a context, its last error. And
 * of the process: the primary contexts it holds and the error that broke them.
 */
#include "tests/sim/cudart/rt.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#define RT_DEVICES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[RT_DEVICES]; /* under lock; NULL: not retained */
static atomic_uint resets;            /* a thread's context is gone when this has changed */
static atomic_int broken;             /* an error that all calls return until a reset; 0: none */

static __thread struct {
    int device;
    unsigned attached; /* resets + 1 when it got its context; 0: it has none */
    cudaError_t last;
} self;

/* ---- who listens: the driver's own list, where the driver is the simulated one */
static void (*_Atomic announce_enter)(struct gtsim_call *);
static void (*_Atomic announce_leave)(struct gtsim_call *, int);
static int (*_Atomic failure_of)(const char *);

void rt_listen(void *library)
{
    failure_of = (int (*)(const char *))dlsym(library, "gtsim_failure");
    announce_leave = (void (*)(struct gtsim_call *, int))dlsym(library, "gtsim_leave");
    if (announce_leave)
        announce_enter = (void (*)(struct gtsim_call *))dlsym(library, "gtsim_enter");
}

/* ---- errors. These leave the context unusable: CUDA says so of each in driver_types.h. */
static bool breaks_context(CUresult error)
{
    switch ((cudaError_t)error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
        return true;
    default:
        return false;
    }
}

cudaError_t rt_last_error(bool take)
{
    cudaError_t e = self.last;
    if (take)
        self.last = (cudaError_t)atomic_load(&broken);
    return e;
}

/* ---- contexts */
CUresult rt_primary(int device, CUcontext *context)
{
    if (device < 0 || device >= RT_DEVICES)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    CUresult r = CUDA_SUCCESS;
    if (!primary[device])
        r = rt_drv[0].cuDevicePrimaryCtxRetain(&primary[device], device);
    *context = primary[device];
    pthread_mutex_unlock(&lock);
    return r;
}

/* A context that the program made current itself stays: the runtime works in it. */
static CUresult attach(void)
{
    unsigned now = atomic_load(&resets) + 1;
    if (self.attached == now)
        return CUDA_SUCCESS;
    CUcontext c = NULL;
    CUresult r = rt_drv[0].cuCtxGetCurrent(&c);
    if (!r && !c) {
        r = rt_primary(self.device, &c);
        if (!r)
            r = rt_drv[0].cuCtxSetCurrent(c);
    }
    if (!r)
        self.attached = now;
    return r;
}

int rt_device(void)
{
    CUdevice d;
    if (self.attached && !rt_drv[0].cuCtxGetDevice(&d))
        self.device = d;
    return self.device;
}

CUresult rt_set_device(int device)
{
    int count = 0;
    CUresult r = rt_drv[0].cuDeviceGetCount(&count);
    if (!r && (device < 0 || device >= count))
        r = CUDA_ERROR_INVALID_DEVICE;
    CUcontext c = NULL;
    if (!r)
        r = rt_primary(device, &c);
    if (!r)
        r = rt_drv[0].cuCtxSetCurrent(c);
    if (!r) {
        self.device = device;
        self.attached = atomic_load(&resets) + 1;
    }
    return r;
}

CUresult rt_reset_device(void)
{
    int device = rt_device();
    pthread_mutex_lock(&lock);
    CUresult r = rt_drv[0].cuDevicePrimaryCtxReset(device);
    primary[device] = NULL;
    pthread_mutex_unlock(&lock);
    (void)rt_drv[0].cuCtxSetCurrent(NULL);
    atomic_store(&broken, 0);
    atomic_fetch_add(&resets, 1);
    self.last = cudaSuccess;
    return r;
}

/* ---- around each call */
CUresult rt_begin(struct gtsim_call *call, enum rt_need need)
{
    if (need != RT_NEEDS_NOTHING)
        rt_driver_open();
    void (*enter)(struct gtsim_call *) = announce_enter;
    if (enter)
        enter(call);
    int (*failure)(const char *) = failure_of;
    CUresult r = failure ? (CUresult)failure(call->name) : CUDA_SUCCESS;
    if (!r && need != RT_NEEDS_NOTHING)
        r = rt_driver_init();
    if (r || need != RT_NEEDS_CONTEXT)
        return r;
    r = (CUresult)atomic_load(&broken);
    return r ? r : attach();
}

cudaError_t rt_end(struct gtsim_call *call, CUresult result)
{
    if (result)
        self.last = (cudaError_t)result;
    if (breaks_context(result)) {
        int none = 0;
        atomic_compare_exchange_strong(&broken, &none, (int)result);
    }
    /* a call that began before the driver was looked for has no number */
    void (*leave)(struct gtsim_call *, int) = announce_leave;
    if (leave && call->correlation)
        leave(call, (int)result);
    return (cudaError_t)result;
}
