/* Making, growing and finding session files. See session.h. */
#include "core/session.h"
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include "core/clock.h"
#include "core/ident.h"
#include "core/say.h"
#include "core/sys.h"
#include "core/text.h"
#include "core/thread.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define LEAST_BYTES (256u * 1024) /* below this a session holds no tree worth having */
#define STEP_BYTES (64u * 1024)   /* how much of the file gets memory at a time */
#define KEPT_PART 16              /* of the memory, for threads that have no slot yet */
#define THREAD_BYTES (48u * 1024) /* what a slot takes, file and private together */
#define MOST_BYTES ((uint64_t)UINT32_MAX * GT_ALIGN) /* what a gt_ref can name */

struct gt_session gt_session = {.reopen_fd = -1};

/* ---- where ---- */

/* tmpfs, ext2-4 and xfs give memory or an error when a shared mapping is populated; others were not
 * tried, so there the session lives in private memory. */
static int filesystem_known(const struct statfs *s)
{
    return s->f_type == 0x01021994 || s->f_type == 0xef53 || s->f_type == 0x58465342;
}

/* What may be used in `dir`: at most 1/8 of the free space. 0: not there. */
static uint64_t room_in(const char *dir)
{
    struct statfs s;
    if (gt_sys(SYS_statfs, (long)dir, (long)&s, 0, 0, 0, 0) < 0 || !filesystem_known(&s))
        return 0;
    return (uint64_t)s.f_bavail * (uint64_t)s.f_bsize / 8;
}

static uint64_t soft_limit(int resource)
{
    struct rlimit64 r;
    if (gt_sys(SYS_prlimit64, 0, resource, 0, (long)&r, 0, 0) < 0 || r.rlim_cur == RLIM64_INFINITY)
        return UINT64_MAX;
    return r.rlim_cur;
}

/* Under `ulimit -v` the program needs the rest of its address space more than we do. */
static uint64_t address_space_left(void)
{
    uint64_t limit = soft_limit(RLIMIT_AS), data = soft_limit(RLIMIT_DATA), used = 0;
    if (data < limit)
        limit = data; /* counts our private pages, not the file's; treated alike */
    char buf[128];
    if (limit == UINT64_MAX)
        return UINT64_MAX;
    gt_sys_slurp("/proc/self/statm", buf, sizeof buf);
    for (const char *s = buf; *s >= '0' && *s <= '9'; s++)
        used = used * 10 + (uint64_t)(*s - '0');
    used *= getauxval(AT_PAGESZ); /* GT_PAGE is the largest there may be */
    return used < limit ? (limit - used) / 8 : 0;
}

static void name_prefix(const char *dir, const struct gt_ident *id, struct gt_text *t)
{
    gt_text_add(t, dir);
    gt_text_add(t, "/gputally-");
    gt_text_add_u64(t, id->uid);
    gt_text_add(t, "-");
    gt_text_add_n(t, id->boot_id, strnlen(id->boot_id, 8));
    gt_text_add(t, "-");
    gt_text_add_u64(t, id->pid_ns);
    gt_text_add(t, "-");
    gt_text_add_u64(t, id->pid);
    gt_text_add(t, "-");
    gt_text_add_u64(t, id->start_time);
    gt_text_add(t, "-");
}

void gt_session_path(uint32_t sequence, char *path, size_t bytes)
{
    struct gt_text t;
    gt_text_init(&t, path, bytes);
    gt_text_add(&t, gt_session.prefix);
    gt_text_add_u64(&t, sequence);
    gt_text_add(&t, ".session");
}

/* The folders to try, best first. Returns NULL after the last one. */
static const char *folder(int i)
{
    const char *candidates[] = {gt_config.run_dir, gt_config.session_dir, "/dev/shm",
                                gt_config.tmpdir, "/tmp"};
    for (unsigned k = 0; k < sizeof candidates / sizeof *candidates; k++)
        if (*candidates[k] && i-- == 0)
            return candidates[k];
    return NULL;
}

/* A file that another user put under our name into /tmp must not decide what we write. */
static int is_ours(int fd, uint32_t uid)
{
    struct stat s;
    return gt_sys(SYS_newfstatat, fd, (long)"", (long)&s, AT_EMPTY_PATH, 0, 0) == 0 &&
           s.st_uid == uid && S_ISREG(s.st_mode);
}

static void this_image(uint64_t image[2])
{
    const void *random = (const void *)getauxval(AT_RANDOM);
    image[0] = image[1] = 0;
    if (random)
        memcpy(image, random, 16);
}

static int is_this_image(int fd)
{
    uint64_t mine[2], its[2];
    this_image(mine);
    return mine[0] &&
           gt_sys(SYS_pread64, fd, (long)its, sizeof its, offsetof(struct gt_header, image), 0,
                  0) == sizeof its &&
           its[0] == mine[0] && its[1] == mine[1];
}

