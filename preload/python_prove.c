/* The first looks at an interpreter: python.h. Called by python.c until a walk has shown what only
 * frames of Python show; a layout that is wrong must not crash the program. So memory is read by
 * the kernel: what is not mapped is an error. */
#include "preload/python.h"

#include "core/sys.h"
#include <sys/uio.h>

/* A stack that is deeper proves no more. */
enum { DEPTH = 512, NAME_MAX_BYTES = 1 << 20, TABLE_MAX_BYTES = 1 << 28 };

/* Under seccomp the first may be forbidden (containers of old Docker), the second is not. */
static int by_file(uint64_t at, void *to, size_t bytes)
{
    int fd = gt_sys_open("/proc/self/mem", O_RDONLY, 0);
    long n;

    if (fd < 0)
        return -EPERM;
    n = gt_sys(SYS_pread64, fd, (long)to, (long)bytes, (long)at, 0, 0);
    gt_sys_close(fd);
    return n == (long)bytes ? 0 : n >= 0 || n == -EIO || n == -EFAULT ? -EFAULT : -EPERM;
}

static int peek(const char *at, size_t offset, void *to, size_t bytes)
{
    uintptr_t from = (uintptr_t)at + offset; /* may be anything */
    struct iovec here = {to, bytes}, there = {(void *)from, bytes};
    long n = gt_sys(SYS_process_vm_readv, getpid(), (long)&here, 1, (long)&there, 1, 0);

    if (n < 0 && n != -EFAULT) /* EPERM as a rule, but whoever forbids it says what he likes */
        return by_file(from, to, bytes);
    return n == (long)bytes ? 0 : -EFAULT;
}

static int is_a(const char *object, const void *type)
{
    const void *found;
    int r = object ? peek(object, GT_PYTHON_TYPE, &found, sizeof found) : -EFAULT;

    return r ? r : found == type ? 0 : -EFAULT;
}

/* A str or bytes of a sensible length, whose last byte can be read. */
static int check_text(const struct gt_python *p, const char *object, const void *type)
{
    const struct gt_python_layout *l = &p->layout;
    size_t data = l->bytes, limit = TABLE_MAX_BYTES;
    unsigned kind = 1;
    uint64_t length;
    uint32_t state;
    char last;
    int r = is_a(object, type);

    if (r || (r = peek(object, GT_PYTHON_SIZE, &length, sizeof length)))
        return r;
    if (type == p->str_type) {
        if ((r = peek(object, GT_PYTHON_STR_STATE, &state, sizeof state)))
            return r;
        kind = GT_PYTHON_STR_KIND(state);
        data = state & GT_PYTHON_STR_ASCII ? l->ascii : l->compact;
        limit = NAME_MAX_BYTES;
        if (!(state & GT_PYTHON_STR_COMPACT) || (kind != 1 && kind != 2 && kind != 4))
            return -EFAULT;
    }
    if (length > limit)
        return -EFAULT;
    /* the NUL behind it */
    r = peek(object, data + length * kind, &last, 1);
    return r ? r : last ? -EFAULT : 0;
}

static int check_member(const struct gt_python *p, const char *code, size_t offset,
                        const void *type)
{
    const char *object;
    int r = peek(code, offset, &object, sizeof object);

    return r ? r : check_text(p, object, type);
}

/* The frame's instruction lies in its code. */
static int check_instruction(const struct gt_python_layout *l, const char *frame, const char *code)
{
    uint64_t instr, words;
    int64_t at;
    int r = peek(frame, l->instr, &instr, sizeof instr);

    if (r || (l->bytecode && (r = peek(code, GT_PYTHON_SIZE, &words, sizeof words))))
        return r;
    instr &= l->instr_mask;
    if (!l->bytecode)
        return (int32_t)instr >= -1 && (int32_t)instr < 1 << 28 ? 0 : -EFAULT;
    at = (int64_t)(instr - (uint64_t)(uintptr_t)(code + l->bytecode));
    return words < 1u << 28 && at >= -2 && at <= (int64_t)words * 2 ? 0 : -EFAULT;
}

static int check_code(const struct gt_python *p, const char *frame)
{
    const struct gt_python_layout *l = &p->layout;
    const char *code;
    int32_t line = 0;
    int r = peek(frame, l->code, &code, sizeof code);

    if (r)
        return r;
    code = (const char *)((uintptr_t)code & ~(uintptr_t)l->code_tag);
    if ((r = is_a(code, p->code_type)) || (r = check_member(p, code, l->file, p->str_type)) ||
        (r = check_member(p, code, l->name, p->str_type)) ||
        (r = check_member(p, code, l->lines, p->bytes_type)) ||
        (r = peek(code, l->first_line, &line, sizeof line)) ||
        (r = check_instruction(l, frame, code)))
        return r;
    return line >= 0 ? 0 : -EFAULT;
}

int gt_python_prove(const struct gt_python *p, const char *frame)
{
    const struct gt_python_layout *l = &p->layout;
    int frames = 0, r;

    for (int n = 0; frame && n < DEPTH; n++) {
        unsigned char owner = 0;

        if (l->owner && (r = peek(frame, l->owner, &owner, 1)))
            return r;
        if (owner < GT_PYTHON_OWNER_C) {
            if ((r = check_code(p, frame)))
                return r;
            frames++;
        }
        if (owner > GT_PYTHON_OWNER_C + 1)
            return -EFAULT;
        if ((r = peek(frame, l->previous, &frame, sizeof frame)))
            return r;
    }
    return frames >= 2; /* one alone has no caller to find */
}
