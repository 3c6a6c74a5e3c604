/* core/memory.c with report/load_memory.c: what devices' drivers gave and took, from several
 * threads, against a model; frees that fail, addresses that come again, more blocks than there is
 * room for; and tables of damaged sessions. */
#include <errno.h>
#include <pthread.h>
#include "core/memory.h"
#include "report/load.h"
#include "report/session.h"
#include "tests/unit/core_reader.h"

#define CUDA GT_TAG(GT_SOURCE_CUDA, 0, 0)

static void give(const char *call, uint32_t device, uint64_t address, uint64_t bytes)
{
    gt_push_call(CUDA, call);
    gt_memory_allocated(GT_SOURCE_CUDA, device, address, bytes);
    gt_pop_call(GROUP(CUDA), bytes, 0);
}

static void take(const char *call, uint64_t address, int failed)
{
    gt_push_call(CUDA, call);
    struct gt_memory_block b = gt_memory_freeing(GT_SOURCE_CUDA, address);
    gt_memory_freed(&b, failed);
    gt_pop_call(GROUP(CUDA), 0, failed);
}

static const struct gt_memory_table *table(void)
{
    return rd_at(rd_self(), rd_header(rd_self())->memory, sizeof(struct gt_memory_table));
}

static void device_has(unsigned device, int64_t live, int64_t peak, uint64_t allocations,
                       uint64_t frees)
{
    const struct gt_device_memory *d = &table()->devices[device];
    RD_MUST(d->live == live && d->peak == peak && d->allocations == allocations &&
                d->frees == frees,
            "device %u: %ld live, %ld peak, %lu allocations, %lu frees", device, d->live, d->peak,
            d->allocations, d->frees);
}

static int64_t of(const char *path)
{
    const struct gt_node *n = rd_find(rd_self(), rd_only(), GT_KIND_RANGE, path);
    RD_MUST(n, "no %s", path);
    return n->driver_memory;
}

START_TEST(counts)
{
    setenv("GPUTALLY_WITH_STACK", "0", 1); /* a row for each place otherwise */
    give("a", 0, 0x1000, 100);
    give("a", 0, 0x2000, 200);
    give("b", 3, 0x3000, 50);
    take("f", 0x1000, 0);
    give("a", 99, 0x4000, 7);
    device_has(0, 200, 300, 2, 1);
    device_has(3, 50, 50, 1, 0);
    device_has(GT_MEMORY_DEVICES - 1, 7, 7, 1, 0);
    ck_assert_int_eq(of("a"), 307);
    ck_assert_int_eq(of("b"), 50);
    ck_assert_int_eq(of("f"), -100);
    /* unknown, twice, no address at all, another source's */
    take("f", 0x1000, 0);
    take("f", 0x9999, 0);
    take("f", 0, 0);
    give("a", 0, 0, 5);
    struct gt_memory_block b = gt_memory_freeing(GT_SOURCE_API, 0x2000);
    ck_assert_uint_eq(b.bytes, 0);
    device_has(0, 200, 300, 2, 1);
    ck_assert_int_eq(of("f"), -100);
}
END_TEST

START_TEST(a_free_that_fails)
{
    give("a", 0, 0x1000, 100);
    take("f", 0x1000, 1);
    device_has(0, 100, 100, 1, 0);
    ck_assert_int_eq(of("f"), 0);
    take("f", 0x1000, 0);
    device_has(0, 0, 100, 1, 1);
}
END_TEST

/* Nothing is charged to anybody, yet the device has it. */
START_TEST(paused)
{
    give("a", 0, 0x1000, 100);
    gt_pause();
    give("in", 0, 0x2000, 200);
    take("in", 0x1000, 0);
    gt_resume();
    take("f", 0x2000, 0);
    device_has(0, 0, 300, 2, 2);
    ck_assert_int_eq(of("a"), 100);
    ck_assert_int_eq(of("f"), -200);
}
END_TEST

static void give_in(uint64_t owner, uint64_t address, uint64_t bytes)
{
    gt_push_call(CUDA, "a");
    gt_memory_allocated_in(GT_SOURCE_CUDA, 1, owner, address, bytes);
    gt_pop_call(GROUP(CUDA), bytes, 0);
}

