/* Virtual memory management: a reserved range of addresses, memory that exists without one, and the
   mapping of the one on the other. The memory is a memfd, so its handle can go to another process.
   And memory handles between processes (IPC). */
#include "sim.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define GRANULARITY ((size_t)2 << 20)
#define HANDLES 4096

/* a CUmemGenericAllocationHandle is the place in this table, from 1; under sim_lock */
struct handle {
    int fd;
    int users; /* the handle itself and each mapping */
    size_t size;
    CUmemAllocationProp prop;
};
struct mapping {
    char *start;
    size_t size;
    int handle;
    struct mapping *next;
};
static struct handle handles[HANDLES];
static struct mapping *mappings;

static struct handle *find(CUmemGenericAllocationHandle h)
{
    return h && h < HANDLES && handles[h].users ? &handles[h] : NULL;
}

static void let_go(struct handle *h)
{
    if (--h->users)
        return;
    close(h->fd);
    sim_memory_add(h->prop.location.id, -(int64_t)h->size);
}

CUresult sim_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                           CUmemAllocationGranularity_flags option)
{
    (void)option;
    if (!granularity || !prop)
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                 unsigned long long flags)
{
    (void)addr; /* a wish */
    if (!ptr || !size || size % GRANULARITY || flags)
        return CUDA_ERROR_INVALID_VALUE;
    alignment = alignment < GRANULARITY ? GRANULARITY : alignment;
    char *room =
        mmap(NULL, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    char *start = (char *)(((uintptr_t)room + alignment - 1) & ~(alignment - 1));
    if (start > room)
        munmap(room, (size_t)(start - room));
    if (start < room + alignment)
        munmap(start + size, (size_t)(room + alignment - start));
    *ptr = (CUdeviceptr)start;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    if (!ptr || !size || size % GRANULARITY)
        return CUDA_ERROR_INVALID_VALUE;
    return munmap((void *)ptr, size) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult enter(CUmemGenericAllocationHandle *out, int fd, size_t size,
                      const CUmemAllocationProp *prop)
{
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

    pthread_mutex_lock(&sim_lock);
    for (int i = 1; i < HANDLES; i++) {
        if (handles[i].users)
            continue;
        handles[i] = (struct handle){.fd = fd, .users = 1, .size = size, .prop = *prop};
        sim_memory_add(prop->location.id, (int64_t)size);
        *out = (CUmemGenericAllocationHandle)i;
        r = CUDA_SUCCESS;
        break;
    }
    pthread_mutex_unlock(&sim_lock);
    return r;
}

CUresult sim_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                         const CUmemAllocationProp *prop, unsigned long long flags)
{
    size_t total = 0;

    if (!handle || !prop || !size || size % GRANULARITY || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult r = sim_cuDeviceTotalMem_v2(&total, prop->location.id);
    if (r)
        return r;
    if (gtsim_memory_used(prop->location.id) + size > total)
        return CUDA_ERROR_OUT_OF_MEMORY;
    int fd = memfd_create("gtsim", MFD_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = ftruncate(fd, (off_t)size) ? CUDA_ERROR_OUT_OF_MEMORY : enter(handle, fd, size, prop);
    if (r)
        close(fd);
    return r;
}

CUresult sim_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    pthread_mutex_lock(&sim_lock);
    struct handle *h = find(handle);
    if (h)
        let_go(h);
    pthread_mutex_unlock(&sim_lock);
    return h ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    struct sim_block b = {.start = (char *)ptr, .size = size, .kind = GTSIM_DEVICE, .module = true};
    struct mapping *m = malloc(sizeof *m);

    pthread_mutex_lock(&sim_lock);
    struct handle *h = find(handle);
    if (m && ptr && h && !flags && size && offset + size <= h->size && size % GRANULARITY == 0 &&
        mmap((void *)ptr, size, PROT_NONE, MAP_SHARED | MAP_FIXED, h->fd, (off_t)offset) !=
            MAP_FAILED) {
        b.device = h->prop.location.id;
        b.context = sim_current();
        r = sim_block_add(&b);
        *m = (struct mapping){b.start, size, (int)handle, mappings};
        mappings = m;
        h->users++;
        m = NULL;
    }
    pthread_mutex_unlock(&sim_lock);
    free(m);
    return r;
}

CUresult sim_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    struct sim_block b;
    struct mapping *gone = NULL;

    pthread_mutex_lock(&sim_lock);
    for (struct mapping **p = &mappings; *p; p = &(*p)->next) {
        if ((*p)->start == (char *)ptr && (*p)->size == size) {
            gone = *p;
            *p = gone->next;
            break;
        }
    }
    if (gone) {
        (void)sim_block_remove((void *)ptr, &b);
        (void)mmap((void *)ptr, size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
        let_go(&handles[gone->handle]);
    }
    pthread_mutex_unlock(&sim_lock);
    free(gone);
    return gone ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    int protection = PROT_NONE;

    if (!ptr || !size || !desc)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            protection = PROT_READ | PROT_WRITE;
        else if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ && !protection)
            protection = PROT_READ;
    }
    return mprotect((void *)ptr, size, protection) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sim_cuMemExportToShareableHandle(void *shareableHandle,
                                          CUmemGenericAllocationHandle handle,
                                          CUmemAllocationHandleType handleType,
                                          unsigned long long flags)
{
    if (!shareableHandle || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sim_lock);
    struct handle *h = find(handle);
    int fd = h ? fcntl(h->fd, F_DUPFD_CLOEXEC, 0) : -1;
    pthread_mutex_unlock(&sim_lock);
    *(int *)shareableHandle = fd;
    return fd < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sim_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                            CUmemAllocationHandleType shHandleType)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = shHandleType,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    struct stat s;
    int fd = (int)(intptr_t)osHandle;

    if (!handle || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fstat(fd, &s))
        return CUDA_ERROR_INVALID_VALUE;
    fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? CUDA_ERROR_OUT_OF_MEMORY : enter(handle, fd, (size_t)s.st_size, &prop);
}

