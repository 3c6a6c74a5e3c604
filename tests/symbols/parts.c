/* Functions of every kind that a symbol table holds, for test_symbols.c: built by
 * tests/symbols/make with many options, and looked up against nm. */
#include <stdlib.h>
#include <string.h>

static int base;

static __attribute__((noinline)) int part_local(int x)
{
    return x * 3 + base;
}

static inline __attribute__((always_inline)) int part_inner(int x)
{
    return part_local(x) + 1;
}

static inline __attribute__((always_inline)) int part_middle(int x)
{
    return part_inner(x) ^ 5;
}

__attribute__((noinline)) int part_global(int x)
{
    base += x;
    return part_middle(x) + part_inner(-x);
}

/* of several names the global one, then the shortest */
extern __attribute__((alias("part_global"))) int part_g(int x);
extern __attribute__((weak, alias("part_global"))) int part_(int x);
static __attribute__((alias("part_global"), used)) int p_(int x);

__attribute__((weak, noinline)) int part_weak(int x)
{
    return part_g(x) + part_(x) + p_(x);
}

static int part_ifunc_one(int x)
{
    return x;
}

static int (*resolve(void))(int)
{
    return part_ifunc_one;
}

int part_ifunc(int x) __attribute__((ifunc("resolve")));

/* through the PLT */
__attribute__((noinline)) long part_calls(const char *text)
{
    char *copy = strdup(text);
    long n = strtol(copy, NULL, 10) + part_ifunc(base) + part_weak(base);
    free(copy);
    return n;
}

/* The compiler moves what is rare away, from where it jumps back. */
__attribute__((cold, noinline)) int part_rare(int x)
{
    return rand() ^ x;
}

__attribute__((noinline)) int part_split(int x)
{
    for (int i = 0; i < x; i++) {
        if (x % (i + 7) == 4711)
            x = part_rare(x) + part_rare(i);
        if (x % (i + 9) == 4712)
            x += part_rare(x - i);
    }
    return x;
}

/* by hand: a hole that is nobody's, a function with a size that has another within, labels without
 * a size, and one that only annotates */
#ifdef __x86_64__
#define NOPS ".skip 32, 0x90\n"
#else
#define NOPS ".skip 32\n"
#endif
__asm__(".text\n"
        ".globl part_outer\n"
        ".type part_outer, %function\n"
        "part_outer:\n" NOPS ".type part_nested, %function\n"
        "part_nested:\n" NOPS ".size part_nested, .-part_nested\n" NOPS
        ".size part_outer, .-part_outer\n" NOPS ".globl part_open\n"
        "part_open:\n" NOPS ".annobin_part_open:\n" NOPS ".type part_end, %function\n"
        "part_end:\n" NOPS ".size part_end, .-part_end\n" NOPS);

#ifdef PROGRAM
int main(int argc, char **argv)
{
    return (int)part_calls(argv[argc - 1]);
}
#endif