/* What is of an owner that ends goes with it, unless the call fails; and no other's. */
START_TEST(owners)
{
    setenv("GPUTALLY_WITH_STACK", "0", 1);
    give_in(7, 0x1000, 100);
    give_in(7, 0x2000, 20);
    give_in(7, 0x3000, 3);
    give_in(8, 0x4000, 1000);
    give_in(0, 0x5000, 10000);
    take("f", 0x3000, 0);
    take("f", 0x2000, 1); /* goes back with its owner */
    for (int failed = 1; failed >= 0; failed--) {
        gt_push_call(CUDA, "e");
        gt_memory_ending(GT_SOURCE_CUDA, 7, 99);
        give_in(7, 0x6000 + (uint64_t)failed, 5); /* a new one with the old one's number */
        gt_memory_ended(GT_SOURCE_CUDA, 7, 99, failed);
        gt_pop_call(GROUP(CUDA), 0, failed);
        ck_assert_int_eq(of("e"), failed ? 0 : -125);
    }
    device_has(1, 11005, 11130, 7, 4);
    take("f", 0x1000, 0); /* is none any more */
    ck_assert_int_eq(of("f"), -3);
    take("f", 0x4000, 0);
    take("f", 0x6000, 0);
    device_has(1, 10000, 11130, 7, 6);
}
END_TEST

START_TEST(nothing_recorded)
{
    gt_memory_allocated(GT_SOURCE_CUDA, 0, 0x1000, 1);
    struct gt_memory_block b = gt_memory_freeing(GT_SOURCE_CUDA, 0x1000);
    gt_memory_freed(&b, 0);
    ck_assert_ptr_null(gt_session.base);
}
END_TEST

/* Beyond the table blocks are counted, and what is in use is of those that are followed. */
START_TEST(too_many)
{
    setenv("GPUTALLY_MEMORY", _i ? "512K" : "64M", 1);
    setenv("GPUTALLY_WITH_STACK", "0", 1); /* see test_core_call.c */
    uint64_t n = GT_ALLOCATIONS * 2;
    for (uint64_t i = 0; i < n; i++)
        give("a", 0, 0x7f0000000000 + i * 512, 10);
    const struct gt_device_memory *d = &table()->devices[0];
    ck_assert_uint_eq(d->allocations, n);
    uint32_t capacity = table()->capacity;
    ck_assert_uint_eq(capacity, _i ? GT_ALLOCATIONS / 8 : GT_ALLOCATIONS);
    uint64_t followed = n - d->not_followed;
    ck_assert_uint_le(followed, capacity);
    ck_assert_uint_gt(followed, capacity * 9 / 10);
    ck_assert_int_eq(d->live, (int64_t)followed * 10);
    for (uint64_t i = 0; i < n; i++)
        take("f", 0x7f0000000000 + i * 512, 0);
    ck_assert_int_eq(d->live, 0);
    ck_assert_uint_eq(d->frees, followed);
    ck_assert_int_eq(of("a"), (int64_t)n * 10);
}
END_TEST

/* Blocks go from thread to thread; each address is given out again and again. */
#define BLOCKS 400
static _Atomic uint64_t owned[BLOCKS]; /* 0: free, 1: somebody's, else its bytes */

static void *work(void *p)
{
    uint64_t seed = (uint64_t)p * 77 + 1;
    for (int i = 0; i < 30000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned k = (unsigned)(seed >> 40) % BLOCKS;
        uint64_t was = atomic_load(&owned[k]), bytes = 2 + (seed >> 50);
        if (was == 1 || !atomic_compare_exchange_strong(&owned[k], &was, 1))
            continue;
        if (was)
            take("f", 0x10000 + k * 256, 0);
        else
            give("a", k % 2, 0x10000 + k * 256, bytes);
        atomic_store(&owned[k], was ? 0 : bytes);
    }
    return NULL;
}

