/* The functions of maze.h. What each is about stands above it. Every one ends by using the result
 * of its call, so that no compiler makes a jump of it. */
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <pthread.h>
#include <stdexcept>
#include "maze.h"

#define STEP extern "C" __attribute__((noinline, visibility("hidden"))) long

namespace
{
volatile long sink;
void touch(void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}
} // namespace

STEP plain(maze *m)
{
    long r = maze_on(m);
    sink = r;
    return r;
}

/* the same frames again, then another way: what reuse is about */
STEP twice(maze *m)
{
    int depth = m->depth;
    long r = 0;
    m->depth = depth > 2 ? 2 : depth;
    for (unsigned i = maze_random(m, 3) + 1; i--;)
        r += maze_on(m);
    m->depth = depth;
    return r + maze_on(m);
}

/* a variable in the frame pointer's register */
STEP busy(maze *m)
{
    long a = (long)m->random, b = a * 3, c = a ^ b, d = a + c, e = b - d, f = c * e;
    for (unsigned i = maze_random(m, 2) + 1; i--;) {
        a += maze_on(m);
        m->depth = m->depth > 3 ? 3 : m->depth;
        b ^= a, c += b, d -= c, e ^= d, f += e;
    }
    sink = a + b + c + d + e + f;
    return sink;
}

STEP with_alloca(maze *m)
{
    size_t n = maze_random(m, 3000) + 16;
    char *p = (char *)alloca(n);
    memset(p, 1, n);
    long r = maze_on(m);
    touch(p);
    return r + p[n - 1];
}

STEP large(maze *m)
{
    char p[20000];
    p[0] = 1;
    touch(p);
    long r = maze_on(m);
    touch(p);
    return r + p[0];
}

STEP aligned(maze *m)
{
    alignas(64) char p[256];
    touch(p);
    long r = maze_on(m);
    touch(p);
    return r;
}

/* both of the two: the frame is found through memory */
STEP aligned_alloca(maze *m)
{
    alignas(64) char p[256];
    size_t n = maze_random(m, 500) + 1;
    char *q = (char *)alloca(n);
    touch(p), touch(q);
    long r = maze_on(m);
    touch(p), touch(q);
    return r;
}

/* arguments on the stack */
STEP many_inner(maze *m, long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
    long r = maze_on(m);
    return r + a + b + c + d + e + f + g + h + i;
}
STEP many(maze *m)
{
    long r = many_inner(m, 1, 2, 3, 4, 5, 6, 7, 8, sink);
    return r + many_inner(m, 8, 7, 6, 5, 4, 3, 2, 1, r);
}

STEP variadic_inner(maze *m, ...)
{
    va_list l;
    va_start(l, m);
    long r = maze_on(m) + va_arg(l, long);
    va_end(l);
    return r;
}
STEP variadic(maze *m)
{
    return variadic_inner(m, 7L, 1.5) + 1;
}

/* callbacks through libc */
namespace
{
__thread maze *current;
int compare(const void *a, const void *b)
{
    maze *m = current;
    if (m && m->left > 0) {
        current = nullptr;
        sink = maze_on(m);
        current = m;
    }
    return *(const int *)a - *(const int *)b;
}
} // namespace
STEP sorted(maze *m)
{
    int v[2] = {2, 1}, depth = m->depth;
    maze *before = current;
    current = m;
    qsort(v, 2, sizeof *v, compare);
    current = before;
    m->depth = depth;
    return v[0];
}

/* callbacks through C++ */
namespace
{
struct base {
    virtual ~base() = default;
    virtual long go(maze *m) = 0;
};
struct derived : base {
    long go(maze *m) override
    {
        std::function<long()> f = [this, m] {
            touch(this);
            return maze_on(m) + 1;
        };
        return f() + 1;
    }
};
struct on_leave {
    maze *m;
    ~on_leave()
    {
        m->depth = m->depth > 2 ? 2 : m->depth;
        sink = maze_on(m);
    }
};
} // namespace
STEP object(maze *m)
{
    derived d;
    base *b = &d;
    touch(b);
    return b->go(m) + 1;
}

