/* A fork from inside one of our own calls: a signal handler that came in the middle of a push
 * forks, and the child, once the handler returns, goes on with that push. It must do so on memory
 * of its own, or the parent's file would get half a call twice. So before such a fork the session
 * is copied, and the child finds the copy in the file's place; what it does there is forgotten when
 * it opens its own session. Runs in the thread that forks. Only fork() calls us: _Fork and clone in
 * a handler are not covered. */
#include "core/fork.h"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include "core/session.h"
#include "core/sys.h"
#include "core/thread.h"

static int inside(const struct gt_thread *t)
{
    return t != &gt_nobody && __atomic_load_n(&t->door, __ATOMIC_RELAXED) == GT_DOOR_SHUT;
}

static void prepare(void)
{
    struct gt_thread *t = gt_self;
    uint64_t bytes = atomic_load_explicit(&gt_session.ready_bytes, memory_order_acquire);
    if (!inside(t) || !gt_session.base || t->fork_copy)
        return;
    t->fork_copy =
        gt_sys_mmap(gt_session.size_bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (t->fork_copy)
        memcpy(t->fork_copy, gt_session.base, bytes);
}

static void parent(void)
{
    struct gt_thread *t = gt_self;
    if (!inside(t) || !t->fork_copy)
        return;
    gt_sys_munmap(t->fork_copy, gt_session.size_bytes);
    t->fork_copy = NULL;
}

static void child(void)
{
    struct gt_thread *t = gt_self;
    if (!inside(t) || !t->fork_copy)
        return;
    gt_sys(SYS_mremap, (long)t->fork_copy, (long)gt_session.size_bytes, (long)gt_session.size_bytes,
           MREMAP_MAYMOVE | MREMAP_FIXED, (long)gt_session.base, 0);
    t->fork_copy = NULL;
}

void gt_fork_init(void)
{
    pthread_atfork(prepare, parent, child);
}
