/* Kokkos events in every wrong order and with every wrong argument; nothing may crash, what is
 * right is counted, and what is wrong is told. --expect as in kokkos_basic.c. */
#define KOKKOS_VERSION 40000
#include "kokkos_client.h"

#include <pthread.h>

static int unbalanced, overlapped;

static void kernels_out_of_order(void)
{
    uint64_t a = 0, b = 0, c = 0;

    KP(begin_parallel_for, "first", 0, &a);
    KP(push_profile_region, "region");
    KP(begin_parallel_for, "second", 0, &b);
    KP(begin_parallel_reduce, "third", 0, &c);
    KP(end_parallel_for, a); /* below all others */
    KP(pop_profile_region);  /* below the two kernels */
    overlapped += 2;
    KP(end_parallel_for, c); /* another kind's end: the id rules */
    KP(end_parallel_reduce, b);
    KP(end_parallel_for, b); /* again */
    KP(end_parallel_for, 0);
    KP(end_fence, UINT64_MAX);
    KP(end_parallel_scan, 123456789);
    unbalanced += 4;
}

static void nothing_open(void)
{
    KP(pop_profile_region);
    KP(end_deep_copy);
    unbalanced += 2;
}

static void nulls(void)
{
    uint64_t id = 0;
    uint32_t section = 0;

    KP(begin_parallel_for, NULL, 0, &id);
    KP(end_parallel_for, id);
    KP(begin_fence, "no id", 0, NULL); /* a call that nobody can end */
    KP(push_profile_region, NULL);
    KP(pop_profile_region);
    KP(profile_event, NULL);
    KP(create_profile_section, "no id", NULL);
    KP(create_profile_section, NULL, &section);
    KP(start_profile_section, section);
    KP(stop_profile_section, section);
    KP(allocate_data, in(""), NULL, NULL, 0);
    KP(begin_deep_copy, in("Host"), NULL, NULL, in(""), NULL, NULL, 0);
    KP(end_deep_copy);
    KP(dual_view_sync, NULL, NULL, true);
    KP(init_library, -1, UINT64_MAX, 7, NULL);
    KP(request_tool_settings, 0, NULL);
    KP(request_tool_settings, 1, NULL);
}

static void copies_inside_copies(void)
{
    KP(begin_deep_copy, in("Host"), "outer", NULL, in("Host"), "from", NULL, 10);
    KP(begin_deep_copy, in("Host"), "inner", NULL, in("Host"), "from", NULL, 1);
    KP(end_deep_copy);
    KP(end_deep_copy);
}

static void sections(void)
{
    uint32_t id = 0, many[5000];

    KP(create_profile_section, "twice", &id);
    KP(start_profile_section, id);
    KP(start_profile_section, id);
    KP(stop_profile_section, id);
    KP(stop_profile_section, id);
    KP(start_profile_section, id);
    KP(destroy_profile_section, id); /* running */
    KP(start_profile_section, id);
    KP(stop_profile_section, id);
    KP(destroy_profile_section, id);
    KP(start_profile_section, 77777);
    KP(stop_profile_section, 77777);
    KP(destroy_profile_section, UINT32_MAX);
    unbalanced += 7;
    /* made and destroyed again and again: places are used again */
    for (int i = 0; i < 20000; i++) {
        KP(create_profile_section, "short", &id);
        KP(start_profile_section, id);
        KP(stop_profile_section, id);
        KP(destroy_profile_section, id);
    }
    /* more at once than there are places: those run as "(other)" */
    memset(many, 0, sizeof(many));
    for (int i = 0; i < 5000; i++)
        KP(create_profile_section, "many", &many[i]);
    for (int i = 0; i < 5000; i++) {
        KP(start_profile_section, many[i]);
        KP(stop_profile_section, many[i]);
    }
    for (int i = 0; i < 5000; i++)
        KP(destroy_profile_section, many[i]);
}

static void spaces(void)
{
    char name[80];
    static char label[3000];

    /* more spaces than there are counters, the first without an end */
    memset(name, 'S', sizeof(name));
    name[79] = 0;
    KP(allocate_data, in(name), "long", NULL, 1);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "Space%c", 'A' + i);
        KP(allocate_data, in(name), "v", NULL, 1);
    }
    memset(label, 'l', sizeof(label) - 1);
    KP(allocate_data, in("SpaceA"), label, NULL, UINT64_MAX);
    KP(deallocate_data, in("SpaceA"), label, NULL, UINT64_MAX);
}

static void *worker(void *start)
{
    uint64_t id = 0;

    pthread_barrier_wait(start);
    for (int i = 0; i < 1000; i++) {
        KP(push_profile_region, "thread");
        KP(begin_parallel_for, "thread kernel", 0, &id);
        KP(allocate_data, in("Threads"), "t", NULL, 8);
        KP(deallocate_data, in("Threads"), "t", NULL, 8);
        KP(end_parallel_for, id);
        KP(pop_profile_region);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread[4];
    pthread_barrier_t start;

    pthread_barrier_init(&start, NULL, 4);
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, worker, &start);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&start);
}

int main(int argc, char **argv)
{
    kokkos_initialize(argc, argv);
    nothing_open();
    kernels_out_of_order();
    nulls();
    copies_inside_copies();
    sections();
    threads();
    spaces();
    kokkos_finalize();
    if (argc > 1 && strcmp(argv[1], "--expect") == 0) {
        puts("expect first 1\nexpect second 1\nexpect third 1\nexpect region 1\nexpect no id 1\n"
             "expect (null) 4\nexpect allocate :(null) 1\nexpect  memory 1\n"
             "expect deep_copy Host:(null) <- :(null) 1\nexpect sync (null) to device 1\n"
             "expect deep_copy Host:outer <- Host:from 1\n"
             "expect deep_copy Host:inner <- Host:from 1\n"
             "sum deep_copy Host:outer <- Host:from bytes 10\n"
             "sum deep_copy Host:inner <- Host:from bytes 1\n"
             "expect twice 3\nexpect short 20000\nexpect many 4094\nexpect (other) 906\n"
             "expect thread 4000\nexpect thread kernel 4000\nexpect allocate Threads:t 4000\n"
             "expect deallocate Threads:t 4000\nexpect Threads memory 8000");
        printf("total unbalanced %d\ntotal overlapped %d\n", unbalanced, overlapped);
    }
    puts("done");
    return 0;
}