/* captures while an exception is on its way, in the handler, and after it */
STEP throws_inner(maze *m)
{
    on_leave l{m};
    if (maze_random(m, 4))
        throw std::runtime_error("on purpose");
    return maze_on(m);
}
STEP throws(maze *m)
{
    long r = 0;
    int depth = m->depth;
    try {
        r = throws_inner(m);
    } catch (const std::exception &e) {
        touch((void *)e.what());
        m->depth = depth > 2 ? 2 : depth;
        r = maze_on(m);
    }
    m->depth = depth;
    return r + maze_on(m);
}

/* a call that does not return is the last instruction of its function */
STEP jumps_inner(maze *m, jmp_buf *to)
{
    sink = maze_on(m);
    longjmp(*to, 1);
}
STEP jumps(maze *m)
{
    jmp_buf to;
    volatile int depth = m->depth;
    if (!setjmp(to))
        return jumps_inner(m, &to);
    m->depth = depth;
    return maze_on(m);
}
namespace
{
struct escape {
};
__attribute__((noinline, noreturn)) void never(maze *m)
{
    sink = maze_on(m);
    throw escape();
}
} // namespace
STEP noreturn(maze *m)
{
    int depth = m->depth;
    try {
        never(m);
    } catch (escape) {
    }
    m->depth = depth;
    return 1;
}

/* through a signal handler, which may run on a stack of its own */
namespace
{
void handler(int)
{
    maze *m = current;
    current = nullptr;
    if (m) {
        m->quiet++;
        sink = maze_on(m);
        m->quiet--;
    }
}
} // namespace
STEP signals(maze *m)
{
    if (m->quiet || maze_random(m, 8))
        return maze_on(m) + 1;
    struct sigaction a, old;
    sigset_t one, mask;
    maze *before = current;
    int depth = m->depth;
    memset(&a, 0, sizeof a);
    a.sa_handler = handler;
    a.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &a, &old);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_UNBLOCK, &one, &mask);
    current = m;
    m->depth = depth > 10 ? 10 : depth; /* an alternate stack is small */
    pthread_kill(pthread_self(), SIGUSR1);
    current = before;
    m->depth = depth;
    return 1;
}

#ifdef __x86_64__
/* hand-written: registers saved by pushes, described after each */
__asm__(".text\n.type by_hand,@function\nby_hand:\n.cfi_startproc\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbx,0\n"
        "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbp,0\n"
        "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\n"
        "mov %rdi,%rbx\nxor %ebp,%ebp\n"
        "call plain\n"
        "add $24,%rsp\n.cfi_adjust_cfa_offset -24\n"
        "pop %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbp\n"
        "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\n"
        "ret\n.cfi_endproc\n.size by_hand,.-by_hand\n");
/* hand-written, not described at all, with a frame pointer: libunwind goes by that */
__asm__(".text\n.type undescribed,@function\nundescribed:\n"
        "push %rbp\nmov %rsp,%rbp\ncall plain\npop %rbp\nret\n"
        ".size undescribed,.-undescribed\n");
/* described, but from a register that is neither stack nor frame pointer */
__asm__(".text\n.type from_rbx,@function\nfrom_rbx:\n.cfi_startproc\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbx,0\n"
        "mov %rsp,%rbx\n.cfi_def_cfa_register %rbx\n"
        "sub $32,%rsp\ncall plain\nadd $32,%rsp\n.cfi_def_cfa_register %rsp\n"
        "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret\n"
        ".cfi_endproc\n.size from_rbx,.-from_rbx\n");
extern "C" {
__attribute__((visibility("hidden"))) long by_hand(maze *m);
__attribute__((visibility("hidden"))) long undescribed(maze *m);
__attribute__((visibility("hidden"))) long from_rbx(maze *m);
}
STEP strange(maze *m)
{
    switch (maze_random(m, 24)) {
    case 0:
        return undescribed(m) + 1;
    case 1:
        return from_rbx(m) + 1;
    default:
        return by_hand(m) + 1;
    }
}
#endif

extern "C" __attribute__((visibility("default"))) maze_step *const *maze_part(void)
{
    static maze_step *const steps[] = {plain,   twice,          busy,  with_alloca, large,
                                       aligned, aligned_alloca, many,  variadic,    sorted,
                                       object,  throws,         jumps, noreturn,    signals,
#ifdef __x86_64__
                                       strange,
#endif
                                       nullptr};
    return steps;
}