CUresult sim_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                    CUmemGenericAllocationHandle handle)
{
    if (!prop)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sim_lock);
    struct handle *h = find(handle);
    if (h)
        *prop = h->prop;
    pthread_mutex_unlock(&sim_lock);
    return h ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* An IPC handle names this process and a memfd that takes the block's place; a small block, which
   shares its page with others, can't have one. */
struct ipc {
    char magic[8];
    int pid, fd;
    size_t size;
};

CUresult sim_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct ipc i = {"gtsim", (int)getpid(), -1, 0};

    if (!pHandle)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sim_lock);
    const struct sim_block *b = sim_block_of((void *)dptr);
    struct sim_block block = b ? *b : (struct sim_block){0};
    pthread_mutex_unlock(&sim_lock);
    if (!b || block.start != (char *)dptr || block.kind != GTSIM_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!block.mapped)
        return CUDA_ERROR_NOT_SUPPORTED;
    i.size = block.size;
    i.fd = memfd_create("gtsim-ipc", MFD_CLOEXEC);
    if (i.fd < 0 || write(i.fd, block.start, i.size) != (ssize_t)i.size ||
        mmap(block.start, i.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, i.fd, 0) ==
            MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(pHandle, 0, sizeof *pHandle);
    memcpy(pHandle, &i, sizeof i);
    return CUDA_SUCCESS;
}

CUresult sim_cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    struct ipc i;
    char path[64];

    SIM_CONTEXT_OR_RETURN(c);
    memcpy(&i, &handle, sizeof i);
    if (!pdptr || Flags > CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || memcmp(i.magic, "gtsim", 6))
        return CUDA_ERROR_INVALID_VALUE;
    if (i.pid == (int)getpid()) /* not the process that has it */
        return CUDA_ERROR_INVALID_CONTEXT;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", i.pid, i.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    char *start = mmap(NULL, i.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (start == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sim_block b = {.start = start,
                          .size = i.size,
                          .kind = GTSIM_DEVICE,
                          .device = c->device,
                          .context = c,
                          .mapped = true,
                          .module = true}; /* another's: not freed, not counted */
    pthread_mutex_lock(&sim_lock);
    CUresult r = sim_block_add(&b);
    pthread_mutex_unlock(&sim_lock);
    *pdptr = (CUdeviceptr)start;
    return r;
}

CUresult sim_cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    struct sim_block b;

    pthread_mutex_lock(&sim_lock);
    const struct sim_block *found = sim_block_of((void *)dptr);
    bool right = found && found->start == (char *)dptr && found->mapped && found->module &&
                 sim_block_remove((void *)dptr, &b);
    pthread_mutex_unlock(&sim_lock);
    if (!right)
        return CUDA_ERROR_INVALID_VALUE;
    munmap(b.start, b.size);
    return CUDA_SUCCESS;
}
