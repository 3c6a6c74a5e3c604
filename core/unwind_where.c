/* Which stack is a thread on, and is there code at an address? From /proc/self/maps, and kept for
 * the next time: unwind.h. pthread_getattr_np would call malloc and read the same file. */
#include "core/unwind.h"

#include <sys/ioctl.h>
#include "core/core.h"
#include "core/sys.h"

/* The kernel keeps at least this much below the main thread's stack free of other mappings. */
#define STACK_GAP (UINT64_C(128) << 20)

struct reader {
    char *buf;
    size_t bytes;
    int fd;
    long at, end;
};

static int next(struct reader *r)
{
    if (r->at == r->end) {
        do
            r->end = gt_sys_read(r->fd, r->buf, r->bytes);
        while (r->end == -EINTR);
        r->at = 0;
        if (r->end <= 0) {
            r->end = 0;
            return -1;
        }
    }
    return (unsigned char)r->buf[r->at++];
}

/* Reads a hexadecimal number; returns the character behind it. */
static int hex(struct reader *r, uint64_t *v)
{
    int c;
    for (*v = 0;; *v = *v << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10)) {
        c = next(r);
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return c;
    }
}

/* From Linux 6.11 on the kernel answers for one address: a program with a stack for each of ten
 * thousand fibres has as many lines to read, at each turn. Our own words for its struct
 * procmap_query. */
struct query {
    uint64_t size, flags, address; /* asked; no flags: what holds the address */
    uint64_t lo, hi, access;       /* told; access is 1 << the place of the letter in perms */
    uint64_t page_bytes, offset, inode;
    uint32_t device[2], name_bytes, build_id_bytes;
    uint64_t name, build_id;
};
#define QUERY _IOWR('f', 17, struct query)

enum { GROWS = -2 }; /* how far it may is told by the line before its own */

/* 1 and 0 as look, less: not known this way. */
static int ask(struct reader *r, uint64_t address, int which, struct gt_where *out)
{
    struct query q = {.size = sizeof q,
                      .address = address,
                      .name_bytes = (uint32_t)r->bytes,
                      .name = (uint64_t)r->buf};

    if (gt_sys(SYS_ioctl, r->fd, (long)QUERY, (long)&q, 0, 0, 0) < 0 || address < q.lo ||
        address >= q.hi)
        return -1;
    if (q.name_bytes && r->buf[0] == '[' && r->buf[1] == 's')
        return GROWS;
    *out = (struct gt_where){q.lo, q.hi};
    return q.access >> which & 1;
}

/* Finds the mapping that holds `address` and may be accessed as the letter at perms[which] says. */
static int look(struct gt_stack *s, uint64_t address, int which, struct gt_where *out)
{
    struct reader r = {.buf = s->maps, .bytes = sizeof s->maps};
    uint64_t lo, hi, before = 0;
    int found;

    r.fd = gt_sys_open("/proc/self/maps", O_RDONLY, 0);
    if (r.fd < 0)
        return 0;
    found = ask(&r, address, which, out);
    if (found >= 0) {
        gt_sys_close(r.fd);
        return found;
    }
    for (found = 0;;) {
        if (hex(&r, &lo) != '-' || hex(&r, &hi) != ' ')
            break;
        char perms[4];
        int c = 0, growing = 0;
        for (int i = 0; i < 4; i++)
            perms[i] = (char)next(&r);
        while ((c = next(&r)) != '\n' && c != -1)
            if (c == '[')
                growing = next(&r) == 's' && next(&r) == 't' && next(&r) == 'a';
        /* a stack that grows is in its gap between two looks; the address may be there already */
        uint64_t gap = growing ? (hi - before < STACK_GAP ? before : hi - STACK_GAP) : lo;
        if (address >= gap && address < hi) {
            found = perms[which] != '-';
            *out = (struct gt_where){gap, hi};
            break;
        }
        before = hi;
    }
    gt_sys_close(r.fd);
    return found;
}

static int inside(const struct gt_where *w, uint64_t address)
{
    return address - w->lo < w->hi - w->lo;
}

/* The place found comes to the front. */
static int find(struct gt_stack *s, struct gt_where *list, int n, uint64_t address, int which)
{
    struct gt_where w;
    int i = 0;

    while (i < n && !inside(&list[i], address))
        i++;
    if (i < n)
        w = list[i];
    else if (look(s, address, which, &w))
        i = n - 1;
    else
        return 0;
    for (; i > 0; i--)
        list[i] = list[i - 1];
    list[0] = w;
    return 1;
}

int gt_where_stack(struct gt_stack *s, uint64_t sp)
{
    struct gt_where *old = &s->inherited;

    /* glibc gives a new thread the stack of an ended one; msync only tells whether all of it is
     * mapped still */
    if (inside(old, sp)) {
        if (!gt_sys(SYS_msync, (long)old->lo, (long)(old->hi - old->lo), MS_ASYNC, 0, 0, 0))
            s->stacks[0] = *old;
        *old = (struct gt_where){0, 0};
    }
    return find(s, s->stacks, sizeof s->stacks / sizeof *s->stacks, sp, 1 /* written */);
}

/* The kernel reads the set of signals before it looks at what is to be done with it: not -EFAULT if
 * the word at `address` can be read. Nothing is changed. */
static int readable(uint64_t address)
{
    return gt_sys(SYS_rt_sigprocmask, -1, (long)address, 0, 8, 0, 0) != -EFAULT;
}

int gt_where_again(struct gt_stack *s, uint64_t sp, uint64_t to)
{
    enum { PAGE = 65536 }; /* of any kernel */
    struct gt_where *now = &s->stacks[0];
    struct reader r = {.buf = s->maps, .bytes = sizeof s->maps};
    uint64_t page = (sp | (PAGE - 1)) + 1;
    int found;

    if (to - sp >= now->hi - sp)
        return 1; /* nobody will go there */
    r.fd = gt_sys_open("/proc/self/maps", O_RDONLY, 0);
    if (r.fd < 0)
        return 1;
    found = ask(&r, sp, 1 /* written */, now);
    gt_sys_close(r.fd);
    s->again = 1;
    if (found >= 0 || found == GROWS)
        return found != 0;
    /* reading all lines takes long: only if something is not as it was */
    if ((page >= now->hi ||
         !gt_sys(SYS_msync, (long)page, (long)(now->hi - page), MS_ASYNC, 0, 0, 0)) &&
        readable(to & ~UINT64_C(7))) {
        s->again = 0;
        return 1;
    }
    return look(s, sp, 1 /* written */, now);
}

void gt_where_forget(struct gt_stack *s, uint64_t sp)
{
    for (unsigned i = 0; i < sizeof s->stacks / sizeof *s->stacks; i++)
        if (inside(&s->stacks[i], sp))
            s->stacks[i] = (struct gt_where){0, 0};
}

int gt_where_code(struct gt_stack *s, uint64_t pc)
{
    return find(s, s->code, sizeof s->code / sizeof *s->code, pc, 2 /* executed */);
}