int gt_session_find_older(void)
{
    struct gt_ident id;
    const char *dir;
    gt_ident_read(&id);
    for (int i = 0; (dir = folder(i)); i++) {
        struct gt_text t;
        gt_text_init(&t, gt_session.prefix, sizeof gt_session.prefix);
        name_prefix(dir, &id, &t);
        for (uint32_t n = 0; !t.cut; n++) {
            char path[sizeof gt_session.path];
            uint32_t state = GT_STATE_EXEC, was = 0;
            long at = offsetof(struct gt_header, state);
            gt_session_path(n, path, sizeof path);
            int fd = gt_sys_open(path, O_RDWR | O_NOFOLLOW, 0);
            if (fd < 0)
                break;
            if (!is_ours(fd, id.uid)) { /* planted: the next name will do */
                gt_sys_close(fd);
                continue;
            }
            if (is_this_image(fd)) { /* a second copy of us, in a namespace of dlmopen */
                gt_sys_close(fd);
                return -EALREADY;
            }
            if (gt_sys(SYS_pread64, fd, (long)&was, sizeof was, at, 0, 0) == sizeof was &&
                was == GT_STATE_RUNNING)
                gt_sys(SYS_pwrite64, fd, (long)&state, sizeof state, at, 0, 0);
            gt_sys_close(fd);
            gt_session.sequence = n + 1;
        }
        if (gt_session.sequence)
            return 0; /* an exec keeps the environment, so all lie in one folder */
    }
    gt_session.prefix[0] = 0;
    return 0;
}

/* ---- memory ---- */

static int populate(char *from, char *to)
{
    uint64_t mask = GT_PAGE - 1;
    char *page = (char *)((uint64_t)from & ~mask);
    long r = gt_sys(SYS_madvise, (long)page, to - page, MADV_POPULATE_WRITE, 0, 0, 0);
    if (r == -EINVAL && gt_session.path[0]) { /* before Linux 5.14 */
        int fd = gt_sys_open(gt_session.path, O_RDWR | O_NOFOLLOW, 0);
        if (fd < 0)
            return fd;
        r = gt_sys(SYS_fallocate, fd, 0, page - gt_session.base, to - page, 0, 0);
        gt_sys_close(fd);
    } else if (r == -EINVAL) {
        r = 0; /* private memory: the kernel gives it at the first touch */
    }
    return (int)r;
}

/* Any thread, more than one at once. */
static void tell_full(void)
{
    __atomic_store_n(&gt_session.header->memory_full, 1, __ATOMIC_RELAXED);
}

/* What the caller must leave: the names that the first threads bring may use up all the memory, and
 * those that come later are still to be counted. Nothing where it would not do for one of them. */
static int64_t kept(void)
{
    uint64_t part = gt_session.size_bytes / KEPT_PART;
    return gt_self->slot && part >= THREAD_BYTES ? (int64_t)part : 0;
}

