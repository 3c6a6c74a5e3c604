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
