/* Ranges on stacks of all kinds: a thread with the smallest there is, a signal handler on an
 * alternate one, fibres that take turns, recursion deeper than what is kept, and one left by
 * longjmp. With "first": only a signal handler whose stack has little more than the kernel's frame,
 * behind a page that may not be touched, and whose call is the first of the process. With "many":
 * only fibres, thousands of them. */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "gputally.h"

#define NOINLINE __attribute__((noipa))
#define BARRIER __asm__ volatile("" ::: "memory")

static NOINLINE void call(const char *name)
{
    gputally_range_push(name);
    gputally_range_pop();
    BARRIER;
}

/* ---- a small stack ---- */

static NOINLINE void *tiny_thread(void *arg)
{
    for (int i = 0; i < 100; i++)
        call(arg);
    return NULL;
}

static void tiny(void)
{
    pthread_t t;
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, (size_t)PTHREAD_STACK_MIN);
    for (int i = 0; i < 20; i++) {
        if (pthread_create(&t, &a, tiny_thread, "tiny"))
            exit(1);
        pthread_join(t, NULL);
    }
}

/* ---- a signal handler ---- */

static NOINLINE void handler(int sig)
{
    (void)sig;
    call("on an alternate stack");
    BARRIER;
}

static NOINLINE void interrupted(void)
{
    for (int i = 0; i < 50; i++)
        raise(SIGUSR1);
    BARRIER;
}

static void alternate(void)
{
    static char memory[64 << 10];
    stack_t s = {.ss_sp = memory, .ss_size = sizeof memory}, none = {.ss_flags = SS_DISABLE};
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&s, NULL);
    sigaction(SIGUSR1, &a, NULL);
    interrupted();
    sigaltstack(&none, NULL);
}

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static void first(void)
{
    enum { ROOM = 4560, PAGE = 4096 };
    size_t frame = getauxval(AT_MINSIGSTKSZ), size = (frame > 2048 ? frame : 2048) + ROOM;
    char *area =
        mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t s = {.ss_sp = area + PAGE, .ss_size = size};
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    if (area == MAP_FAILED || mprotect(area, PAGE, PROT_NONE) || sigaltstack(&s, NULL))
        exit(1);
    sigaction(SIGUSR1, &a, NULL);
    interrupted();
}

/* ---- fibres ---- */

static ucontext_t home, fibre[2];

static NOINLINE void turns(int me, const char *name, int depth)
{
    if (depth) {
        turns(me, name, depth - 1);
    } else {
        for (int i = 0; i < 50; i++) {
            call(name);
            swapcontext(&fibre[me], me ? &home : &fibre[1]);
        }
    }
    BARRIER;
}

static NOINLINE void fibre_one(void)
{
    turns(0, "fibre one", 5);
    BARRIER;
}

static NOINLINE void fibre_two(void)
{
    turns(1, "fibre two", 9);
    BARRIER;
}

static NOINLINE void fibres(void)
{
    static char memory[2][64 << 10];
    void (*const entry[])(void) = {fibre_one, fibre_two};
    for (int i = 0; i < 2; i++) {
        getcontext(&fibre[i]);
        fibre[i].uc_stack.ss_sp = memory[i];
        fibre[i].uc_stack.ss_size = sizeof memory[i];
        fibre[i].uc_link = &home;
        makecontext(&fibre[i], entry[i], 0);
    }
    for (int i = 0; i < 50; i++) {
        call("home");
        swapcontext(&home, &fibre[0]); /* which goes on to the second, and that back here */
    }
    memset(memory, 0x5a, sizeof memory); /* nobody may look there any more */
    call("home again");
}

enum { MANY = 5000, MANY_STACK = 16 << 10, TURNS = 4 };
static ucontext_t *many_fibres;
static int turn;

static NOINLINE void many_main(void)
{
    int me = turn;
    for (;;) {
        call("fibre");
        swapcontext(&many_fibres[me], &home);
    }
}

static int many(void)
{
    many_fibres = calloc(MANY, sizeof *many_fibres);
    for (int i = 0; i < MANY; i++) {
        ucontext_t *f = &many_fibres[i];
        char *p =
            mmap(NULL, MANY_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED || mprotect(p, 4096, PROT_NONE))
            return 1;
        getcontext(f);
        f->uc_stack.ss_sp = p + 4096;
        f->uc_stack.ss_size = MANY_STACK - 4096;
        makecontext(f, many_main, 0);
    }
    for (int i = 0; i < TURNS; i++)
        for (turn = 0; turn < MANY; turn++)
            swapcontext(&home, &many_fibres[turn]);
    return 0;
}

/* ---- recursion, and the way out of it ---- */

static NOINLINE void recurse(int depth)
{
    if (depth)
        recurse(depth - 1);
    else
        call("deep");
    BARRIER;
}

static jmp_buf out;
static volatile int armed = 1;

static NOINLINE void jumper(int depth)
{
    call("before the jump");
    if (depth)
        jumper(depth - 1);
    else if (armed)
        longjmp(out, 1);
    BARRIER;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "first")) {
        first();
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "many"))
        return many();
    tiny();
    alternate();
    fibres();
    for (int i = 0; i < 3; i++)
        recurse(20000);
    for (volatile int i = 0; i < 30; i++)
        if (!setjmp(out))
            jumper(i % 5);
    call("after the jump");
    puts("done");
    return 0;
}
