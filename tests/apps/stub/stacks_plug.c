/* Eight times the same library but for the name of its function, PLUG: loaded where another one
 * was, all its return addresses are that one's too. */
#include "stacks_plug.h"

#define NAME_(a) plug_##a
#define NAME(a) NAME_(a)

void NAME(PLUG)(plug_call *call, void *arg, int depth);
__attribute__((noipa)) void NAME(PLUG)(plug_call *call, void *arg, int depth)
{
    if (depth > 0)
        NAME(PLUG)(call, arg, depth - 1);
    else
        call(arg);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

plug_enter *plug_entry(void)
{
    return NAME(PLUG);
}
