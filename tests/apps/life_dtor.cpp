// C++ client of the exit tests: destructors that still record. static 2, function static 3, thread
// local 4 (once for main, once for a thread: 8 in all), work 5. Prints how often each destructor
// ran.
#include "gputally.h"

#include <cstdio>
#include <thread>

namespace
{
void record(const char *name, int times)
{
    for (int i = 0; i < times; i++) {
        gputally_range_push(name);
        gputally_range_pop();
    }
}

struct recorder {
    const char *name;
    int times;
    ~recorder()
    {
        record(name, times);
        std::printf("%s\n", name);
        std::fflush(stdout);
    }
};

recorder global{"static", 2};
thread_local recorder local{"thread local", 4};

void once()
{
    static recorder inner{"function static", 3};
    (void)inner.times;
}
} // namespace

int main()
{
    record("work", 5);
    once();
    std::thread([] { (void)local.times; }).join();
    return local.times + 3;
}
