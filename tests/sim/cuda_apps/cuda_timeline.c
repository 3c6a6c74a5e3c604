/* Streams and events whose times the simulated GPU makes exact: prints nanoseconds between events.
 * Usage: cuda_timeline CUBIN */
#include "cuda_client.h"
#include <math.h>
#include <pthread.h>

/* the per-thread variants are there whatever the headers were compiled for */
CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, unsigned, CUstream, void **, void **);
CUresult cuEventRecord_ptsz(CUevent, CUstream);

static CUmodule module;
static CUfunction fill, scale, mixed, nothing;
static CUdeviceptr memory;
static CUcontext context;

static long between(CUevent a, CUevent b)
{
    float ms = -1;

    OK(cuEventElapsedTime(&ms, a, b));
    return lroundf(ms * 1e6f);
}

static CUevent event(void)
{
    CUevent e = NULL;

    OK(cuEventCreate(&e, 0));
    return e;
}

static CUevent mark(CUstream s)
{
    CUevent e = event();

    OK(cuEventRecord(e, s));
    return e;
}

static void run(CUfunction f, CUstream s)
{
    struct {
        char c[5];
        short s;
    } odd = {{0}, 0};
    int n = 4;
    float v = 1;
    double b = 2;
    char c = 0;

    if (f == fill)
        OK(cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, s, (void *[]){&memory, &n, &v}, NULL));
    else if (f == scale)
        OK(cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, s, (void *[]){&memory, &n, &b}, NULL));
    else if (f == mixed)
        OK(cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, s, (void *[]){&c, &b, &odd, &memory}, NULL));
    else
        OK(cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, s, NULL, NULL));
}

static void one_stream(void)
{
    static char host[160000];
    CUdeviceptr d;
    CUstream s;

    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&d, sizeof host));
    CUevent a = mark(s);
    run(fill, s);
    CUevent b = mark(s);
    OK(cuMemcpyHtoDAsync(d, host, sizeof host, s));
    CUevent c = mark(s);
    OK(cuMemsetD8Async(d, 1, sizeof host, s));
    CUevent e = mark(s);
    run(nothing, s);
    CUevent f = mark(s);
    float ms;
    FAILS(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, a, b));
    FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    OK(cuStreamSynchronize(s));
    OK(cuStreamQuery(s));
    printf("kernel %ld copy %ld set %ld nothing %ld\n", between(a, b), between(b, c), between(c, e),
           between(e, f));
    OK(cuMemFree(d));
    OK(cuStreamDestroy(s));
}

static void several_streams(void)
{
    CUstream s[3];

    for (int i = 0; i < 3; i++)
        OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
    CUevent start = mark(s[0]);
    run(fill, s[0]);
    run(fill, s[0]);
    CUevent first = mark(s[0]);
    run(mixed, s[1]);
    CUevent second = mark(s[1]);
    OK(cuStreamWaitEvent(s[2], first, 0));
    run(scale, s[2]);
    CUevent third = mark(s[2]);
    OK(cuCtxSynchronize());
    printf("overlap %ld %ld, after the first %ld\n", between(start, first), between(start, second),
           between(start, third));
    for (int i = 0; i < 3; i++)
        OK(cuStreamDestroy(s[i]));
}

static void legacy(void)
{
    CUstream blocking, free_;

    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&free_, CU_STREAM_NON_BLOCKING));
    CUevent start = mark(free_);
    run(fill, blocking);
    run(scale, NULL);
    CUevent in_legacy = mark(NULL);
    run(nothing, blocking);
    CUevent after = mark(blocking);
    run(nothing, free_);
    CUevent apart = mark(free_);
    OK(cuCtxSynchronize());
    printf("legacy %ld, after it %ld, apart %ld\n", between(start, in_legacy),
           between(start, after), between(start, apart));
    OK(cuStreamDestroy(blocking));
    OK(cuStreamDestroy(free_));
}

static void *own_stream(void *ends)
{
    OK(cuCtxSetCurrent(context));
    OK(cuLaunchKernel_ptsz(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuLaunchKernel_ptsz(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuEventRecord_ptsz(ends, NULL));
    return NULL;
}

static void per_thread(void)
{
    CUevent start = mark(NULL), ends[2] = {event(), event()};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, own_stream, ends[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    OK(cuCtxSynchronize());
    printf("two threads %ld %ld\n", between(start, ends[0]), between(start, ends[1]));
}

static void polling(void)
{
    const char *step = getenv("GTSIM_POLL_NS");
    int polls = 0;
    CUstream s;

    if (step && !strcmp(step, "0"))
        return; /* queries take no time then: this would never end */
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    run(fill, s);
    CUevent e = mark(s);
    while (cuEventQuery(e) == CUDA_ERROR_NOT_READY)
        polls++;
    printf("polls %d\n", polls);
    OK(cuStreamDestroy(s));
}

/* more than a device's queue holds: launching waits, nothing is lost */
static void many(void)
{
    CUstream s;

    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUevent a = mark(s);
    for (int i = 0; i < 3000; i++)
        run(nothing, s);
    CUevent b = mark(s);
    OK(cuStreamSynchronize(s));
    printf("3000 kernels %ld\n", between(a, b));
    OK(cuStreamDestroy(s));
}

static void called(void *n)
{
    ++*(int *)n;
}

static void host_functions(void)
{
    int n = 0;

    OK(cuLaunchHostFunc(NULL, called, &n));
    run(nothing, NULL);
    OK(cuLaunchHostFunc(NULL, called, &n));
    OK(cuCtxSynchronize());
    printf("host functions %d\n", n);
}

int main(int argc, char **argv)
{
    module = cuda_start(argc, argv);
    OK(cuCtxGetCurrent(&context));
    OK(cuMemAlloc(&memory, 4096));
    OK(cuModuleGetFunction(&fill, module, "_Z9fill_20usPfif"));
    OK(cuModuleGetFunction(&scale, module, "_Z9scale_3usIdEvPT_iS0_"));
    OK(cuModuleGetFunction(&mixed, module, "mixed_1ms"));
    OK(cuModuleGetFunction(&nothing, module, "nothing_500ns"));
    one_stream();
    several_streams();
    legacy();
    per_thread();
    polling();
    many();
    host_functions();
    return cuda_end();
}
