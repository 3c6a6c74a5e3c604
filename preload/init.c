/* The start: runs once, in the loader, before main. No threads, no files, no GPU calls here; the
 * session is opened by the first recorded call. */
#include <string.h>
#include "core/core.h"
#include "core/session.h"
#include "preload/dl.h"
#include "preload/exit.h"
#include "preload/helper.h"
#include "preload/python.h"
#include "preload/snapshot.h"
#include "preload/torch.h"

extern char **environ;

/* GPUTALLY_CHILDREN=0: what this process execs inherits GPUTALLY_DISABLE=1, which fits in the place
 * of the variable, so that nothing needs to be allocated or moved before main. */
static void shut_out_children(void)
{
    for (char **e = environ; e && *e; e++)
        if (strncmp(*e, "GPUTALLY_CHILDREN=", 18) == 0)
            strcpy(*e, "GPUTALLY_DISABLE=1");
}

static void opened(void)
{
    gt_exit_opened();
    gt_snapshot_opened();
}

__attribute__((constructor)) static void start(void)
{
    const char *self;
    gt_dl_init();
    gt_core_init();
    self = gt_dl_self();
    if (self)
        gt_config.library = self;
    if (gt_config.disable)
        return;
    gt_core_opened = opened;
    gt_helper_init();
    gt_snapshot_init();
    if (gt_session_find_older() < 0) {
        gt_config.disable = 1;
        return;
    }
    if (!gt_config.children)
        shut_out_children();
    gt_torch_init();
    gt_python_init();
}

__attribute__((destructor)) static void end(void)
{
    gt_exit();
}
