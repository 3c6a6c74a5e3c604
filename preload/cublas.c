/* cuBLAS' and cuBLASLt's matrix products as ranges with shapes and FLOPs. cuBLAS holds a CUDA
 * runtime of its own, so what it launches comes through the driver's wrappers, below these. One
 * that another makes (cuBLAS calls cuBLASLt) says nothing of its own. On the program's threads. */
#include "core/core.h"
#include "core/record.h"
#include "core/text.h"
#include "cuda.h"

#define TAG GT_TAG(GT_SOURCE_CUBLAS, 0, 0)

/* CUBLAS_STATUS_NOT_INITIALIZED, for a wrapper that is reached without cuBLAS */
#define NOT_THERE 1

struct product {
    uint64_t m, n, k, batches;
    unsigned operations; /* of one multiplication and addition */
};

/* By cudaDataType: complex numbers take more. */
static unsigned operations_of(int type)
{
    return type == 4 || type == 6 || (type >= 5 && type <= 27 && type & 1) ? 8 : 2;
}

static void add_matrix(struct gt_text *t, uint64_t batches, uint64_t rows, uint64_t columns)
{
    gt_text_add(t, "[");
    if (batches > 1) {
        gt_text_add_u64(t, batches);
        gt_text_add(t, ", ");
    }
    gt_text_add_u64(t, rows);
    gt_text_add(t, ", ");
    gt_text_add_u64(t, columns);
    gt_text_add(t, "]");
}

static int begin(const char *key, const struct product *p)
{
    char shapes[160];
    struct gt_attr a = {.name = key, .scope = GT_SCOPE_FUNCTION, .stack = GT_STACK_BOTH};
    struct gt_text t;

    if (!gt_source_on(GT_SOURCE_CUBLAS))
        return GT_CUDA_OFF;
    if (gt_config.record_shapes) {
        gt_text_init(&t, shapes, sizeof shapes);
        gt_text_add(&t, "[");
        add_matrix(&t, p->batches, p->m, p->k);
        gt_text_add(&t, ", ");
        add_matrix(&t, p->batches, p->k, p->n);
        gt_text_add(&t, "]");
        a.shapes = shapes;
    }
    return gt_push_attr(TAG, &a);
}

static int end(int begun, int result, const struct product *p)
{
    uint64_t flops = p->operations * p->m * p->n * p->k * p->batches;

    if (begun != GT_CUDA_OFF)
        gt_pop_product(GT_TAG_GROUP(TAG), begun == 0 && result == 0 ? flops : 0, result != 0);
    return result;
}

/* ---- cuBLAS ---- */

#define HOOK(name, ...) I_##name,
enum {
#include "hooks/cublas.def"
    COUNT
};
#undef HOOK

static struct gt_cuda_real real[COUNT];
static const struct gt_cuda_api cublas;

