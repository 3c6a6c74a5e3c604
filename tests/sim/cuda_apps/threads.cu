// Four threads with three streams each: every launch is in a range of its thread, every result is
// checked. THREADS_LAUNCHES: launches a stream, 10.
#include <thread>
#include <vector>
#include "app.h"
#ifdef OWN_CUPTI
#include "cupti_own.h"
#endif

static const int N = 256, STREAMS = 3, THREADS = 4;
static int launches = 10;

static float done(int) { return 1.0f + launches; }

static void work(int number, float (*host)[N])
{
    char name[32];
    snprintf(name, sizeof name, "thread %d", number);
    Range r(name);
    cudaStream_t s[STREAMS];
    float *x[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
        CHECK(cudaMalloc(&x[i], sizeof host[i]));
        fill<float><<<1, N, 0, s[i]>>>(x[i], N, 1);
    }
    for (int n = 0; n < launches; n++)
        for (int i = 0; i < STREAMS; i++)
            add_5us<<<1, N, 0, s[i]>>>(N, 1, x[i]);
    for (int i = 0; i < STREAMS; i++) {
        CHECK(cudaMemcpyAsync(host[i], x[i], sizeof host[i], cudaMemcpyDeviceToHost, s[i]));
        CHECK(cudaStreamSynchronize(s[i]));
        CHECK(cudaFree(x[i]));
        CHECK(cudaStreamDestroy(s[i]));
    }
}

int main()
{
    if (const char *e = getenv("THREADS_LAUNCHES"))
        launches = atoi(e);
#ifdef OWN_CUPTI
    own_start();
#endif
    static float host[THREADS][STREAMS][N];
    std::vector<std::thread> all;
    for (int t = 0; t < THREADS; t++)
        all.emplace_back(work, t, host[t]);
    for (auto &t : all)
        t.join();
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < STREAMS; i++)
            expect("stream", host[t][i], N, done);
#ifdef OWN_CUPTI
    own_print();
#endif
    printf("done\n");
    return 0;
}
