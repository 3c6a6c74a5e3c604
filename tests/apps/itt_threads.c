/* itt_threads [MODE] [--expect]: four threads, each 1,000 times an overlapped task that the next
 * thread ends, inside nested tasks of two domains. MODE fork: then a child does 5 tasks of its own
 * inside one that was open. MODE kill: kills itself with everything open. */
#include "itt_client.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define TIMES 1000

static struct gt_itt_domain *one, *two;
static pthread_barrier_t all_begun;

static void *worker(void *arg)
{
    unsigned long me = (unsigned long)arg, next = (me + 1) % THREADS;
    struct gt_itt_string *s = GET(string_handle_create, "handed on");

    begin(one, "worker");
    for (unsigned long i = 0; i < TIMES; i++) {
        IN(task_begin_overlapped, two, id_of(me * TIMES + i), no_id, s);
        begin(two, "step");
        begin(one, "inner");
        end(one);
        end(two);
    }
    pthread_barrier_wait(&all_begun);
    for (unsigned long i = 0; i < TIMES; i++)
        IN(task_end_overlapped, two, id_of(next * TIMES + i));
    end(one);
    return NULL;
}

static void fork_child(void)
{
    pid_t pid;
    int status = -1;

    begin(one, "around");
    IN(task_begin_overlapped, two, id_of(1), no_id, GET(string_handle_create, "parent's"));
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 5; i++) {
            begin(GET(domain_create, "one"), "child");
            end(one);
        }
        end(one); /* the inherited one */
        exit(0);
    }
    waitpid(pid, &status, 0);
    IN(task_end_overlapped, two, id_of(1));
    end(one);
    printf("child %d\n", status);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    pthread_t t[THREADS];

    client_start(argc, argv);
    itt_start();
    one = GET(domain_create, "one");
    two = GET(domain_create, "two");
    pthread_barrier_init(&all_begun, NULL, THREADS);
    for (unsigned long i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, worker, (void *)i) != 0)
            return 3;
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    if (strcmp(mode, "fork") == 0)
        fork_child();
    if (strcmp(mode, "kill") == 0) {
        begin(one, "open");
        begin(two, "open");
        IN(region_begin, one, id_of(1), no_id, GET(string_handle_create, "open region"));
        raise(SIGKILL);
    }
    expect("one:worker", THREADS);
    expect("two:handed on", THREADS * TIMES);
    expect("two:step", THREADS * TIMES);
    expect("one:inner", THREADS * TIMES);
    puts("done");
    return 0;
}