#define HOOK(name, key, operations_, batches_, parameters, arguments)                              \
    typedef int name##_fn parameters;                                                              \
    static int on_##name parameters                                                                \
    {                                                                                              \
        name##_fn *behind = (name##_fn *)gt_cuda_real(&cublas, real, I_##name);                    \
        if (!behind)                                                                               \
            return NOT_THERE;                                                                      \
        const struct product p = {(uint64_t)m, (uint64_t)n, (uint64_t)k, (uint64_t)(batches_),     \
                                  operations_};                                                    \
        int begun = begin(#key, &p);                                                               \
        return end(begun, behind arguments, &p);                                                   \
    }                                                                                              \
    GT_EXPORT name##_fn name __attribute__((alias("on_" #name)));
#include "hooks/cublas.def"
#undef HOOK

#define HOOK(name, ...) {#name, (void (*)(void))on_##name, NULL},
static const struct gt_hook by_name[] = {
#include "hooks/cublas.def"
};
#undef HOOK

static const char *const libraries[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                        NULL};
static const struct gt_cuda_api cublas = {by_name, NULL, real, COUNT, libraries};

static void learn(size_t i, void *theirs)
{
    gt_cuda_learn(&cublas, i, theirs);
}

const struct gt_hooks gt_cublas_hooks = {
    .prefix = "cublas",
    .prefix_len = 6,
    .hooks = by_name,
    .count = COUNT,
    .source = GT_SOURCE_CUBLAS,
    .learn = learn,
    .inside = gt_cuda_inside,
    .libraries = libraries,
};

/* ---- cuBLASLt ---- */

#define HOOK(name, parameters)                                                                     \
    typedef int name##_fn parameters;                                                              \
    GT_EXPORT name##_fn name;
#include "hooks/cublaslt.def"
#undef HOOK

enum { AT_MATMUL, AT_LAYOUT, AT_DESCRIPTION, LT_COUNT };
static const struct gt_hook lt_names[] = {
    {"cublasLtMatmul", (void (*)(void))cublasLtMatmul, NULL},
    {"cublasLtMatrixLayoutGetAttribute", NULL, NULL},
    {"cublasLtMatmulDescGetAttribute", NULL, NULL},
};
static struct gt_cuda_real lt_real[LT_COUNT];
static const char *const lt_libraries[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                           "libcublasLt.so.11", NULL};
static const struct gt_cuda_api lt = {lt_names, NULL, lt_real, LT_COUNT, lt_libraries};

/* One number of a description; `missing` if it does not tell. */
static uint64_t ask(int of, void *description, int attribute, size_t bytes, uint64_t missing)
{
    typedef int get_fn(void *, int, void *, size_t, size_t *);
    get_fn *get = (get_fn *)gt_cuda_real(&lt, lt_real, (size_t)of);
    uint64_t value = 0;
    size_t written = 0;

    if (!get || !description || get(description, attribute, &value, bytes, &written))
        return missing;
    return value;
}

/* D has the sizes of the result; how long the sums are is A's other side. */
static struct product sizes(void *product, void *layoutA, void *layoutD)
{
    enum { TYPE = 0, ROWS = 2, COLUMNS = 3, BATCHES = 5, TRANSPOSE_A = 3 };
    int transposed = ask(AT_DESCRIPTION, product, TRANSPOSE_A, 4, 0) != 0;

    return (struct product){
        .m = ask(AT_LAYOUT, layoutD, ROWS, 8, 0),
        .n = ask(AT_LAYOUT, layoutD, COLUMNS, 8, 0),
        .k = ask(AT_LAYOUT, layoutA, transposed ? ROWS : COLUMNS, 8, 0),
        .batches = ask(AT_LAYOUT, layoutD, BATCHES, 4, 1),
        .operations = operations_of((int)ask(AT_LAYOUT, layoutA, TYPE, 4, 0)),
    };
}

int cublasLtMatmul(void *handle, void *product, const void *alpha, const void *A, void *layoutA,
                   const void *B, void *layoutB, const void *beta, const void *C, void *layoutC,
                   void *D, void *layoutD, const void *algorithm, void *workspace, size_t bytes,
                   void *stream)
{
    cublasLtMatmul_fn *behind = (cublasLtMatmul_fn *)gt_cuda_real(&lt, lt_real, AT_MATMUL);
    if (!behind)
        return NOT_THERE;
    struct product p = {0};
    if (gt_source_on(GT_SOURCE_CUBLAS))
        p = sizes(product, layoutA, layoutD);
    int begun = begin("cublasLtMatmul", &p);
    return end(begun,
               behind(handle, product, alpha, A, layoutA, B, layoutB, beta, C, layoutC, D, layoutD,
                      algorithm, workspace, bytes, stream),
               &p);
}

static void lt_learn(size_t i, void *theirs)
{
    gt_cuda_learn(&lt, i, theirs);
}

const struct gt_hooks gt_cublaslt_hooks = {
    .prefix = "cublasLt",
    .prefix_len = 8,
    .hooks = lt_names,
    .count = 1, /* the others are only called */
    .source = GT_SOURCE_CUBLAS,
    .learn = lt_learn,
    .inside = gt_cuda_inside,
    .libraries = lt_libraries,
};