START_TEST(threads)
{
    pthread_t t[4];
    int64_t live[2] = {0};
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    for (int k = 0; k < BLOCKS; k++)
        live[k % 2] += (int64_t)owned[k];
    for (int d = 0; d < 2; d++) {
        ck_assert_int_eq(table()->devices[d].live, live[d]);
        ck_assert_int_ge(table()->devices[d].peak, live[d]);
        ck_assert_uint_eq(table()->devices[d].not_followed, 0);
    }
    for (int k = 0; k < BLOCKS; k++)
        if (owned[k])
            take("last", 0x10000 + (uint64_t)k * 256, 0);
    ck_assert_int_eq(table()->devices[0].live + table()->devices[1].live, 0);
    for (uint32_t i = 0; i < table()->capacity; i++)
        ck_assert_uint_eq(table()->entries[i].address, 0);
}
END_TEST

/* ---- as the report has it ---- */

static int load(struct gt_model *m, const char *path)
{
    struct gt_err e = {0};
    struct gt_input in;
    gt_model_init(m);
    if (gt_input_read(&in, path, &e) < 0)
        return -1;
    int rc = gt_load_session(m, &in, &e);
    gt_input_free(&in);
    return rc;
}

static const struct gt_row *row(const struct gt_model *m, const char *key)
{
    for (size_t i = 0; i < m->row_count; i++)
        if (!strcmp(gt_model_string(m, m->rows[i].key, NULL), key))
            return &m->rows[i];
    ck_abort_msg("no row %s", key);
    return NULL;
}

static const char *killed_session(void)
{
    setenv("GPUTALLY_WITH_STACK", "0", 1);
    pid_t pid = fork();
    if (!pid) {
        gt_push(NVTX, "range");
        give("a", 0, 0x1000, 100);
        give("a", 0, 0x2000, 20);
        give("b", 0, 0x3000, 3);
        take("f", 0x1000, 0);
        take("f", 0x3000, 0);
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return rd_session_of(pid);
}

START_TEST(report)
{
    struct gt_model m;
    ck_assert_int_eq(load(&m, killed_session()), 0);
    ck_assert_int_eq(row(&m, "a")->driver_memory, 120);
    ck_assert_int_eq(row(&m, "a")->leaked, 20);
    ck_assert_int_eq(row(&m, "b")->leaked, 0);
    ck_assert_int_eq(row(&m, "f")->self_driver_memory, -103);
    ck_assert_int_eq(row(&m, "range")->driver_memory, 20);
    ck_assert_int_eq(row(&m, "range")->self_driver_memory, 0);
    ck_assert_uint_eq(m.device_count, 1);
    gt_model_fini(&m);
}
END_TEST

/* Nothing of a damaged table is believed. */
START_TEST(damaged)
{
    const char *path = killed_session();
    struct gt_model m;
    int fd = open(path, O_RDWR);
    struct gt_header h;
    ck_assert_int_eq(pread(fd, &h, sizeof h, 0), sizeof h);
    off_t at = (off_t)h.memory * GT_ALIGN;
    uint32_t capacity = _i == 0 ? UINT32_MAX : _i == 1 ? GT_ALLOCATIONS * 2 : 0;
    gt_ref beyond = UINT32_MAX;
    struct gt_allocation wild = {.address = 9, .bytes = UINT64_MAX, .slot = 0, .node = 1u << 27};
    if (_i < 2)
        ck_assert_int_gt(
            pwrite(fd, &capacity, 4, at + (off_t)offsetof(struct gt_memory_table, capacity)), 0);
    else if (_i == 2)
        ck_assert_int_gt(pwrite(fd, &beyond, 4, offsetof(struct gt_header, memory)), 0);
    else
        ck_assert_int_gt(pwrite(fd, &wild, sizeof wild, at + (off_t)sizeof(struct gt_memory_table)),
                         0);
    close(fd);
    int rc = load(&m, path);
    if (_i < 3)
        ck_assert_int_eq(rc, -ENODATA);
    else
        ck_assert_int_eq(rc, 0);
    gt_model_fini(&m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("core_memory");
    TCase *t = rd_case(s, "all");
    tcase_add_test(t, counts);
    tcase_add_test(t, owners);
    tcase_add_test(t, a_free_that_fails);
    tcase_add_test(t, paused);
    tcase_add_test(t, nothing_recorded);
    tcase_add_loop_test(t, too_many, 0, 2);
    tcase_add_test(t, threads);
    tcase_add_test(t, report);
    tcase_add_loop_test(t, damaged, 0, 4);
    return rd_run(s);
}
