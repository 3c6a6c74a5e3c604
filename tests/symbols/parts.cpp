/* Names of C++ for test_symbols.c: templates, constructors with two symbols, lambdas, clones. */
#include <stdexcept>
#include <string>
#include <vector>

namespace part
{
template <typename T> struct Box {
    std::vector<T> all;
    __attribute__((noinline)) explicit Box(T t) { all.push_back(t); }
    __attribute__((noinline)) ~Box() { all.clear(); }
    __attribute__((noinline)) T &at(std::size_t i) { return all.at(i); }
    operator bool() const { return !all.empty(); }
};

namespace
{
__attribute__((noinline)) int hidden(int x)
{
    static int kept = x;
    return kept += x;
}
} // namespace

/* inlined: of static functions and of unnamed namespaces GCC keeps no linkage name */
namespace
{
inline __attribute__((always_inline)) int nowhere(int x)
{
    return hidden(x) + hidden(x + 1);
}
} // namespace

static inline __attribute__((always_inline)) int nobodys(int x)
{
    return nowhere(x) ^ 3;
}

struct Held {
    int kept;
    __attribute__((always_inline)) int member(int x) const
    {
        struct Local {
            static __attribute__((always_inline)) int within(int x) { return nobodys(x) + x; }
        };
        return Local::within(x) + kept;
    }
};

__attribute__((noinline)) int holds(const Held &held)
{
    return held.member(4711);
}

template <typename F> __attribute__((noinline)) int apply(F f, int x)
{
    return f(x) + hidden(x);
}

int run(int x)
{
    Box<std::string> words("one");
    Box<const int *> pointers(&x);
    if (x == 4711)
        throw std::runtime_error(words.at(0));
    return apply([&](int y) { return y + *pointers.at(0); }, x) + (words ? 1 : 0);
}
} // namespace part
