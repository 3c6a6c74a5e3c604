/* A plugin that annotates: opened RTLD_LOCAL, the library that it is linked with is in no scope but
 * its own. */
#include <stdint.h>

int roctxRangePushA(const char *text);
int roctxRangePop(void);
unsigned roctxStubCalls(void);

int plugin(int *level, unsigned *calls);
int plugin(int *level, unsigned *calls)
{
    int popped;

    *level = roctxRangePushA("plugin");
    popped = roctxRangePop();
    *calls = roctxStubCalls();
    return popped;
}
