/* See ident.h. Called by the constructor and when a session opens. */
#include "core/ident.h"
#include <string.h>
#include "core/sys.h"

static uint64_t number(const char *s)
{
    uint64_t v = 0;
    while (*s >= '0' && *s <= '9')
        v = v * 10 + (uint64_t)(*s++ - '0');
    return v;
}

static size_t read_link(const char *path, char *buf, size_t bytes)
{
    long n = gt_sys(SYS_readlinkat, AT_FDCWD, (long)path, (long)buf, (long)bytes - 1, 0, 0);
    if (n < 0)
        n = 0;
    buf[n] = 0;
    return (size_t)n;
}

/* The program's name in field 2 may hold blanks and parentheses: count from the last ')'. */
static uint64_t start_time(const char *stat)
{
    const char *s = strrchr(stat, ')');
    for (int field = 2; s && field < 22; field++) {
        s = strchr(s + 1, ' ');
    }
    return s ? number(s + 1) : 0;
}

void gt_ident_read(struct gt_ident *id)
{
    char buf[1024];
    *id = (struct gt_ident){0};
    id->pid = (uint32_t)gt_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
    id->ppid = (uint32_t)gt_sys(SYS_getppid, 0, 0, 0, 0, 0, 0);
    id->uid = (uint32_t)gt_sys(SYS_geteuid, 0, 0, 0, 0, 0, 0);
    gt_sys_slurp("/proc/self/stat", buf, sizeof buf);
    id->start_time = start_time(buf);
    if (read_link("/proc/self/ns/pid", buf, sizeof buf)) {
        const char *s = strchr(buf, '[');
        id->pid_ns = s ? number(s + 1) : 0;
    }
    size_t n = gt_sys_slurp("/proc/sys/kernel/random/boot_id", id->boot_id, sizeof id->boot_id);
    if (n && id->boot_id[n - 1] == '\n')
        id->boot_id[n - 1] = 0;
}

size_t gt_ident_exe(char *buf, size_t bytes)
{
    return read_link("/proc/self/exe", buf, bytes);
}
