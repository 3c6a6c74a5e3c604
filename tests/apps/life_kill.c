/* Client of the kill test: four threads that record until they are killed, and keep their own count
 * of it in a file that outlives them. life_kill FILE [early]   FILE: uint64_t [THREADS][NAMES][2],
 * started before and finished after each call of ours. Prints its pid when all threads are at it,
 * or with `early` before the first has begun. life_kill many           opens 40 x 50 ranges of
 * different names, prints its pid and waits. */
#include "gputally.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4, RANGES = 4, ASYNC = RANGES, MARK, NAMES };
static const char *const names[NAMES] = {"one", "two", "three", "four", "async", "mark"};

typedef volatile uint64_t counts[NAMES][2];
static counts *all;
static pthread_barrier_t at_it;

/* The stores stand in the program's order: volatile for the compiler, and a killed thread has done
 * all it was past. */
#define STARTED(i) ((*mine)[i][0]++)
#define FINISHED(i) ((*mine)[i][1]++)

static void work(counts *mine, unsigned i)
{
    unsigned depth = 1 + i % RANGES;
    uint64_t id = 0;

    if (i % 3 == 0) {
        STARTED(ASYNC);
        id = gputally_range_start(names[ASYNC]);
    }
    for (unsigned k = 0; k < depth; k++) {
        STARTED(k);
        gputally_range_push(names[k]);
    }
    if (i % 5 == 0) {
        STARTED(MARK);
        gputally_mark(names[MARK]);
        FINISHED(MARK);
    }
    for (unsigned k = depth; k-- > 0;) {
        gputally_range_pop();
        FINISHED(k);
    }
    if (id) {
        gputally_range_end(id);
        FINISHED(ASYNC);
    }
}

static void *thread(void *arg)
{
    counts *mine = arg;
    char name[16];

    snprintf(name, sizeof name, "worker %d", (int)(mine - all));
    pthread_setname_np(pthread_self(), name);
    work(mine, 0);
    pthread_barrier_wait(&at_it);
    for (unsigned i = 1;; i++)
        work(mine, i);
    return NULL;
}

static void tell(void)
{
    printf("%d\n", (int)getpid());
    fflush(stdout);
}

static void many(void)
{
    char outer[16] = "outer ..", inner[16] = "inner ..";

    for (int i = 0; i < 40; i++) {
        outer[6] = (char)('a' + i / 10);
        outer[7] = (char)('a' + i % 10);
        gputally_range_push(outer);
        for (int k = 0; k < 50; k++) {
            inner[6] = (char)('a' + k / 10);
            inner[7] = (char)('a' + k % 10);
            gputally_range_push(inner);
            gputally_range_pop();
        }
        gputally_range_pop();
    }
    tell();
    pause();
}

int main(int argc, char **argv)
{
    int early = argc > 2, fd;
    pthread_t id;

    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "many") == 0)
        many();
    fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, THREADS * sizeof *all))
        return 1;
    all = mmap(NULL, THREADS * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (all == MAP_FAILED)
        return 1;
    pthread_barrier_init(&at_it, NULL, THREADS + 1);
    if (early)
        tell();
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&id, NULL, thread, (void *)(all + i)))
            return 1;
    pthread_barrier_wait(&at_it);
    if (!early)
        tell();
    pause();
    return 1;
}
