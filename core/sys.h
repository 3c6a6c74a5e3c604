/* System calls made directly: what runs inside a hook must not reach a wrapper that another preload
 * interposes (mmap, open, …), and must not be a cancellation point. All return -errno on failure
 * and leave errno alone. */
#ifndef GT_SYS_H
#define GT_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline long gt_sys(long number, long a, long b, long c, long d, long e, long f)
{
    int saved = errno;
    long r = syscall(number, a, b, c, d, e, f);
    if (r == -1)
        r = -errno;
    errno = saved;
    return r;
}

static inline int gt_sys_open(const char *path, int flags, int mode)
{
    return (int)gt_sys(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, mode, 0, 0);
}

static inline long gt_sys_read(int fd, void *p, size_t n)
{
    return gt_sys(SYS_read, fd, (long)p, (long)n, 0, 0, 0);
}

static inline long gt_sys_write(int fd, const void *p, size_t n)
{
    return gt_sys(SYS_write, fd, (long)p, (long)n, 0, 0, 0);
}

static inline void gt_sys_close(int fd)
{
    gt_sys(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* Returns NULL on failure. */
static inline void *gt_sys_mmap(size_t bytes, int flags, int fd)
{
    long r = gt_sys(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    return r < 0 && r > -4096 ? NULL : (void *)r;
}

static inline void gt_sys_munmap(void *p, size_t bytes)
{
    gt_sys(SYS_munmap, (long)p, (long)bytes, 0, 0, 0, 0);
}

/* Maps `bytes` zeroed bytes at the first call, for the life of the process; only pages that are
 * used take memory. Any thread: who comes second gets the first one's. NULL on failure. For tables
 * that few programs need: static, they would count as memory of every program under `ulimit -v`. */
static inline void *gt_sys_map_once(_Atomic(void *) *slot, size_t bytes)
{
    /* acquire pairs with the exchange below: zeroed pages */
    void *there = atomic_load_explicit(slot, memory_order_acquire), *mine;
    if (there)
        return there;
    mine = gt_sys_mmap(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (mine && !atomic_compare_exchange_strong_explicit(slot, &there, mine, memory_order_acq_rel,
                                                         memory_order_acquire)) {
        gt_sys_munmap(mine, bytes);
        return there;
    }
    return mine;
}

/* Copies from memory that may not be there: 0, or -errno where a plain read would be a signal. */
static inline int gt_sys_copy(void *to, const void *from, size_t bytes)
{
    const struct {
        const void *base;
        size_t bytes;
    } local = {to, bytes}, remote = {from, bytes};
    long pid = gt_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
    long r = gt_sys(SYS_process_vm_readv, pid, (long)&local, 1, (long)&remote, 1, 0);
    if (r < 0)
        return (int)r;
    return r == (long)bytes ? 0 : -EFAULT;
}

/* Reads a small file whole; returns its length (buffer NUL-terminated), 0 if it can't be read. */
static inline size_t gt_sys_slurp(const char *path, char *buf, size_t bytes)
{
    int fd = gt_sys_open(path, O_RDONLY, 0);
    size_t n = 0;
    buf[0] = 0;
    if (fd < 0)
        return 0;
    while (n + 1 < bytes) {
        long r = gt_sys_read(fd, buf + n, bytes - 1 - n);
        if (r == -EINTR)
            continue;
        if (r <= 0)
            break;
        n += (size_t)r;
    }
    gt_sys_close(fd);
    buf[n] = 0;
    return n;
}

#endif
