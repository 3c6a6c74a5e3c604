/*
 * How the runtime reaches the driver, step by step as the real one: dlopen without a path, one
 * dlsym, a probe with an empty name, then cuGetProcAddress for each function, and once more with
 * the flag for the per-thread default stream where there is such a variant. A tool that wraps only
 * a part of this way is blind to the program. Called by the first API call of any thread.
 */
#include "tests/sim/cudart/rt.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

struct rt_driver rt_drv[2];
static PFN_cuGetProcAddress_v12000 lookup;
static pthread_once_t opened = PTHREAD_ONCE_INIT, once = PTHREAD_ONCE_INIT;
static CUresult answer;

struct function {
    const char *name;
    int version, pt_version; /* 0: there is no variant */
    size_t at;
};
static const struct function functions[] = {
#define DRV(name, version) {#name, version, 0, offsetof(struct rt_driver, name)},
#define DRV_PT(name, version, pt) {#name, version, pt, offsetof(struct rt_driver, name)},
#include "tests/sim/cudart/driver.def"
};

/* What an older driver lacks: the call that needs it fails, the others work. */
static CUresult lacking(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static void *ask(const char *name, int version, cuuint64_t flags)
{
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    if (lookup(name, &found, version, flags, &status) || !found)
        return NULL;
    return found;
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return;
    lookup = (PFN_cuGetProcAddress_v12000)dlsym(library, "cuGetProcAddress_v2");
    rt_listen(library);
}

void rt_driver_open(void)
{
    pthread_once(&opened, open_driver);
}

static void find(void)
{
    rt_driver_open();
    if (!lookup) {
        answer = (CUresult)cudaErrorInsufficientDriver;
        return;
    }
    void *probe = NULL;
    (void)lookup("", &probe, 0, 0, NULL);
    (void)ask("cuGetProcAddress", 11030, 0);
    void *newer = ask("cuGetProcAddress", 12000, 0);
    if (newer)
        lookup = (PFN_cuGetProcAddress_v12000)newer;

    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const struct function *f = &functions[i];
        void *plain = ask(f->name, f->version, CU_GET_PROC_ADDRESS_DEFAULT);
        void *variant = NULL;
        if (f->pt_version)
            variant = ask(f->name, f->pt_version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
        if (!plain)
            plain = (void *)lacking;
        if (!variant)
            variant = plain;
        memcpy((char *)&rt_drv[0] + f->at, &plain, sizeof plain);
        memcpy((char *)&rt_drv[1] + f->at, &variant, sizeof variant);
    }
    answer = rt_drv[0].cuInit(0);
}

CUresult rt_driver_init(void)
{
    pthread_once(&once, find);
    return answer;
}

PFN_cuGetProcAddress_v12000 rt_lookup(void)
{
    return lookup;
}
