/* Messages from inside the host; see say.h. */
#include "core/say.h"
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include "core/core.h"
#include "core/sys.h"
#include "core/text.h"

static struct stat at_start;
static int known;

/* fstat by system call: glibc before 2.33 has no symbol of that name to bind to. */
static int stat_stderr(struct stat *s)
{
#ifdef SYS_newfstatat
    return (int)gt_sys(SYS_newfstatat, 2, (long)"", (long)s, AT_EMPTY_PATH, 0, 0);
#else
    return (int)gt_sys(SYS_fstat, 2, (long)s, 0, 0, 0, 0);
#endif
}

void gt_say_init(void)
{
    known = stat_stderr(&at_start) == 0;
}

int gt_say_possible(void)
{
    struct stat now;
    return known && stat_stderr(&now) == 0 && now.st_dev == at_start.st_dev &&
           now.st_ino == at_start.st_ino && now.st_rdev == at_start.st_rdev;
}

/* Nobody may read our stderr any more. A program that never writes there must not die of the
 * SIGPIPE that our line raises: it is blocked, and taken back unless one was waiting already. The
 * sets are the kernel's, 64 bits. */
static void write_quietly(const char *line, size_t n)
{
    uint64_t pipe = UINT64_C(1) << (SIGPIPE - 1), mask, pending = 0;
    struct timespec now = {0, 0};
    if (gt_sys(SYS_rt_sigprocmask, SIG_BLOCK, (long)&pipe, (long)&mask, sizeof mask, 0, 0) < 0)
        return;
    gt_sys(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0, 0, 0);
    if (gt_sys_write(2, line, n) == -EPIPE && !(pending & pipe))
        gt_sys(SYS_rt_sigtimedwait, (long)&pipe, 0, (long)&now, sizeof pipe, 0, 0);
    gt_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof mask, 0, 0);
}

void gt_say_list(enum gt_say_level level, const char *const *texts)
{
    char line[1024];
    struct gt_text t;
    if ((int)level > gt_config.log || !gt_say_possible())
        return;
    gt_text_init(&t, line, sizeof line - 1);
    gt_text_add(&t, "gputally: ");
    while (*texts)
        gt_text_add(&t, *texts++);
    line[t.len++] = '\n';
    write_quietly(line, t.len);
}
