/* A program that is linked with libroctx64.so.4: all that is right, then all that is wrong, on one
 * thread and on several. Prints the results it got and how many calls the library saw, which are
 * the same whoever listens. --expect as in nvtx_basic.c; `pause`: what happens between pause and
 * resume; `fork`: goes on in a child; `kill`: dies with ranges open. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void roctxMarkA(const char *text);
int roctxNameOsThread(const char *name);
int roctxProfilerPause(uint64_t tid);
int roctxProfilerResume(uint64_t tid);
int roctxRangePop(void);
int roctxRangePushA(const char *text);
uint64_t roctxRangeStartA(const char *text);
void roctxRangeStop(uint64_t id);
unsigned roctxStubCalls(void);
uint32_t roctx_version_major(void);

/* By a handle that leads to whoever is first, before any other call. */
static void through_the_program(void)
{
    void *self = dlopen(NULL, RTLD_NOW);
    int (*push)(const char *) = (int (*)(const char *))dlsym(self, "roctxRangePushA");

    printf("push %d", push("looked up"));
    printf(" pop %d\n", roctxRangePop());
}

static void right(void)
{
    uint64_t a, b;

    printf("name %d\n", roctxNameOsThread("the main one"));
    for (int i = 0; i < 3; i++) {
        printf("push %d\n", roctxRangePushA("outer"));
        for (int j = 0; j < 4; j++) {
            printf("push %d", roctxRangePushA("inner"));
            printf(" pop %d\n", roctxRangePop());
        }
        printf("pop %d\n", roctxRangePop());
    }
    roctxMarkA("mark");
    a = roctxRangeStartA("async");
    b = roctxRangeStartA("async");
    printf("ids %d %d\n", (int)a, (int)b);
    roctxRangeStop(a);
    roctxRangeStop(b);
}

static void wrong(void)
{
    static uint64_t ids[2000];
    uint64_t id;

    printf("pop %d\n", roctxRangePop());
    roctxRangeStop(0);
    roctxRangeStop(UINT64_MAX);
    roctxRangeStop(123456);
    id = roctxRangeStartA("once");
    roctxRangeStop(id);
    roctxRangeStop(id);
    printf("name %d\n", roctxNameOsThread(NULL));
    printf("push %d\n", roctxRangePushA(NULL));
    printf("pop %d\n", roctxRangePop());
    roctxMarkA(NULL);
    roctxRangeStop(roctxRangeStartA(NULL));
    /* many at once, but no more than are followed */
    for (int i = 0; i < 2000; i++)
        ids[i] = roctxRangeStartA("many");
    for (int i = 1999; i >= 0; i--)
        roctxRangeStop(ids[i]);
    /* PyTorch's own text */
    roctxRangePushA("aten::mm, seq = 5, op_id = 12, sizes = [[2, 3], [3, 4]]");
    roctxRangePop();
}

#define WORKERS 4
static uint64_t handed[WORKERS];

static void *worker(void *arg)
{
    intptr_t me = (intptr_t)arg;

    for (int i = 0; i < 500; i++) {
        roctxRangePushA("thread");
        roctxRangeStop(roctxRangeStartA("thread async"));
        roctxRangePop();
    }
    handed[me] = roctxRangeStartA("handed over");
    return NULL;
}

static void threads(void)
{
    pthread_t thread[WORKERS];

    for (intptr_t i = 0; i < WORKERS; i++)
        pthread_create(&thread[i], NULL, worker, (void *)i);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < WORKERS; i++)
        roctxRangeStop(handed[i]);
}

static void paused(void)
{
    uint64_t open, unseen;

    open = roctxRangeStartA("over the pause");
    printf("%d%d\n", roctxProfilerPause(0), roctxProfilerPause(0)); /* does not nest */
    printf("push %d\n", roctxRangePushA("unseen"));
    printf("pop %d\n", roctxRangePop());
    unseen = roctxRangeStartA("unseen");
    roctxMarkA("unseen");
    roctxRangeStop(open);
    printf("%d%d\n", roctxProfilerResume(0), roctxProfilerResume(0));
    roctxRangeStop(unseen);
    roctxRangePushA("seen");
    roctxRangePop();
    roctxProfilerPause((uint64_t)gettid()); /* one thread: not followed */
    roctxRangePushA("seen");
    roctxRangePop();
    roctxProfilerResume((uint64_t)gettid());
    puts("expect over the pause 1\nexpect seen 2");
}

/* More open at once than are followed. */
static void flood(void)
{
    static uint64_t ids[6000];

    for (int i = 0; i < 6000; i++)
        ids[i] = roctxRangeStartA("flood");
    for (int i = 0; i < 6000; i++)
        roctxRangeStop(ids[i]);
    roctxRangeStop(roctxRangeStartA("after"));
}

static void forked(void)
{
    uint64_t open = roctxRangeStartA("parent's");
    pid_t child;

    roctxRangePushA("around");
    child = fork();
    if (child == 0) {
        roctxRangeStop(open);
        roctxRangeStop(roctxRangeStartA("child's"));
        _exit(roctxRangePop());
    }
    waitpid(child, NULL, 0);
    roctxRangePop();
    roctxRangeStop(open);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    if (strcmp(mode, "pause") == 0) {
        paused();
    } else if (strcmp(mode, "flood") == 0) {
        flood();
    } else if (strcmp(mode, "fork") == 0) {
        forked();
    } else if (strcmp(mode, "kill") == 0) {
        roctxRangeStartA("open async");
        roctxRangePushA("open");
        right();
        fflush(stdout);
        raise(SIGKILL);
    } else {
        through_the_program();
        right();
        wrong();
        threads();
        if (strcmp(mode, "--expect") == 0)
            puts("expect looked up 1\nexpect outer 3\nexpect inner 12\nexpect mark 1\nexpect async "
                 "2\nexpect once 1\n"
                 "expect (null) 3\nexpect many 2000\nexpect aten::mm 1\nexpect thread 2000\n"
                 "expect thread async 2000\nexpect handed over 4\ntotal unbalanced 5");
    }
    printf("version %d, %u calls\n", (int)roctx_version_major(), roctxStubCalls());
    return 0;
}
