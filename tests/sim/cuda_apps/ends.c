/* More of what public bug reports of other tools did, on the simulated driver and without nvcc.
 * Usage: ends MODE CUBIN. The modes:
 *   worker   main holds a range while another thread launches
 *   graph    three kernels are captured, the graph is launched ten times
 *   cross    ranges begun on one thread and ended on another, launches in between
 *   threads  2,000 short threads, 300 at once; each launches once and leaves a range open
 *   fork     children begin while three threads launch, and end by exit and _exit
 *   forked   a child calls the driver, where its parent's launches may still wait
 *   handler  a timer's handler calls exit while the thread is in the driver, or in us
 *   forever  says when it has begun, and launches until it is killed
 *   nulls    what the driver must refuse is passed on as it is */
#include <cuda.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "gputally.h"

static CUcontext context;
static CUfunction relu;
static CUdeviceptr block;

static void check(CUresult r, const char *what)
{
    if (r == CUDA_SUCCESS)
        return;
    printf("%s: error %d\n", what, (int)r);
    exit(1);
}
#define CHECK(call) check(call, #call)

static void prepare(const char *cubin)
{
    CUdevice device;
    CUmodule module;

    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoad(&module, cubin));
    CHECK(cuModuleGetFunction(&relu, module, "relu_5us"));
    CHECK(cuMemAlloc(&block, 4096));
}

static void launch(CUstream stream, int times)
{
    int n = 1024;

    for (int i = 0; i < times; i++)
        CHECK(cuLaunchKernel(relu, 4, 1, 1, 256, 1, 1, 0, stream, (void *[]){&n, &block}, NULL));
}

static void in_thread(void *(*f)(void *), void *with)
{
    pthread_t t;

    if (pthread_create(&t, NULL, f, with))
        exit(99);
    pthread_join(t, NULL);
}

/* ---- whose a launch is ---- */

static void *launches(void *unused)
{
    CHECK(cuCtxSetCurrent(context));
    launch(NULL, 3);
    gputally_range_push("worker");
    launch(NULL, 2);
    gputally_range_pop();
    return unused;
}

static int worker(void)
{
    gputally_range_push("main holds");
    in_thread(launches, NULL);
    launch(NULL, 1);
    CHECK(cuCtxSynchronize());
    gputally_range_pop();
    return 0;
}

static int graph(void)
{
    CUstream s;
    CUgraph g;
    CUgraphExec exec;

    CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    gputally_range_push("capture");
    CHECK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch(s, 3);
    CHECK(cuStreamEndCapture(s, &g));
    gputally_range_pop();
    CHECK(cuGraphInstantiateWithFlags(&exec, g, 0));
    gputally_range_push("replay");
    for (int i = 0; i < 10; i++)
        CHECK(cuGraphLaunch(exec, s));
    CHECK(cuStreamSynchronize(s));
    gputally_range_pop();
    return 0;
}

static uint64_t ids[4];

static void *ends(void *unused)
{
    CHECK(cuCtxSetCurrent(context));
    gputally_range_end(ids[2]);
    launch(NULL, 2);
    gputally_range_end(ids[0]);
    gputally_range_pop(); /* of a range that this thread never began */
    ids[3] = gputally_range_start("begun elsewhere");
    return unused;
}

static int cross(void)
{
    gputally_range_push("around");
    for (int i = 0; i < 3; i++)
        ids[i] = gputally_range_start(i == 1 ? "overlaps" : "ended elsewhere");
    launch(NULL, 1);
    in_thread(ends, NULL);
    gputally_range_pop(); /* before those that began in it */
    launch(NULL, 1);
    gputally_range_end(ids[3]);
    gputally_range_end(ids[1]);
    CHECK(cuCtxSynchronize());
    return 0;
}

/* ---- many threads ---- */

static void *short_one(void *together)
{
    CHECK(cuCtxSetCurrent(context));
    gputally_range_push("never closed");
    launch(NULL, 1);
    if (together)
        pthread_barrier_wait(together);
    return NULL;
}

