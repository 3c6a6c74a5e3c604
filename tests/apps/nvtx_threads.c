/* nvtx_threads [THREADS PAIRS] [--expect]: each thread does PAIRS push/pop pairs of "pair", inside
 * one "worker", with a name that half of the threads give in another domain. Exit 77: no NVTX
 * headers. */
#include "nvtx_client.h"

#if HAVE_NVTX
#include <pthread.h>
#include <stdlib.h>

static long pairs = 1000;
static nvtxDomainHandle_t odd;

static void *worker(void *arg)
{
    nvtxEventAttributes_t a = text_attr("pair");
    nvtxDomainHandle_t domain = (long)arg % 2 ? odd : NULL;

    nvtxRangePushA("worker");
    for (long i = 0; i < pairs; i++) {
        nvtxDomainRangePushEx(domain, &a);
        nvtxDomainRangePop(domain);
    }
    nvtxRangePop();
    return NULL;
}

int main(int argc, char **argv)
{
    long threads = 4;
    pthread_t *t;

    client_start(argc, argv);
    if (argc > 2 && argv[1][0] != '-') {
        threads = atol(argv[1]);
        pairs = atol(argv[2]);
    }
    if (threads < 1 || pairs < 0 || !(t = calloc((size_t)threads, sizeof(*t))))
        return 2;
    odd = nvtxDomainCreateA("odd");
    for (long i = 0; i < threads; i++)
        if (pthread_create(&t[i], NULL, worker, (void *)i) != 0)
            return 3;
    for (long i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    free(t);
    expect("worker", threads);
    expect("pair", (threads + 1) / 2 * pairs);
    expect("odd:pair", threads / 2 * pairs);
    puts("done");
    return 0;
}
#else
int main(void)
{
    return no_nvtx();
}
#endif
