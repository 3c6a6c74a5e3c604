/* Memory of devices and pinned memory of the host: all of it the host's own, and an address means
   the same to both, so that a host function can stand for a kernel. */
#include "sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* sorted by start, under sim_lock */
static struct sim_block *blocks;
static size_t count, room;
static uint64_t ids;

/* the first that starts behind an address */
static size_t behind(const void *address)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (blocks[mid].start > (const char *)address)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

const struct sim_block *sim_block_of(const void *address)
{
    size_t i = behind(address);

    if (!i || (const char *)address >= blocks[i - 1].start + blocks[i - 1].size)
        return NULL;
    return &blocks[i - 1];
}

CUresult sim_block_add(const struct sim_block *b)
{
    if (count == room) {
        size_t more = room ? room * 2 : 256;
        struct sim_block *grown = realloc(blocks, more * sizeof *blocks);

        if (!grown)
            return CUDA_ERROR_OUT_OF_MEMORY;
        blocks = grown;
        room = more;
    }
    size_t i = behind(b->start);
    memmove(blocks + i + 1, blocks + i, (count - i) * sizeof *blocks);
    blocks[i] = *b;
    blocks[i].id = ++ids;
    count++;
    return CUDA_SUCCESS;
}

bool sim_block_remove(const void *start, struct sim_block *out)
{
    size_t i = behind(start);

    if (!i || blocks[i - 1].start != start)
        return false;
    *out = blocks[i - 1];
    memmove(blocks + i - 1, blocks + i, (count - i) * sizeof *blocks);
    count--;
    return true;
}

