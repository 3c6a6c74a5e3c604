/* A hundred functions whose rare part the compiler moves away: test_symbols.c. */
#include <stdlib.h>

__attribute__((cold, noinline)) static int rare(int x)
{
    return rand() ^ x;
}

#define SPLIT(n)                                                                                   \
    int many_##n(int x)                                                                            \
    {                                                                                              \
        for (int i = 0; i < x; i++)                                                                \
            if (x % (i + 7) == 4000 + n)                                                           \
                x = rare(x) + rare(i);                                                             \
        return x;                                                                                  \
    }
#define TEN(n)                                                                                     \
    SPLIT(n##0)                                                                                    \
    SPLIT(n##1)                                                                                    \
    SPLIT(n##2) SPLIT(n##3) SPLIT(n##4) SPLIT(n##5) SPLIT(n##6) SPLIT(n##7) SPLIT(n##8) SPLIT(n##9)
TEN(1)
TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10)
