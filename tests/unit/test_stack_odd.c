/* core/unwind*.c where stacks are not what they usually are: fibres, alternate signal stacks, small
 * threads, code made at run time, smashed stacks and wild registers. */
#include <alloca.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "stack_judge.h"

enum { DEPTH = 200 };
#define NOIPA __attribute__((noinline, noclone))
#define USED(p) __asm__ volatile("" : : "r"(p) : "memory")

static __thread struct gt_stack *mine;
static __thread uint64_t pcs[DEPTH];
static __thread void *judge[DEPTH];
static __thread uint32_t bottom;
static __thread int count, bad;

/* Captures; the result is in pcs, count and bottom. */
static NOIPA void capture(void)
{
    struct gt_regs at = GT_REGS_OF_CALLER();
    count = judge_read(mine, gt_stack_capture(mine, &at), pcs, DEPTH, &bottom);
}

/* The same, compared with libunwind's. */
static NOIPA void compare(void)
{
    struct gt_regs at = GT_REGS_OF_CALLER();
    count = judge_read(mine, gt_stack_capture(mine, &at), pcs, DEPTH, &bottom);
    if (judge_backtrace)
        bad += judge_differs("libunwind", judge, judge_backtrace(judge, DEPTH), at.pc, pcs, count,
                             bottom == GT_TRIE_ROOT);
    else
        bad += judge_differs("libgcc", judge, judge_by_gcc(judge, DEPTH), at.pc, pcs, count, 0);
}

static NOIPA void deeper(int depth, void (*f)(void))
{
    char room[100];
    USED(room);
    if (depth)
        deeper(depth - 1, f);
    else
        f();
    USED(room);
}

