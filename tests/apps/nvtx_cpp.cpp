// C++ client: scoped ranges of nvtx3.hpp, and 100,000 exceptions thrown through them. The unwinder
// that throws must stay libgcc's. Prints a checksum; --expect as in nvtx_basic.c. Exit 77: no
// nvtx3.hpp.
#include "nvtx_client.h"

#if defined(__has_include)
#if __has_include(<nvtx3/nvtx3.hpp>)
#define HAVE_NVTX_CPP 1
#endif
#endif

#ifdef HAVE_NVTX_CPP
#include <cstdint>
#include <nvtx3/nvtx3.hpp>
#include <stdexcept>

namespace
{
struct library {
    static constexpr char const *name{"cpp"};
};
struct message_a {
    static constexpr char const *message{"registered in cpp"};
};

uint64_t checksum;

void thrower(int depth, int seed)
{
    nvtx3::scoped_range range{"thrower"};

    if (depth == 0) {
        nvtx3::scoped_range_in<library> inner{"innermost"};
        throw std::runtime_error{std::to_string(seed)};
    }
    thrower(depth - 1, seed + 1);
}

void function_range()
{
    NVTX3_FUNC_RANGE_IN(library);
    checksum += 1;
}
} // namespace

int main(int argc, char **argv)
{
    const int throws = 100000;

    client_start(argc, argv);
    for (int i = 0; i < throws; i++) {
        try {
            thrower(2, i);
        } catch (const std::exception &e) {
            checksum = checksum * 31 + static_cast<uint64_t>(std::stoll(e.what()));
        }
    }
    for (int i = 0; i < 10; i++)
        function_range();
    for (int i = 0; i < 4; i++) {
        auto const &message = nvtx3::registered_string_in<library>::get<message_a>();
        nvtx3::scoped_range_in<library> range{message, nvtx3::payload{i}};
        nvtx3::mark_in<library>("cpp mark");
    }
    auto handle = nvtx3::start_range("cpp async");
    nvtx3::end_range(handle);
    {
        nvtx3::unique_range range{"cpp unique"};
    }
    std::printf("checksum %llu\n", static_cast<unsigned long long>(checksum));
    expect("thrower", 3L * throws);
    expect("cpp:innermost", throws);
    expect("cpp:function_range", 10);
    expect("cpp:registered in cpp", 4);
    expect("cpp:cpp mark", 4);
    expect("cpp async", 1);
    expect("cpp unique", 1);
    return 0;
}
#else
int main()
{
    return no_nvtx();
}
#endif
