/*
 * What nvcc's code tells at the program's start: its fat binaries, and which host function or
 * variable stands for which kernel or device variable. A fat binary is only given to the driver
 * when something in it is first used (lazy loading, the default of CUDA 12 and later).
 */
#include "tests/sim/cudart/rt.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What the compiler's handle points to; freed by nobody, like the program's own image. */
struct binary {
    void *image;
    CUlibrary library; /* under lock; NULL: not loaded */
};

/* A host address and what it stands for. A kernel whose handle the program has stands for itself,
   in an entry of its own. */
struct entry {
    const void *host;
    const char *name;
    struct binary *binary;
    CUkernel kernel;
    void **managed; /* where the program looks for the address of a __managed__ variable */
    size_t size;
    struct entry *next;
};
#define BUCKETS 1024
static struct entry *kernels[BUCKETS], *variables[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t bucket(const void *host)
{
    return ((uintptr_t)host >> 4) % BUCKETS;
}

static struct entry *find(struct entry **table, const void *host)
{
    struct entry *e = table[bucket(host)];
    while (e && e->host != host)
        e = e->next;
    return e;
}

static struct entry *add_locked(struct entry **table, const void *host, const char *name,
                                void **handle)
{
    struct entry *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->host = host;
    e->name = name;
    e->binary = (struct binary *)handle;
    e->next = table[bucket(host)];
    table[bucket(host)] = e;
    return e;
}

static struct entry *add(struct entry **table, const void *host, const char *name, void **handle)
{
    pthread_mutex_lock(&lock);
    struct entry *e = add_locked(table, host, name, handle);
    pthread_mutex_unlock(&lock);
    return e;
}

/* With the lock held, as the next three. */
static CUresult load(struct binary *b)
{
    if (b->library)
        return CUDA_SUCCESS;
    return rt_drv[0].cuLibraryLoadData(&b->library, b->image, NULL, NULL, 0, NULL, NULL, 0);
}

static void know(CUkernel kernel, const char *name)
{
    struct entry *e = find(kernels, kernel);
    if (!e)
        e = add_locked(kernels, kernel, name, NULL);
    if (e) {
        e->name = name; /* a handle may come again for another kernel, after an unload */
        e->kernel = kernel;
    }
}

static CUresult resolve(struct entry *e)
{
    if (e->kernel)
        return CUDA_SUCCESS;
    CUresult r = load(e->binary);
    if (!r)
        r = rt_drv[0].cuLibraryGetKernel(&e->kernel, e->binary->library, e->name);
    if (!r)
        know(e->kernel, e->name);
    return r;
}

static CUresult place(struct entry *e, CUdeviceptr *address, size_t *size)
{
    CUresult r = load(e->binary);
    if (r)
        return r;
    if (e->managed && !rt_drv[0].cuLibraryGetManaged(address, size, e->binary->library, e->name))
        return CUDA_SUCCESS;
    return rt_drv[0].cuLibraryGetGlobal(address, size, e->binary->library, e->name);
}

CUkernel rt_kernel(const void *function)
{
    pthread_mutex_lock(&lock);
    struct entry *e = find(kernels, function);
    CUkernel k = e && !resolve(e) ? e->kernel : NULL;
    pthread_mutex_unlock(&lock);
    return k;
}

void rt_kernel_known(CUkernel kernel, const char *name)
{
    char *copy = strdup(name);
    pthread_mutex_lock(&lock);
    know(kernel, copy);
    pthread_mutex_unlock(&lock);
}

const char *rt_kernel_name(const void *function)
{
    pthread_mutex_lock(&lock);
    struct entry *e = find(kernels, function);
    const char *name = e ? e->name : NULL;
    pthread_mutex_unlock(&lock);
    return name;
}

CUresult rt_symbol(const void *symbol, CUdeviceptr *address, size_t *size)
{
    pthread_mutex_lock(&lock);
    struct entry *e = find(variables, symbol);
    CUresult r = (CUresult)cudaErrorInvalidSymbol;
    if (e && place(e, address, size) == CUDA_SUCCESS)
        r = CUDA_SUCCESS;
    pthread_mutex_unlock(&lock);
    return r;
}

/* ---- the compiler's own entry points (crt/host_runtime.h) */
RT_API void **__cudaRegisterFatBinary(void *image)
{
    struct binary *b = calloc(1, sizeof *b);
    if (b)
        b->image = image;
    return (void **)b;
}

RT_API void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

/* Runs in atexit: the library is left to the process's end, when the driver may be gone already. */
RT_API void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

RT_API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                                   int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
                                   int *warp)
{
    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    add(kernels, host, name, handle);
}

RT_API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
                              size_t size, int constant, int global)
{
    (void)device, (void)ext, (void)constant, (void)global;
    struct entry *e = add(variables, host, name, handle);
    if (e)
        e->size = size;
}

RT_API void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size)
{
    (void)handle, (void)name, (void)host, (void)size;
}

RT_API void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                                     int ext, size_t size, int constant, int global)
{
    (void)device, (void)ext, (void)constant, (void)global;
    struct entry *e = add(variables, host, name, handle);
    if (e) {
        e->size = size;
        e->managed = host;
    }
}

/* Called before the program first reads a __managed__ variable. */
RT_API char __cudaInitModule(void **handle)
{
    if (rt_driver_init())
        return 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct entry *e = variables[i]; e; e = e->next) {
            CUdeviceptr p = 0;
            size_t n = 0;
            if (e->binary == (struct binary *)handle && e->managed && !place(e, &p, &n))
                *e->managed = (void *)(uintptr_t)p;
        }
    pthread_mutex_unlock(&lock);
    return 1;
}

RT_API void __cudaRegisterUnifiedTable(void **handle, void *table)
{
    (void)handle, (void)table;
}