static void *map(size_t bytes, int prot)
{
    void *p = mmap(NULL, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    return p;
}

static void begin(void)
{
    judge_open();
    mine = judge_stack(DEPTH);
    bad = 0;
}

/* ---- no malloc: a hooked call may be malloc's own ---- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
static __thread volatile int capturing, mallocs; /* the compiler knows malloc */

void *malloc(size_t n)
{
    mallocs += capturing;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    mallocs += capturing;
    return __libc_calloc(n, size);
}

static NOIPA void counted(void)
{
    capturing = 1;
    struct gt_regs at = GT_REGS_OF_CALLER();
    gt_stack_capture(mine, &at);
    capturing = 0;
}

static char *make_code(void);
static void (*made)(void (*)(void));

static NOIPA void counted_through_made(void)
{
    made(counted);
    USED(mine);
}

START_TEST(no_malloc)
{
    begin();
    *(void **)&made = make_code();
    for (int i = 0; i < 3; i++) {
        deeper(i, counted);
        deeper(i, counted_through_made);
        gt_rules_forget();
    }
    ck_assert_int_eq(mallocs, 0);
    capturing = 1;
    void *volatile p = malloc(1);
    capturing = 0;
    free(p);
    ck_assert_int_eq(mallocs, 1); /* it would have been seen */
}
END_TEST
#endif

/* ---- other stacks ---- */

enum { FIBRES = 20, FIBRE_STACK = 64 << 10 };
static ucontext_t fibre[FIBRES], home;
static int next_fibre;

static NOIPA void yield(void)
{
    compare();
    int me = next_fibre;
    next_fibre = (next_fibre + 1) % FIBRES;
    swapcontext(&fibre[me], &fibre[next_fibre]);
    compare();
}

static void fibre_main(void)
{
    for (int i = 0; i < 8; i++)
        deeper(i * 3 % 7, yield);
    int me = next_fibre;
    next_fibre = (next_fibre + 1) % FIBRES;
    if (me == FIBRES - 1)
        swapcontext(&fibre[me], &home);
    else
        swapcontext(&fibre[me], &fibre[next_fibre]);
}

static void make_fibre(int i, char *stack, size_t size)
{
    getcontext(&fibre[i]);
    fibre[i].uc_stack.ss_sp = stack;
    fibre[i].uc_stack.ss_size = size;
    fibre[i].uc_link = &home;
    makecontext(&fibre[i], fibre_main, 0);
}

/* Fibres that take turns; on freed and smaller stacks again, at the same place. */
START_TEST(fibres)
{
    begin();
    char *area = map(FIBRES * FIBRE_STACK, PROT_READ | PROT_WRITE);
    for (int round = 0; round < 3; round++) {
        size_t size = FIBRE_STACK >> round;
        if (round == 1) {
            munmap(area, FIBRES * FIBRE_STACK);
            ck_assert_ptr_eq(mmap(area, FIBRES * FIBRE_STACK, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                             area);
        }
        for (int i = 0; i < FIBRES; i++) {
            char *stack = area + (size_t)i * FIBRE_STACK;
            if (round)
                mprotect(stack, size, PROT_READ | PROT_WRITE);
            make_fibre(i, stack, size);
        }
        next_fibre = 0;
        swapcontext(&home, &fibre[0]);
        if (round)
            mprotect(area, FIBRES * FIBRE_STACK, PROT_NONE);
    }
    ck_assert_int_eq(bad, 0);
    ck_assert_int_gt(count, 2);
}
END_TEST

static int handled, handled_cut;

static void handler(int sig)
{
    (void)sig;
    handled++;
    deeper(3, compare);
    handled_cut += bottom != GT_TRIE_ROOT;
    if (handled < 3)
        pthread_kill(pthread_self(), SIGUSR2);
}

static void raise_it(void)
{
    pthread_kill(pthread_self(), SIGUSR1);
    compare();
}

START_TEST(alternate_stack)
{
    stack_t alt = {.ss_sp = map(64 << 10, PROT_READ | PROT_WRITE), .ss_size = 64 << 10};
    struct sigaction a = {.sa_handler = handler, .sa_flags = _i ? SA_ONSTACK : 0};

    begin();
    sigaltstack(&alt, NULL);
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGUSR2, &a, NULL);
    for (int i = 0; i < 3; i++) {
        handled = 0;
        deeper(4, raise_it);
        ck_assert_int_ge(handled, 3);
        ck_assert_int_eq(handled_cut, 0);
        ck_assert_uint_eq(bottom, GT_TRIE_ROOT);
    }
    ck_assert_int_eq(bad, 0);
    ck_assert_uint_eq(mine->fallbacks, 0); /* the kernel's frame is one that we know */
}
END_TEST

static void *small_thread(void *arg)
{
    mine = arg;
    deeper(2, compare);
    deeper(9, capture);
    return (void *)(intptr_t)(bad || bottom != GT_TRIE_ROOT || count < 11);
}

START_TEST(small_threads)
{
    pthread_attr_t a;
    void *r;
    begin();
    pthread_attr_init(&a);
    /* libunwind, which compares, needs more than the least */
    pthread_attr_setstacksize(&a, 40 << 10);
    for (int i = 0; i < 50; i++) {
        pthread_t t;
        ck_assert_int_eq(pthread_create(&t, &a, small_thread, mine), 0);
        pthread_join(t, &r);
        ck_assert_ptr_null(r);
        gt_stack_reset(mine); /* the next thread takes it over */
    }
}
END_TEST

static void *least_thread(void *arg)
{
    mine = arg;
    deeper(2, capture);
    int n = count;
    deeper(3, capture);
    return (void *)(intptr_t)(bottom != GT_TRIE_ROOT || count != n + 1);
}

START_TEST(least_thread_stack)
{
    pthread_attr_t a;
    pthread_t t;
    void *r;
    begin();
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, PTHREAD_STACK_MIN);
    ck_assert_int_eq(pthread_create(&t, &a, least_thread, mine), 0);
    pthread_join(t, &r);
    ck_assert_ptr_null(r);
}
END_TEST

/* ---- code without unwind data ---- */