/* Small ones by malloc, whose tools see an overrun; others as pages, which IPC can share. */
CUresult sim_alloc(size_t size, int kind, int device, CUmemoryPool pool, unsigned flags, void **out)
{
    struct sim_block b = {.size = size,
                          .kind = kind,
                          .device = device,
                          .context = sim_current(),
                          .pool = pool,
                          .flags = flags};
    void *start = NULL;
    size_t total = 0;

    if (!size)
        return CUDA_ERROR_INVALID_VALUE;
    if (device >= 0) {
        (void)sim_cuDeviceTotalMem_v2(&total, device);
        if (gtsim_memory_used(device) + size > total)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (size >= 4096) {
        start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        b.mapped = true;
    } else if (posix_memalign(&start, 512, size)) {
        start = NULL;
    }
    if (!start || start == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b.start = start;
    pthread_mutex_lock(&sim_lock);
    CUresult r = sim_block_add(&b);
    if (!r) {
        sim_memory_add(device, (int64_t)size);
        sim_pool_count(pool, (int64_t)size);
    }
    pthread_mutex_unlock(&sim_lock);
    *out = start;
    return r;
}

CUresult sim_free(void *start, bool host)
{
    struct sim_block b;

    pthread_mutex_lock(&sim_lock);
    const struct sim_block *found = sim_block_of(start);
    bool right = found && found->start == start && (found->kind == GTSIM_PINNED) == host &&
                 !found->module && sim_block_remove(start, &b);
    if (right) {
        sim_memory_add(b.device, -(int64_t)b.size);
        sim_pool_count(b.pool, -(int64_t)b.size);
    }
    pthread_mutex_unlock(&sim_lock);
    if (!right)
        return CUDA_ERROR_INVALID_VALUE;
    if (b.mapped)
        munmap(b.start, b.size);
    else
        free(b.start);
    return CUDA_SUCCESS;
}

void sim_free_all(CUcontext c)
{
    for (;;) {
        void *start = NULL;
        bool host = false;

        pthread_mutex_lock(&sim_lock);
        for (size_t i = 0; i < count && !start; i++)
            if (blocks[i].context == c && !blocks[i].pool && !blocks[i].module) {
                start = blocks[i].start;
                host = blocks[i].kind == GTSIM_PINNED;
            }
        pthread_mutex_unlock(&sim_lock);
        if (!start || sim_free(start, host))
            return;
    }
}

void sim_leaks(void)
{
    size_t n = 0, bytes = 0;

    pthread_mutex_lock(&sim_lock);
    for (size_t i = 0; i < count; i++) {
        if (!blocks[i].module) {
            n++;
            bytes += blocks[i].size;
        }
    }
    pthread_mutex_unlock(&sim_lock);
    fprintf(stderr, "gtsim: leaks: %zu allocations, %zu bytes, %d streams, %d events, %d graphs\n",
            n, bytes, sim_streams(), sim_live(SIM_EVENT), sim_live(SIM_GRAPH));
}

CUresult sim_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    SIM_CONTEXT_OR_RETURN(c);
    if (!dptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = sim_capture_unsafe();
    return r ? r : sim_alloc(bytesize, GTSIM_DEVICE, c->device, NULL, 0, (void **)dptr);
}

/* waits for the device, as the real one does */
CUresult sim_cuMemFree_v2(CUdeviceptr dptr)
{
    SIM_CONTEXT_OR_RETURN(c);
    if (!dptr)
        return CUDA_SUCCESS;
    CUresult r = sim_capture_unsafe();
    if (r)
        return r;
    r = sim_free((void *)dptr, false);
    if (!r)
        sim_wait_until(c->all_ns);
    return r;
}

CUresult sim_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                                size_t Height, unsigned int ElementSizeBytes)
{
    if (!dptr || !pPitch || !WidthInBytes || !Height ||
        (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
        return CUDA_ERROR_INVALID_VALUE;
    *pPitch = (WidthInBytes + 511) & ~(size_t)511;
    return sim_cuMemAlloc_v2(dptr, *pPitch * Height);
}

CUresult sim_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    SIM_CONTEXT_OR_RETURN(c);
    if (!dptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = sim_capture_unsafe();
    return r ? r : sim_alloc(bytesize, GTSIM_MANAGED, c->device, NULL, flags, (void **)dptr);
}

CUresult sim_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    SIM_CONTEXT_OR_RETURN(c);
    (void)c;
    if (!pp || Flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = sim_capture_unsafe();
    return r ? r : sim_alloc(bytesize, GTSIM_PINNED, -1, NULL, Flags, pp);
}

CUresult sim_cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    return sim_cuMemHostAlloc(pp, bytesize, 0);
}

CUresult sim_cuMemFreeHost(void *p)
{
    SIM_CONTEXT_OR_RETURN(c);
    (void)c;
    return p ? sim_free(p, true) : CUDA_SUCCESS;
}

CUresult sim_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    struct sim_block b = {
        .start = p, .size = bytesize, .kind = GTSIM_PINNED, .device = -1, .flags = Flags};

    SIM_CONTEXT_OR_RETURN(c);
    if (!p || !bytesize)
        return CUDA_ERROR_INVALID_VALUE;
    b.context = c;
    b.module = true; /* not ours to free */
    pthread_mutex_lock(&sim_lock);
    CUresult r = sim_block_of(p) ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : sim_block_add(&b);
    pthread_mutex_unlock(&sim_lock);
    return r;
}

CUresult sim_cuMemHostUnregister(void *p)
{
    struct sim_block b;

    pthread_mutex_lock(&sim_lock);
    const struct sim_block *found = sim_block_of(p);
    bool right = found && found->start == p && found->kind == GTSIM_PINNED && found->module &&
                 sim_block_remove(p, &b);
    pthread_mutex_unlock(&sim_lock);
    return right ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

CUresult sim_cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    if (!pdptr || Flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sim_lock);
    const struct sim_block *b = sim_block_of(p);
    bool right = b && b->kind == GTSIM_PINNED;
    pthread_mutex_unlock(&sim_lock);
    *pdptr = right ? (CUdeviceptr)p : 0;
    return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    if (!pFlags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sim_lock);
    const struct sim_block *b = sim_block_of(p);
    bool right = b && b->kind == GTSIM_PINNED;
    *pFlags = right ? b->flags : 0;
    pthread_mutex_unlock(&sim_lock);
    return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    pthread_mutex_lock(&sim_lock);
    const struct sim_block *b = sim_block_of((void *)dptr);
    if (b && pbase)
        *pbase = (CUdeviceptr)b->start;
    if (b && psize)
        *psize = b->size;
    pthread_mutex_unlock(&sim_lock);
    return b ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* managed memory is wherever it is wanted */
CUresult sim_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count_, CUmemLocation location,
                                   unsigned int flags, CUstream hStream)
{
    struct sim_work w = {.type = CU_GRAPH_NODE_TYPE_EMPTY};

    (void)location;
    (void)count_;
    SIM_STREAM_OR_RETURN(s, hStream);
    if (!devPtr || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_submit(s, &w, false);
}

CUresult sim_cuMemAdvise_v2(CUdeviceptr devPtr, size_t count_, CUmem_advise advice,
                            CUmemLocation location)
{
    (void)advice;
    (void)location;
    return devPtr && count_ ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
                                    unsigned int flags)
{
    (void)length;
    (void)flags;
    SIM_STREAM_OR_RETURN(s, hStream);
    (void)s;
    return dptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