static int take(int64_t bytes)
{
    int64_t left = atomic_load_explicit(&gt_session.budget_bytes, memory_order_relaxed);
    do {
        if (left - bytes < kept()) {
            tell_full();
            return 0;
        }
        /* never takes what it may not have, not even for a moment: a new thread would miss it */
    } while (!atomic_compare_exchange_weak_explicit(&gt_session.budget_bytes, &left, left - bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return 1;
}

/* Gives [0, end) memory. Two threads may populate the same pages: harmless. */
static int grow(uint64_t end)
{
    uint64_t ready = atomic_load_explicit(&gt_session.ready_bytes, memory_order_acquire);
    while (end > ready) {
        uint64_t to = (end + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
        if (to > gt_session.size_bytes)
            to = gt_session.size_bytes;
        if (end > to || populate(gt_session.base + ready, gt_session.base + to) < 0) {
            tell_full();
            return -ENOMEM;
        }
        /* release pairs with the acquire above: whoever sees the new end may write there */
        if (atomic_compare_exchange_weak_explicit(&gt_session.ready_bytes, &ready, to,
                                                  memory_order_release, memory_order_acquire))
            return 0;
    }
    return 0;
}

void *gt_session_alloc(size_t bytes, gt_ref *ref)
{
    struct gt_header *h = gt_session.header;
    uint64_t align = bytes >= 64 ? 64 : GT_ALIGN;
    bytes = (bytes + align - 1) / align * align;
    /* 64-byte records may start anywhere that is 8-aligned: ask for room to move up */
    uint64_t ask = bytes + (align - GT_ALIGN);
    if (!take((int64_t)ask))
        return NULL;
    uint64_t at = atomic_load_explicit(&h->used_bytes, memory_order_relaxed);
    do {
        if (at + ask + (uint64_t)kept() > gt_session.size_bytes) {
            tell_full();
            atomic_fetch_add_explicit(&gt_session.budget_bytes, (int64_t)ask, memory_order_relaxed);
            return NULL;
        }
    } while (!atomic_compare_exchange_weak_explicit(&h->used_bytes, &at, at + ask,
                                                    memory_order_relaxed, memory_order_relaxed));
    if (grow(at + ask) < 0)
        return NULL;
    at = (at + align - 1) / align * align;
    *ref = (gt_ref)(at / GT_ALIGN);
    return gt_session.base + at;
}

/* Each block begins with this, so that the child of a fork can give the parent's back. */
struct block {
    struct block *next;
    size_t bytes;
    char rest[48];
};
_Static_assert(sizeof(struct block) == 64, "what follows stays aligned to cache lines");
static _Atomic(struct block *) blocks;

void *gt_private_forget(void)
{
    return atomic_exchange(&blocks, NULL);
}

void gt_private_free(void *list, const void *but)
{
    for (struct block *b = list, *next; b; b = next) {
        next = b->next;
        if (b + 1 != but)
            gt_sys_munmap(b, b->bytes);
    }
}

void *gt_private_alloc(size_t bytes)
{
    struct block *b;
    bytes += sizeof *b;
    bytes = (bytes + GT_PAGE - 1) / GT_PAGE * GT_PAGE;
    if (!take((int64_t)bytes))
        return NULL;
    b = gt_sys_mmap(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!b) {
        tell_full();
        return NULL;
    }
    b->bytes = bytes;
    b->next = atomic_load_explicit(&blocks, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&blocks, &b->next, b, memory_order_release,
                                                  memory_order_relaxed))
        ;
    return b + 1;
}

void *gt_private_lasting(size_t bytes)
{
    void *p;
    bytes = (bytes + GT_PAGE - 1) / GT_PAGE * GT_PAGE;
    if (!take((int64_t)bytes))
        return NULL;
    p = gt_sys_mmap(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!p)
        tell_full();
    return p;
}

int gt_session_roomy(size_t bytes)
{
    uint64_t used = atomic_load_explicit(&gt_session.header->used_bytes, memory_order_relaxed);
    int64_t left = atomic_load_explicit(&gt_session.budget_bytes, memory_order_relaxed);
    return left - (int64_t)bytes > (int64_t)(gt_config.memory_bytes / 2) &&
           used + bytes < gt_session.size_bytes / 2;
}

void *gt_session_alloc_roomy(size_t bytes, gt_ref *ref)
{
    return gt_session_roomy(bytes) ? gt_session_alloc(bytes, ref) : NULL;
}

/* ---- opening ---- */

/* Tries to make the file in `dir`. Returns 0, or -errno with nothing left behind. */
static int open_in(const char *dir, const struct gt_ident *id)
{
    struct gt_text t;
    uint64_t size = gt_config.memory_bytes, room = room_in(dir);
    int fd;
    if (size > room)
        size = room;
    if (size > soft_limit(RLIMIT_FSIZE))
        size = soft_limit(RLIMIT_FSIZE); /* past it ftruncate would kill the host by SIGXFSZ */
    if (size > address_space_left())
        size = address_space_left();
    size &= ~(uint64_t)(GT_PAGE - 1);
    if (size < LEAST_BYTES)
        return -ENOSPC;
    gt_text_init(&t, gt_session.prefix, sizeof gt_session.prefix);
    name_prefix(dir, id, &t);
    if (t.cut)
        return -ENAMETOOLONG;
    for (;;) {
        gt_session_path(gt_session.sequence, gt_session.path, sizeof gt_session.path);
        fd = gt_sys_open(gt_session.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (fd != -EEXIST)
            break;
        gt_session.sequence++;
    }
    if (fd < 0)
        return fd;
    int r = (int)gt_sys(SYS_ftruncate, fd, (long)size, 0, 0, 0, 0);
    char *base = r < 0 ? NULL : gt_sys_mmap(size, MAP_SHARED, fd);
    gt_sys_close(fd); /* at once: programs do closefrom() */
    gt_session.base = base;
    gt_session.size_bytes = size;
    if (base && populate(base, base + GT_HEADER_BYTES) == 0)
        return 0;
    if (base)
        gt_sys_munmap(base, size);
    gt_session.base = NULL;
    gt_sys(SYS_unlinkat, AT_FDCWD, (long)gt_session.path, 0, 0, 0, 0);
    return base ? -ENOSPC : r < 0 ? r : -ENOMEM;
}

static int open_private(void)
{
    uint64_t size = gt_config.memory_bytes, left = address_space_left();
    if (size > left)
        size = left & ~(uint64_t)(GT_PAGE - 1);
    gt_session.path[0] = 0;
    if (size < LEAST_BYTES)
        return -ENOMEM;
    gt_session.base = gt_sys_mmap(size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    gt_session.size_bytes = size;
    return gt_session.base ? 0 : -ENOMEM;
}

static gt_ref put(const char *s, size_t n)
{
    gt_ref ref = 0;
    struct gt_str *p = n ? gt_session_alloc(sizeof *p + n + 1, &ref) : NULL;
    if (!p)
        return 0;
    p->len = (uint32_t)n;
    memcpy(p->text, s, n);
    return ref;
}

/* Under `run`, outputs are meant from where that was started, whatever folder a child stands in. */
static size_t run_base(char *buf, size_t bytes)
{
    static char link[4200];
    struct gt_text t;
    if (!*gt_config.run_dir)
        return 0;
    gt_text_init(&t, link, sizeof link);
    gt_text_add(&t, gt_config.run_dir);
    gt_text_add(&t, "/" GT_RUN_BASE);
    long n = gt_sys(SYS_readlinkat, AT_FDCWD, (long)link, (long)buf, (long)bytes, 0, 0);
    return n > 0 && (size_t)n < bytes ? (size_t)n : 0;
}

static void describe_process(struct gt_header *h, const struct gt_ident *id)
{
    static char buf[8192]; /* one thread opens; the first call may come on a fibre's small stack */
    static struct utsname host;
    size_t n;
    h->pid = id->pid;
    h->ppid = id->ppid;
    h->start_time = id->start_time;
    h->pid_ns = id->pid_ns;
    memcpy(h->boot_id, id->boot_id, sizeof h->boot_id);
    h->rank = gt_config.rank;
    this_image(h->image);
    n = gt_ident_exe(buf, sizeof buf);
    h->exe = put(buf, n);
    n = gt_sys_slurp("/proc/self/cmdline", buf, sizeof buf);
    h->argv = put(buf, n && !buf[n - 1] ? n - 1 : n);
    h->cwd = put(gt_config.cwd, strlen(gt_config.cwd));
    h->base = put(buf, run_base(buf, sizeof buf));
    if (uname(&host) == 0)
        h->host = put(host.nodename, strlen(host.nodename));
    h->config = put(gt_config.set, gt_config.set_bytes);
    h->output = put(gt_config.output, strlen(gt_config.output));
    h->library = put(gt_config.library, strlen(gt_config.library));
}

static void tell_private(int why)
{
    gt_say(GT_SAY_WARNING, "no place for a session file (",
           why == -EACCES || why == -EROFS ? "read-only"
           : why == -ENOSPC                ? "too little space or a size limit"
                                           : "see gputally doctor",
           "): what is recorded is lost if the program is killed; set GPUTALLY_SESSION_DIR");
}

int gt_session_open(void)
{
    struct gt_ident id;
    const char *dir;
    int r = -ENOENT, why = 0;
    gt_clock_init();
    gt_ident_read(&id);
    if (gt_session.pid && gt_session.pid != id.pid)
        gt_session.sequence = 0; /* a fork child: the numbers were the parent's */
    gt_session.base = NULL;
    for (int i = 0; r < 0 && (dir = folder(i)); i++) {
        r = open_in(dir, &id);
        if (!why)
            why = r;
    }
    if (r < 0 && (r = open_private()) < 0)
        return r;
    struct gt_header *h = (struct gt_header *)gt_session.base;
    gt_session.header = h;
    gt_session.pid = id.pid;
    gt_session.generation += gt_session.generation == UINT32_MAX ? 2 : 1;
    atomic_store(&gt_session.ready_bytes, GT_HEADER_BYTES);
    atomic_store(&gt_session.budget_bytes, (int64_t)gt_config.memory_bytes);
    memcpy(h->magic, GT_MAGIC, sizeof h->magic);
    h->version = GT_LAYOUT_VERSION;
    h->header_bytes = GT_HEADER_BYTES;
    h->size_bytes = gt_session.size_bytes;
    atomic_store(&h->used_bytes, GT_HEADER_BYTES);
    h->sequence = gt_session.sequence;
    h->crash_safe = gt_session.path[0] != 0;
    h->stderr_same = 1;
    h->clock = gt_clock_kind;
    describe_process(h, &id);
    h->start = gt_clock_pair();
    h->start_realtime_ns = gt_clock_realtime_ns();
    /* where files may not even hold a report (2 KiB and more) that will be told, and is enough */
    if (!gt_session.path[0] && soft_limit(RLIMIT_FSIZE) > 2048)
        tell_private(why);
    /* release pairs with the reader's acquire: the header is complete once it is not NEW */
    atomic_store_explicit(&h->state, GT_STATE_RUNNING, memory_order_release);
    return 0;
}
