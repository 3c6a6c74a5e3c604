/* Names of kernels by handle: found, renamed, copied, replaced when there are too many, and never
 * another's, whoever writes at the same time. */
#include <pthread.h>
#include "preload/cuda.h"
#include "tests/unit/core_reader.h"

static void *handle(unsigned long i)
{
    return (void *)(0x7f0000001000 + i * 0x140);
}

START_TEST(found)
{
    ck_assert_ptr_null(gt_cuda_name_of(handle(1)));
    gt_cuda_named(handle(1), "one");
    gt_cuda_named(handle(2), "two");
    ck_assert_str_eq(gt_cuda_name_of(handle(1)), "one");
    ck_assert_str_eq(gt_cuda_name_of(handle(2)), "two");
    gt_cuda_named(handle(1), "another life");
    ck_assert_str_eq(gt_cuda_name_of(handle(1)), "another life");
    gt_cuda_named_as(handle(3), handle(2));
    ck_assert_str_eq(gt_cuda_name_of(handle(3)), "two");
    gt_cuda_named_as(handle(4), handle(5));
    ck_assert_ptr_null(gt_cuda_name_of(handle(4)));
    gt_cuda_named(NULL, "nobody");
    gt_cuda_named(handle(6), NULL);
    ck_assert_ptr_null(gt_cuda_name_of(NULL));
    ck_assert_ptr_null(gt_cuda_name_of(handle(6)));
}
END_TEST

/* Twice as many as there is room for: the latest is always there, most of the late ones are, and
 * none has another's name. */
START_TEST(too_many)
{
    unsigned there = 0;
    char name[32];
    for (unsigned long i = 0; i < 8192; i++) {
        snprintf(name, sizeof name, "kernel %lu", i);
        gt_cuda_named(handle(i), name);
        ck_assert_str_eq(gt_cuda_name_of(handle(i)), name);
    }
    for (unsigned long i = 0; i < 8192; i++) {
        const char *got = gt_cuda_name_of(handle(i));
        snprintf(name, sizeof name, "kernel %lu", i);
        if (got)
            ck_assert_str_eq(got, name);
        there += got != NULL && i >= 4096;
    }
    ck_assert_uint_gt(there, 2500);
}
END_TEST

static void *writer(void *p)
{
    unsigned long first = (unsigned long)p, seed = first + 1;
    char name[32];
    for (int i = 0; i < 200000; i++) {
        unsigned long k = (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 51;
        snprintf(name, sizeof name, "kernel %lu", k);
        if (i & 1) {
            gt_cuda_named(handle(k), name);
        } else {
            const char *got = gt_cuda_name_of(handle(k));
            RD_MUST(!got || strcmp(got, name) == 0, "%s is %s", name, got);
        }
    }
    return NULL;
}

START_TEST(at_once)
{
    pthread_t t[4];
    for (unsigned long i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, writer, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cuda_names");
    TCase *t = rd_case(s, "all");
    tcase_add_test(t, found);
    tcase_add_test(t, too_many);
    tcase_add_test(t, at_once);
    return rd_run(s);
}