static int threads(void)
{
    enum { ALL = 2000, AT_ONCE = 300 };
    static pthread_t t[AT_ONCE];
    pthread_barrier_t together;

    pthread_barrier_init(&together, NULL, AT_ONCE);
    for (int i = 0; i < AT_ONCE; i++)
        if (pthread_create(&t[i], NULL, short_one, &together))
            return 99;
    for (int i = 0; i < AT_ONCE; i++)
        pthread_join(t[i], NULL);
    for (int i = AT_ONCE; i < ALL; i++)
        in_thread(short_one, NULL);
    CHECK(cuCtxSynchronize());
    return 0;
}

static atomic_int stop;
static atomic_long launched;

static void *until_stopped(void *unused)
{
    CHECK(cuCtxSetCurrent(context));
    while (!atomic_load(&stop)) {
        gputally_range_push("step");
        launch(NULL, 1);
        gputally_range_pop();
        atomic_fetch_add(&launched, 1);
    }
    return unused;
}

static int forks(void)
{
    pthread_t t[3];

    for (int i = 0; i < 3; i++)
        if (pthread_create(&t[i], NULL, until_stopped, NULL))
            return 99;
    for (int i = 0; i < 20; i++) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
            gputally_range_push("child");
            gputally_range_pop();
            if (i % 2)
                exit(i);
            _exit(i);
        }
        if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != i)
            printf("child %d: status %#x\n", i, (unsigned)status);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    CHECK(cuCtxSynchronize());
    fprintf(stderr, "launched %ld\n", (long)launched);
    return 0;
}

/* Launches that nobody has waited for yet are the parent's. Nor does the child wait for its own. */
static int forked(void)
{
    int status;
    pid_t pid;

    launch(NULL, 8);
    pid = fork();
    if (pid == 0) {
        usleep(1000); /* they have ended by now */
        gputally_range_push("child");
        (void)cuCtxSetCurrent(context);
        (void)cuCtxSynchronize();
        gputally_range_pop();
        exit(5);
    }
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 5)
        return 1;
    CHECK(cuCtxSynchronize());
    return 0;
}

/* ---- ends ---- */

static void leave(int sig)
{
    (void)sig;
    exit(7);
}

static _Noreturn int handler(void)
{
    struct itimerval t = {.it_value = {.tv_usec = 1 + (getpid() * 37) % 3000}};

    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &t, NULL);
    for (;;) {
        launch(NULL, 5);
        CHECK(cuCtxSynchronize());
    }
}

static int forever(void)
{
    gputally_range_push("open");
    launch(NULL, 8);
    CHECK(cuCtxSynchronize());
    printf("began\n");
    fflush(stdout);
    until_stopped(NULL);
    return 0;
}

static int nulls(void)
{
    int n = 1024;

    printf("%d\n", (int)cuMemAlloc(NULL, 4096));
    printf("%d\n", (int)cuMemAlloc(&block, 0));
    printf("%d\n", (int)cuMemFree(0));
    printf("%d\n", (int)cuMemFree(12345));
    printf("%d\n", (int)cuMemAllocPitch(NULL, NULL, 4, 4, 4));
    printf("%d\n", (int)cuMemcpyHtoD(0, NULL, 64));
    printf("%d\n", (int)cuMemsetD32(0, 0, 64));
    printf("%d\n", (int)cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    printf("%d\n",
           (int)cuLaunchKernel(relu, 0, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&n, &block}, NULL));
    printf("%d\n", (int)cuLaunchKernel(relu, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    printf("%d\n", (int)cuLaunchKernelEx(NULL, relu, NULL, NULL));
    printf("%d\n", (int)cuGraphLaunch(NULL, NULL));
    printf("%d\n", (int)cuMemcpy3D(NULL));
    printf("%d\n", (int)cuMemcpy2D(NULL));
    printf("%d\n", (int)cuModuleGetFunction(NULL, NULL, NULL));
    printf("%d\n", (int)cuStreamCreate(NULL, 0));
    printf("%d\n", (int)cuArrayCreate(NULL, NULL));
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*f)(void);
    } modes[] = {{"worker", worker},   {"graph", graph}, {"cross", cross},
                 {"threads", threads}, {"fork", forks},  {"handler", handler},
                 {"forever", forever}, {"nulls", nulls}, {"forked", forked}};

    for (size_t i = 0; argc == 3 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[1], modes[i].name) == 0) {
            prepare(argv[2]);
            return modes[i].f();
        }
    return 2;
}
