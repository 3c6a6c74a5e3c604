// C++ exceptions through frames whose stacks are recorded: thrown below many open ranges, caught
// above them, rethrown, in several threads. What it prints does not depend on us.
//   stacks_throw THROWS
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "gputally.h"

namespace
{

struct range {
    explicit range(const char *name) { gputally_range_push(name); }
    ~range() { gputally_range_pop(); }
};

struct tally {
    long thrown = 0, caught = 0, rethrown = 0, destroyed = 0;
};

__attribute__((noipa)) long below(tally &t, int depth, unsigned random)
{
    range r(depth % 2 ? "odd" : "even");
    struct counted {
        tally &of;
        ~counted() { of.destroyed++; }
    } c{t};
    if (depth == 0) {
        t.thrown++;
        if (random & 1)
            throw std::runtime_error("below " + std::to_string(random % 100));
        throw static_cast<int>(random);
    }
    try {
        return below(t, depth - 1, random) + 1;
    } catch (int n) {
        if (depth % 3)
            throw;
        t.rethrown++;
        throw std::out_of_range("was " + std::to_string(n % 100));
    }
}

void many(tally *t, long throws)
{
    unsigned random = 12345;
    for (long i = 0; i < throws; i++) {
        random = random * 1103515245u + 12345u;
        range r("outer");
        try {
            below(*t, static_cast<int>(random >> 16) % 12, random >> 8);
        } catch (const std::exception &e) {
            t->caught += e.what()[0] != 0;
        } catch (int) {
            t->caught++;
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    const long throws = argc > 1 ? std::atol(argv[1]) : 1000;
    std::vector<tally> tallies(2);
    std::vector<std::thread> threads;
    for (auto &t : tallies)
        threads.emplace_back(many, &t, throws / 2);
    for (auto &t : threads)
        t.join();
    for (auto &t : tallies)
        std::printf("thrown %ld, caught %ld, rethrown %ld, destroyed %ld\n", t.thrown, t.caught,
                    t.rethrown, t.destroyed);
    return 0;
}
