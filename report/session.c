/* See session.h. */
#include "report/session.h"
#include "report/overhead.h"
#include "report/mem.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined __x86_64__
#include <x86intrin.h>
#endif

/* No gt_ref reaches further. */
#define REACH ((size_t)UINT32_MAX * GT_ALIGN)

static int may_be_json(const struct gt_input *in)
{
    char begin[9] = "";
    memcpy(begin, in->data, 8);
    size_t at = strspn(begin, " \t\r\n");
    return at == 8 || begin[at] == '{';
}

static int read_pipe(struct gt_input *in)
{
    size_t room = 0;
    for (;;) {
        if (room - in->bytes < 65536) {
            if (room > REACH)
                return -EFBIG;
            room = room ? room * 2 : 1 << 17;
            in->data = gt_mem_resize(in->data, room, 1);
        }
        ssize_t n = read(in->fd, in->data + in->bytes, room - in->bytes);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
        in->bytes += n > 0 ? (size_t)n : 0;
        if (in->bytes >= 8 && !gt_input_is_session(in) && !may_be_json(in))
            return 0; /* the pipe may have no end, and what it is can be told already */
    }
}

static int read_span(struct gt_input *in, off_t from, off_t to)
{
    while (from < to) {
        ssize_t n = pread(in->fd, in->data + from, (size_t)(to - from), from);
        if (n == 0)
            return 0; /* cut meanwhile: zeros */
        if (n > 0)
            from += n;
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

/* A session is sparse and may claim any size: memory is only touched where the file has data. */
static int read_file(struct gt_input *in, off_t size)
{
    in->bytes = (unsigned long long)size > REACH ? REACH : (size_t)size;
    if (!in->bytes)
        return 0;
    in->data = mmap(NULL, in->bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (in->data == MAP_FAILED) {
        in->data = NULL;
        return -ENOMEM;
    }
    in->mapped = in->bytes;
    for (off_t at = 0, end = (off_t)in->bytes; at < end;) {
        off_t from = lseek(in->fd, at, SEEK_DATA), to = end;
        if (from < 0 && errno == ENXIO)
            break;
        if (from < 0)
            from = at;
        else if ((to = lseek(in->fd, from, SEEK_HOLE)) < 0 || to > end)
            to = end;
        int rc = from < end ? read_span(in, from, to) : 0;
        if (rc)
            return rc;
        at = to > at ? to : end;
    }
    return 0;
}

int gt_input_read(struct gt_input *in, const char *path, struct gt_err *e)
{
    struct stat st;
    int rc;
    memset(in, 0, sizeof *in);
    in->path = path;

    in->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : dup(STDIN_FILENO);
    if (in->fd < 0)
        return gt_err_set(e, -errno, "%s: %s", path, strerror(errno));
    if (fstat(in->fd, &st))
        rc = -errno;
    else if (S_ISREG(st.st_mode))
        rc = read_file(in, st.st_size);
    else if (S_ISDIR(st.st_mode))
        rc = -EISDIR;
    else
        rc = read_pipe(in);
    if (rc) {
        gt_err_set(e, rc, "%s: %s", path, rc == -ENOMEM ? "out of memory" : strerror(-rc));
        gt_input_free(in);
    } else if (!S_ISREG(st.st_mode) || !strcmp(path, "-")) {
        close(in->fd);
        in->fd = -1;
    }
    return rc;
}

void gt_input_free(struct gt_input *in)
{
    if (in->mapped)
        munmap(in->data, in->mapped);
    else
        free(in->data);
    if (in->fd >= 0)
        close(in->fd);
    memset(in, 0, sizeof *in);
    in->fd = -1;
}

int gt_input_is_session(const struct gt_input *in)
{
    return in->bytes >= 8 && !memcmp(in->data, GT_MAGIC, 8);
}

static int check(const char *path, const struct gt_header *h, unsigned long long bytes,
                 struct gt_err *e)
{
    if (!bytes)
        return gt_err_set(e, -ENODATA, "%s: the file is empty", path);
    if (bytes < 8 || memcmp(h->magic, GT_MAGIC, 8))
        return gt_err_set(e, -ENODATA, "%s: not a gputally session", path);
    if (bytes < GT_HEADER_BYTES)
        return gt_err_set(e, -ENODATA, "%s: the session is truncated", path);
    if (h->version > GT_LAYOUT_VERSION)
        return gt_err_set(e, -ENODATA, "%s: written by a newer gputally (layout %u, we know %u)",
                          path, h->version, GT_LAYOUT_VERSION);
    if (h->version != GT_LAYOUT_VERSION || h->header_bytes != GT_HEADER_BYTES)
        return gt_err_set(e, -ENODATA, "%s: damaged: unknown layout", path);
    if (h->used_bytes > bytes)
        return gt_err_set(e, -ENODATA, "%s: the session is truncated", path);
    if (h->state > GT_STATE_EXEC)
        return gt_err_set(e, -ENODATA, "%s: damaged: unknown state", path);
    if (!h->pid || h->pid > INT32_MAX)
        return gt_err_set(e, -ENODATA, "%s: damaged: no process", path);
    if (!memchr(h->boot_id, 0, sizeof h->boot_id))
        return gt_err_set(e, -ENODATA, "%s: damaged: bad boot id", path);
    return 0;
}

const struct gt_header *gt_input_header(const struct gt_input *in, struct gt_err *e)
{
    const struct gt_header *h = (const struct gt_header *)in->data;
    return check(in->path, h, in->bytes, e) ? NULL : h;
}

const void *gt_input_at(const struct gt_input *in, gt_ref ref, size_t bytes)
{
    size_t at = (size_t)ref * GT_ALIGN;
    if (at < GT_HEADER_BYTES || at > in->bytes || bytes > in->bytes - at)
        return NULL;
    return in->data + at;
}

int gt_session_header(const char *path, struct gt_header *h, struct gt_err *e)
{
    char page[GT_HEADER_BYTES] = {0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc = 0;
    if (fd < 0)
        return gt_err_set(e, -errno, "%s: %s", path, strerror(errno));
    if (fstat(fd, &st) || pread(fd, page, sizeof page, 0) < 0)
        rc = gt_err_set(e, -errno, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = gt_err_set(e, -ENODATA, "%s: not a gputally session", path);
    else if (st.st_uid != geteuid()) /* planted in /tmp, it would have us write where it says */
        rc = gt_err_set(e, -EPERM, "%s: belongs to another user", path);
    close(fd);
    memcpy(h, page, sizeof *h);
    return rc ? rc : check(path, h, (unsigned long long)st.st_size, e);
}

static int read_text(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0 ? 0 : -1;
}

void gt_session_this_boot(char *id, size_t room)
{
    read_text("/proc/sys/kernel/random/boot_id", id, room);
    id[strcspn(id, "\n")] = 0;
}

int gt_session_same_boot(const struct gt_header *h)
{
    char boot[64];
    gt_session_this_boot(boot, sizeof boot);
    return boot[0] && !strcmp(boot, h->boot_id);
}

/* State letter and start time of a process. */
static int process_stat(unsigned pid, char *state, unsigned long long *start)
{
    char path[64], text[1024], *p;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    if (read_text(path, text, sizeof text) || !(p = strrchr(text, ')')))
        return -1;
    /* after the name, which may hold anything: field 3 is the state, field 22 the start time */
    return sscanf(
               p + 1,
               " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
               state, start) == 2
               ? 0
               : -1;
}

enum gt_life gt_session_life(const struct gt_header *h)
{
    struct stat ns;
    unsigned long long start;
    char state, boot[64];
    gt_session_this_boot(boot, sizeof boot);
    if (!boot[0] || process_stat((unsigned)getpid(), &state, &start))
        return GT_LIFE_UNKNOWN; /* no /proc to tell */
    if (strcmp(boot, h->boot_id))
        return GT_LIFE_DEAD;
    if (stat("/proc/self/ns/pid", &ns) || (h->pid_ns && ns.st_ino != h->pid_ns))
        return GT_LIFE_UNKNOWN;
    if (process_stat(h->pid, &state, &start) || start != h->start_time)
        return GT_LIFE_DEAD;
    return state == 'Z' || state == 'X' ? GT_LIFE_DEAD : GT_LIFE_ALIVE;
}

/* gputally-UID-BOOT-PIDNS-PID-START-N.session, BOOT being the first eight letters of the boot id.
 */
enum gt_life gt_session_life_by_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct gt_header h = {0};
    char begin[9];
    unsigned long long ns, start;
    if (sscanf(slash ? slash + 1 : path, "gputally-%*u-%8[^-]-%llu-%u-%llu-", begin, &ns, &h.pid,
               &start) != 4)
        return GT_LIFE_UNKNOWN;
    h.pid_ns = ns;
    h.start_time = start;
    gt_session_this_boot(h.boot_id, sizeof h.boot_id);
    if (h.boot_id[0] && strncmp(h.boot_id, begin, strlen(begin)))
        return GT_LIFE_DEAD;
    return gt_session_life(&h);
}

int gt_session_is_blank(const char *path)
{
    char magic[8] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, magic, sizeof magic);
    if (fd >= 0)
        close(fd);
    return n >= 0 && !memcmp(magic, (char[8]){0}, sizeof magic);
}

size_t gt_session_stem(const char *path, unsigned long *sequence)
{
    static const char suffix[] = ".session";
    size_t len = strlen(path), at;
    if (len < sizeof suffix || strcmp(path + len - (sizeof suffix - 1), suffix))
        return 0;
    at = len - (sizeof suffix - 1);
    while (at && path[at - 1] >= '0' && path[at - 1] <= '9')
        at--;
    if (!at || path[at - 1] != '-' || at == len - (sizeof suffix - 1))
        return 0;
    if (sequence)
        *sequence = strtoul(path + at, NULL, 10);
    return at;
}

int gt_session_followed(const char *path, const struct gt_header *h)
{
    unsigned long mine, other;
    size_t stem = gt_session_stem(path, &mine);
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    int found = 0;
    if (!stem || stem <= folder)
        return 0;
    char *name = folder ? gt_mem_copy(path, folder) : gt_mem_copy(".", 1);
    DIR *d = opendir(name);
    free(name);
    for (struct dirent *f; d && !found && (f = readdir(d));) {
        size_t len = gt_session_stem(f->d_name, &other);
        struct gt_header next;
        if (!len || len != stem - folder || memcmp(f->d_name, path + folder, len) || other <= mine)
            continue;
        name = gt_mem_format("%.*s%s", (int)folder, path, f->d_name);
        found = !gt_session_header(name, &next, NULL) && next.pid == h->pid &&
                next.start_time == h->start_time && !strcmp(next.boot_id, h->boot_id);
        free(name);
    }
    if (d)
        closedir(d);
    return found;
}

int gt_session_may_print(const struct gt_header *h)
{
    /* a process that was killed could not look; whoever finishes it then has a stderr of his own */
    return h->state != GT_STATE_ENDED || h->stderr_same;
}

/* Numbers of dead claimers are used again by other programs: only a gputally counts. */
static int claimer_lives(unsigned pid)
{
    char path[64], other[4096], own[4096], state;
    unsigned long long start;
    if (pid == (unsigned)getpid() || process_stat(pid, &state, &start) || state == 'Z' ||
        state == 'X')
        return 0;
    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    ssize_t n = readlink(path, other, sizeof other - 1);
    ssize_t k = readlink("/proc/self/exe", own, sizeof own - 1);
    return n < 0 || k < 0 || (n == k && !memcmp(own, other, (size_t)n));
}

static struct gt_header *map_header(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    void *p = MAP_FAILED;
    if (fd < 0)
        return NULL;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size >= (off_t)GT_HEADER_BYTES)
        p = mmap(NULL, GT_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    else
        errno = EINVAL;
    int why = errno;
    close(fd);
    errno = why;
    return p == MAP_FAILED ? NULL : p;
}

/* The ticks come last: without them the pair is not there. */
static void see(struct gt_header *h)
{
    struct gt_pair now;
    if (h->state == GT_STATE_ENDED || h->seen.ticks || !gt_session_same_boot(h) ||
        gt_clock_point(h->clock, &now))
        return;
    h->seen.mono_ns = now.mono_ns;
    __atomic_store_n(&h->seen.ticks, now.ticks, __ATOMIC_RELEASE);
}

void gt_session_died(const char *path, unsigned pid)
{
    struct gt_header *h = map_header(path);
    if (!h)
        return;
    if (!memcmp(h->magic, GT_MAGIC, sizeof h->magic) && h->version == GT_LAYOUT_VERSION &&
        h->pid == pid && h->state == GT_STATE_RUNNING && !gt_session_followed(path, h)) {
        see(h);
        h->seen_death = h->seen.ticks != 0;
    }
    munmap(h, GT_HEADER_BYTES);
}

int gt_session_claim(const char *path, struct gt_err *e)
{
    struct gt_header *h = map_header(path);
    uint32_t seen, me = (uint32_t)getpid();
    int rc = 0;
    if (!h)
        return gt_err_set(e, -errno, "%s: %s", path, strerror(errno));
    seen = atomic_load(&h->finisher);
    do {
        if (seen && claimer_lives(seen)) {
            rc = gt_err_set(e, -EBUSY, "%s: process %u is making its report", path, seen);
            break;
        }
    } while (!atomic_compare_exchange_strong(&h->finisher, &seen, me));
    if (!rc) {
        see(h);
        if (!h->call_ps && gt_session_same_boot(h))
            h->call_ps = (uint32_t)(gt_overhead_call_ns() * 1000);
    }
    munmap(h, GT_HEADER_BYTES);
    return rc;
}

void gt_session_release(const char *path)
{
    struct gt_header *h = map_header(path);
    uint32_t me = (uint32_t)getpid();
    if (!h)
        return;
    atomic_compare_exchange_strong(&h->finisher, &me, 0);
    munmap(h, GT_HEADER_BYTES);
}

static int ticks(uint32_t clock, uint64_t *t)
{
    struct timespec now;
    switch (clock) {
#if defined __x86_64__
    case GT_CLOCK_TSC:
        *t = __rdtsc();
        return 0;
#elif defined __aarch64__
    case GT_CLOCK_CNTVCT:
        __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(*t));
        return 0;
#endif
    case GT_CLOCK_MONOTONIC:
        clock_gettime(CLOCK_MONOTONIC_RAW, &now);
        *t = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        return 0;
    default:
        return -ENOTSUP;
    }
}

int gt_clock_point(uint32_t clock, struct gt_pair *pair)
{
    uint64_t a, b, mono, best = UINT64_MAX;
    /* the closest of a few: an interrupt between the reads would tilt every duration */
    for (int i = 0; i < 8; i++) {
        if (ticks(clock, &a))
            return -ENOTSUP;
        ticks(GT_CLOCK_MONOTONIC, &mono);
        ticks(clock, &b);
        if (b >= a && b - a < best) {
            best = b - a;
            *pair = (struct gt_pair){a + (b - a) / 2, mono};
        }
    }
    if (clock == GT_CLOCK_MONOTONIC)
        pair->ticks = pair->mono_ns;
    return 0;
}
