/* A driver that does nothing: libcuda.so.1 for programs that test the way to it. Every function of
 * preload/hooks/cuda.def notes that it was called. cuGetProcAddress answers by the driver's rule,
 * from the same table; STUB_INTERNAL=1: not with the exported functions but with others of its own;
 * a third cuMemAlloc, which the table does not know, came with version 14000. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "../../../preload/abi/cuda.h"
#include "cuda_stub.h"

static _Thread_local struct stub_seen seen;

struct stub_seen *stub_driver_seen(void);
struct stub_seen *stub_driver_seen(void)
{
    return &seen;
}

static unsigned note(const char *name, const uintptr_t *slots)
{
    seen.name = name;
    memcpy(seen.slots, slots, sizeof seen.slots);
    seen.calls++;
    return seen.result;
}

#define NOTED(name)                                                                                \
    slot_fn name;                                                                                  \
    unsigned name(SLOT_PARAMETERS)                                                                 \
    {                                                                                              \
        return note(#name, (const uintptr_t[])SLOT_ARRAY);                                         \
    }                                                                                              \
    static unsigned internal_##name(SLOT_PARAMETERS)                                               \
    {                                                                                              \
        return note(#name, (const uintptr_t[])SLOT_ARRAY);                                         \
    }
#define NOTED_LAUNCH NOTED
#define NOTED_ALLOC NOTED
#define NOTED_FREE NOTED
#define NOTED_COPY NOTED
#define NOTED_SET NOTED
#define NOTED_SYNC NOTED
#define NOTED_STREAM NOTED
#define NOTED_EVENT NOTED
#define NOTED_GRAPH NOTED
#define NOTED_MEMORY NOTED
#define NOTED_MODULE NOTED
#define NOTED_CONTEXT NOTED
#define NOTED_CONTEXT_END NOTED
#define NOTED_FOLLOWED NOTED
#define NOTED_IPC NOTED
#define NOTED_PEER NOTED
#define NOTED_CONTROL NOTED
#define NOTED_FOLLOWED NOTED
#define NOTED_LOOKUP(name)
#define HOOK(name, key, since, kind, ...) NOTED_##kind(name)
#include "../../../preload/hooks/cuda.def"
#undef HOOK
NOTED(cuMemAlloc_v3)
NOTED(cuCtxGetFlags) /* one that has no line */

/* What whoever follows the memory asks. */
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return 0;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags);
CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status);
#define internal_cuGetProcAddress cuGetProcAddress
#define internal_cuGetProcAddress_v2 cuGetProcAddress_v2

static const struct entry {
    const char *name, *key;
    int since;
    void *exported, *internal;
} entries[] = {
#define HOOK(name, key, since, ...) {#name, #key, since, (void *)name, (void *)internal_##name},
#include "../../../preload/hooks/cuda.def"
#undef HOOK
    {"cuMemAlloc_v3", "cuMemAlloc", 14000, (void *)cuMemAlloc_v3, (void *)internal_cuMemAlloc_v3},
    {"cuCtxGetFlags", "cuCtxGetFlags", 2000, (void *)cuCtxGetFlags, (void *)internal_cuCtxGetFlags},
};

/* What the driver looks up is for itself. */
unsigned stub_inside(void);
unsigned stub_inside(void)
{
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuCtxSynchronize") == (void *)cuCtxSynchronize;
}

static int is_per_thread(const char *name)
{
    return strstr(name, "_ptsz") || strstr(name, "_ptds");
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    const struct entry *best = NULL;
    const char *internal = getenv("STUB_INTERNAL");

    if (!symbol || !pfn)
        return 1; /* CUDA_ERROR_INVALID_VALUE */
    *pfn = NULL;
    for (int thread = flags & 2 ? 1 : 0; thread >= 0 && !best; thread--)
        for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
            if (strcmp(entries[i].key, symbol) == 0 && is_per_thread(entries[i].name) == thread &&
                entries[i].since <= version && (!best || best->since < entries[i].since))
                best = &entries[i];
    if (status)
        *status = best ? 0 : 1;
    if (!best)
        return 500; /* CUDA_ERROR_NOT_FOUND */
    *pfn = internal && *internal == '1' ? best->internal : best->exported;
    return 0;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, pfn, version, flags, NULL);
}