#if defined(__x86_64__)
/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const unsigned char with_fp[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
/* sub $8,%rsp; call *%rdi; add $8,%rsp; ret */
static const unsigned char without_fp[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7,
                                           0x48, 0x83, 0xc4, 8, 0xc3};
#else
/* stp x29,x30,[sp,-16]!; mov x29,sp; blr x0; ldp x29,x30,[sp],16; ret */
static const uint32_t with_fp[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
/* str x30,[sp,-16]!; blr x0; ldr x30,[sp],16; ret */
static const uint32_t without_fp[] = {0xf81f0ffe, 0xd63f0000, 0xf84107fe, 0xd65f03c0};
#endif

static void (*made)(void (*)(void));

static NOIPA void through_made(void)
{
    volatile int after = 0;
    made(compare);
    after++;
}

static char *make_code(void)
{
    char *code = map(4096, PROT_READ | PROT_WRITE);
    memcpy(code, with_fp, sizeof with_fp);
    memcpy(code + 64, without_fp, sizeof without_fp);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(code, code + 4096);
    return code;
}

/* libunwind would run out of this stack: not asked */
static size_t eat;

static void *no_room(void *arg)
{
    char *room = alloca(eat);
    USED(room);
    mine = arg;
    made(capture);
    USED(room);
    return (void *)(intptr_t)(bottom != GT_TRIE_CUT || count != 1);
}

START_TEST(made_and_no_room)
{
    enum { STACK = 64 << 10, LEFT = 6 << 10 };
    pthread_attr_t a;
    pthread_t t;
    void *r;
    begin();
    capture(); /* binds what is bound at first use */
    *(void **)&made = make_code();
    pthread_attr_init(&a);
    char *stack = map(STACK, PROT_READ | PROT_WRITE);
    mprotect(stack, 4096, PROT_NONE);
    pthread_attr_setstack(&a, stack, STACK);
    eat = STACK - 4096 - LEFT - 6000 /* glibc's own, about */;
    pthread_create(&t, &a, no_room, mine);
    pthread_join(t, &r);
    ck_assert_ptr_null(r);
    ck_assert_uint_eq(mine->fallbacks, 0);
}
END_TEST

/* How much of the stack a capture takes, the first one included: it has to fit where the program
 * would have been content with a call of libc. */
static void *paints(void *arg)
{
    mine = arg;
    capture();
    return (void *)__builtin_frame_address(0);
}

START_TEST(stack_use)
{
    enum { STACK = 128 << 10 };
    unsigned char *stack = map(STACK, PROT_READ | PROT_WRITE);
    pthread_attr_t a;
    pthread_t t;
    void *frame;
    begin();
    capture();
    gt_stack_reset(mine);
    gt_rules_forget();
    memset(stack, 0xa5, STACK);
    pthread_attr_init(&a);
    pthread_attr_setstack(&a, stack, STACK);
    pthread_create(&t, &a, paints, mine);
    pthread_join(t, &frame);
    size_t i = 0;
    while (stack[i] == 0xa5)
        i++;
    long used = (long)((unsigned char *)frame - (stack + i));
    printf("a first capture takes %ld bytes of the stack\n", used);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ck_assert_int_lt(used, 2560);
#endif
}
END_TEST

START_TEST(made_at_run_time)
{
    char *code = make_code();
    begin();
    for (int i = 0; i < 4; i++) {
        *(void **)&made = code + (i & 1) * 64;
        deeper(5, through_made);
        ck_assert_uint_eq(pcs[0] - (uint64_t)made < 64, 1);
        deeper(5, compare);
        ck_assert_uint_eq(bottom, GT_TRIE_ROOT);
    }
    ck_assert_int_eq(bad, 0);
    if (judge_backtrace)
        ck_assert_uint_eq(mine->fallbacks, 4);
    else
        ck_assert_uint_eq(mine->cut, 4);
}
END_TEST

/* ---- smashed ---- */

static const uint64_t wild[] = {
    0,
    1,
    8,
    0xffff,
    0x4141414141414141,
    0xffffffffffffff00,
    UINT64_MAX,
    0x7fffffffffff,
    0x800000000000,
    (uint64_t)1 << 63,
    (uint64_t)wild /* data */,
};
enum { WILD = sizeof wild / sizeof *wild };
static uint64_t value;
static int which;

/* Overwrites a word of its own frame for the time of the capture: 0 the caller's frame pointer,
 * 1 the return address, 2 both. */
static NOIPA void victim(void)
{
    volatile uint64_t *frame = __builtin_frame_address(0);
    uint64_t fp = frame[0], ra = frame[1];
    char *room = alloca((size_t)which * 16 + 16); /* so that rules go by the frame pointer */
    USED(room);
    if (which != 1)
        frame[0] = value;
    if (which != 0)
        frame[1] = value;
    capture();
    frame[0] = fp;
    frame[1] = ra;
    USED(room);
}

static NOIPA void by_fp(void)
{
    char *room = alloca((size_t)which * 32 + 16);
    USED(room);
    victim();
    USED(room);
}

/* The right frame pointer first, so that there is something to reuse; then a wrong one. */
static NOIPA void right_then_wrong(void)
{
    uint64_t wrong = value;
    char *room = alloca((size_t)which * 32 + 16);
    USED(room);
    for (volatile int i = 0; i < 2; i++) {
        value = i ? wrong : (uint64_t)__builtin_frame_address(0);
        victim();
        if (i == 0)
            ck_assert_uint_eq(bottom, GT_TRIE_ROOT);
    }
    value = wrong;
    USED(room);
}

static NOIPA void through_made_by_fp(void)
{
    char *room = alloca((size_t)which * 32 + 16);
    volatile uint64_t *frame = __builtin_frame_address(0);
    uint64_t fp = frame[0], ra = frame[1];
    USED(room);
    if (which != 1)
        frame[0] = value;
    if (which != 0)
        frame[1] = value;
    made(capture);
    frame[0] = fp;
    frame[1] = ra;
    USED(room);
}

static NOIPA void by_fp_through_made(void)
{
    char *room = alloca((size_t)which * 32 + 16);
    USED(room);
    through_made_by_fp();
    USED(room);
}

START_TEST(smashed)
{
    begin();
    *(void **)&made = make_code();
    for (which = 0; which < 3; which++)
        for (unsigned i = 0; i < WILD + 40; i++) {
            uint64_t near = (uint64_t)&near; /* and around here */
            value = i < WILD ? wild[i] : near - 4096 + (i - WILD) * 211;
            deeper(3, by_fp);
            ck_assert_int_ge(count, 1);
            /* victim's place is right whatever was done to it */
            ck_assert_uint_eq(pcs[0] - (uint64_t)&victim < 1024, 1);
            if (i < WILD && (value || !which))
                ck_assert_uint_eq(bottom, GT_TRIE_CUT);
            if (!which) {
                deeper(3, right_then_wrong);
                if (i < WILD)
                    ck_assert_uint_eq(bottom, GT_TRIE_CUT);
            }
            /* where libunwind has to help */
            deeper(3, by_fp_through_made);
            ck_assert_int_ge(count, 1);
            ck_assert(gt_where_code(mine, pcs[count - 1])); /* no frame is a guess into data */
            if (i < WILD && (value || !which))
                ck_assert_uint_eq(bottom, GT_TRIE_CUT);
        }
    which = 0;
    value = (uint64_t)__builtin_frame_address(0);
    deeper(3, compare);
    ck_assert_int_eq(bad, 0);
    ck_assert_uint_eq(bottom, GT_TRIE_ROOT);
}
END_TEST

static void *in_small(void *arg)
{
    mine = arg;
    for (int i = 0; i < 3; i++) {
        deeper(i, by_fp);
        if (bottom != GT_TRIE_CUT || !count)
            return (void *)1;
        deeper(i, by_fp_through_made);
        if (bottom != GT_TRIE_CUT || !count)
            return (void *)1;
    }
    return NULL;
}

static void *in_large(void *arg)
{
    mine = arg;
    deeper(3, capture);
    return (void *)(intptr_t)(bottom != GT_TRIE_ROOT);
}

/* As on Linux before 6.11: no ioctl of the kind that asks for the mapping at an address. */
static int old_kernel(void)
{
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
    struct sock_filter lines[] = {
        LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        LOAD(args[1]),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, _IOWR('f', 17, char[104]), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof lines / sizeof *lines, lines};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
}

/* A smaller stack where a larger one was: a wild frame pointer may lead to where nothing is now. */
START_TEST(smaller_stack)
{
    enum { LARGE = 256 << 10, SMALL = 128 << 10 };
    char *area = map(LARGE, PROT_READ | PROT_WRITE);
    pthread_attr_t a;
    pthread_t t;
    void *r;

    if (getenv("GT_TEST_EMULATED")) {
        printf("SKIP: qemu-user can't tell what lies at an address\n");
        return;
    }
    if (_i && old_kernel()) {
        printf("SKIP: no filter of system calls\n");
        return;
    }
    begin();
    *(void **)&made = make_code();
    pthread_attr_init(&a);
    for (int round = 0; round < 2; round++) {
        mprotect(area, LARGE, PROT_READ | PROT_WRITE);
        pthread_attr_setstack(&a, area, LARGE);
        pthread_create(&t, &a, in_large, mine);
        pthread_join(t, &r);
        ck_assert_ptr_null(r);
        if (round) /* the next thread takes it over, else it is as if fibres took turns */
            gt_stack_reset(mine);
        mprotect(area + SMALL, LARGE - SMALL, PROT_NONE);
        which = 0;
        value = (uint64_t)area + SMALL + 4096;
        pthread_attr_setstack(&a, area, SMALL);
        pthread_create(&t, &a, in_small, mine);
        pthread_join(t, &r);
        ck_assert_ptr_null(r);
    }
}
END_TEST

#ifdef __x86_64__
static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* A function whose first instruction is interrupted, behind one that ends with a large frame: the
 * rule is that of the instruction, not of the one before. */
__asm__(".text\n.type before,@function\nbefore:\n.cfi_startproc\n"
        "sub $1000,%rsp\n.cfi_adjust_cfa_offset 1000\nud2\n.cfi_endproc\n.size before,.-before\n"
        ".type at_first,@function\nat_first:\n.cfi_startproc\nud2\nret\n.cfi_endproc\n"
        ".size at_first,.-at_first\n");
void at_first(void);

static void on_ud2(int sig, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    (void)sig, (void)info;
    compare();
    u->uc_mcontext.gregs[REG_RIP] += 2;
}

START_TEST(interrupted_at_first)
{
    struct sigaction a = {.sa_sigaction = on_ud2, .sa_flags = SA_SIGINFO};
    begin();
    sigaction(SIGILL, &a, NULL);
    for (int i = 0; i < 3; i++) {
        deeper(4, at_first);
        ck_assert_int_gt(count, 7);
        ck_assert_uint_eq(bottom, GT_TRIE_ROOT);
        uint32_t node = mine->frames[mine->count].node;
        for (int k = 0; k < 2; k++) /* handler, its return, the function */
            node = gt_trie_node(&mine->trie, node)->parent;
        ck_assert_uint_eq(gt_trie_node(&mine->trie, node)->pc, (uint64_t)&at_first | GT_TRIE_EXACT);
    }
    ck_assert_int_eq(bad, 0);
    ck_assert_uint_eq(mine->fallbacks, 0);
}
END_TEST

/* ---- every instruction: through PLT stubs, the lazy binder, prologues and epilogues ---- */

static long stepped;

static void on_step(int sig)
{
    (void)sig;
    stepped++;
    if (bad < 5)
        compare();
}

static NOIPA int work(int n)
{
    char text[64];
    int v[5] = {5, n, 3, 2, 1};
    snprintf(text, sizeof text, "%d %s %.3f", n, "words", 1.5 * n);
    qsort(v, 5, sizeof *v, by_value);
    return (int)strtol(text, NULL, 10) + v[0] + (int)strcspn(text, "w") + atoi(text + 1);
}

static void work_twice(void)
{
    which += work(7) + work(8);
}

/* The processor stops behind each instruction (the trap flag), and the handler captures. */
static void single_steps(void)
{
    __asm__ volatile("pushfq; orq $0x100,(%%rsp); popfq" ::: "memory", "cc");
    work_twice();
    __asm__ volatile("pushfq; andq $~0x100,(%%rsp); popfq" ::: "memory", "cc");
}

START_TEST(every_instruction)
{
    struct sigaction a = {.sa_handler = on_step};
    begin();
    sigaction(SIGTRAP, &a, NULL);
    deeper(2, single_steps);
    printf("%ld instructions, %d differ, %lu by libunwind, %lu cut\n", stepped, bad,
           (unsigned long)mine->fallbacks, (unsigned long)mine->cut);
    ck_assert_int_gt(stepped, 1000);
    ck_assert_int_eq(bad, 0);
    /* behind the two pushfq, which are not described */
    ck_assert_uint_le(mine->cut, 2);
}
END_TEST

/* Its frame is found through memory. */
static NOIPA void realigned(void)
{
    char *room = alloca((size_t)which * 32 + 16);
    char wide[64] __attribute__((aligned(64)));
    USED(room);
    USED(wide);
    compare();
    USED(room);
    USED(wide);
}

START_TEST(realigned_stack)
{
    begin();
    for (int i = 0; i < 3; i++)
        deeper(3, realigned);
    ck_assert_int_eq(bad, 0);
    ck_assert_uint_eq(bottom, GT_TRIE_ROOT);
    ck_assert_uint_eq(mine->fallbacks, 0);
}
END_TEST
#define REALIGNED realigned
#else
#define REALIGNED deeper
#endif

static uint64_t random_state = 7;
static uint64_t rnd(uint64_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 20) % below;
}

/* A stack full of what could be return addresses, frame pointers, or anything, between two pages
 * that may not be touched. Any read outside kills the test. */
START_TEST(random_stacks)
{
    enum { PAGES = 4 };
    char *area = map((PAGES + 2) * 4096, PROT_NONE);
    uint64_t *words = (uint64_t *)(area + 4096);
    uint64_t lo = (uint64_t)words, n = PAGES * 4096 / 8;
    uint64_t texts[] = {(uint64_t)&judge_open, (uint64_t)&qsort, (uint64_t)&dlopen,
                        (uint64_t)&pthread_create, (uint64_t)&REALIGNED};

    begin();
    mprotect(words, PAGES * 4096, PROT_READ | PROT_WRITE);
    for (int i = 0; i < 30000; i++) {
        if (i % 50 == 0)
            for (uint64_t k = 0; k < n; k++) {
                uint64_t r = rnd(8);
                words[k] = r < 4   ? texts[rnd(5)] + (rnd(2) ? rnd(4096) - 1024 : rnd(150))
                           : r < 7 ? lo + rnd(PAGES * 4096 + 64)
                                   : rnd(UINT64_MAX);
            }
        struct gt_regs at = {texts[rnd(5)] + (rnd(2) ? rnd(2048) : rnd(150)),
                             lo + rnd(PAGES * 512) * 8, lo + rnd(PAGES * 4096)};
        gt_stack_capture(mine, &at);
        if (i % 7 == 0)
            gt_stack_capture(mine, &at);
    }
    ck_assert_uint_gt(mine->walked, 30000);
}
END_TEST

#ifdef __SANITIZE_THREAD__
enum { HERE = 0 };
#else
enum { HERE = 1 };
#endif

START_TEST(not_here)
{
    printf("SKIP: one thread, and signals at every place, which ThreadSanitizer holds back\n");
}
END_TEST

static void add_tests(TCase *c)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    tcase_add_test(c, no_malloc);
#endif
    tcase_add_test(c, fibres);
    tcase_add_loop_test(c, alternate_stack, 0, 2);
    tcase_add_test(c, small_threads);
    tcase_add_test(c, least_thread_stack);
    tcase_add_test(c, made_at_run_time);
    tcase_add_test(c, made_and_no_room);
    tcase_add_test(c, stack_use);
    tcase_add_test(c, smashed);
    tcase_add_loop_test(c, smaller_stack, 0, 2);
#ifdef __x86_64__
    tcase_add_test(c, interrupted_at_first);
    tcase_add_test(c, every_instruction);
    tcase_add_test(c, realigned_stack);
#endif
    tcase_add_test(c, random_stacks);
}

int main(void)
{
    Suite *s = suite_create("stack_odd");
    TCase *c = tcase_create("odd");
    if (HERE)
        add_tests(c);
    else
        tcase_add_test(c, not_here);
    tcase_set_timeout(c, 120);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
