/* A runtime that does nothing: libcudart.so.13, its names with a version as the real one's. Every
 * function of preload/hooks/cudart.def notes that it was called. */
#include <dlfcn.h>
#include <string.h>
#include "cuda_stub.h"

static _Thread_local struct stub_seen seen;

struct stub_seen *stub_runtime_seen(void);
struct stub_seen *stub_runtime_seen(void)
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

#define HOOK(name, ...)                                                                            \
    slot_fn name;                                                                                  \
    unsigned name(SLOT_PARAMETERS)                                                                 \
    {                                                                                              \
        return note(#name, (const uintptr_t[])SLOT_ARRAY);                                         \
    }
#define WIDE HOOK
#include "../../../preload/hooks/cudart.def"
