/* Stand-ins for libcublas.so.13 and, with -DLT, libcublasLt.so.13: their functions compute nothing
 * and succeed, but for a product of no rows, which fails. cublasGemmEx is made of a product of
 * cublasLt's, as in the real one. */
#include <stddef.h>
#include <stdint.h>

struct layout {
    uint64_t rows, columns;
    uint32_t type, batches;
};

#ifdef LT
int cublasLtMatmul(void *handle, void *product, const void *alpha, const void *A, void *layoutA,
                   const void *B, void *layoutB, const void *beta, const void *C, void *layoutC,
                   void *D, struct layout *layoutD, const void *algorithm, void *workspace,
                   size_t bytes, void *stream);
int cublasLtMatrixLayoutGetAttribute(const struct layout *l, int attribute, void *to, size_t bytes,
                                     size_t *written);
int cublasLtMatmulDescGetAttribute(const int *transposed, int attribute, int *to, size_t bytes,
                                   size_t *written);

int cublasLtMatmul(void *handle, void *product, const void *alpha, const void *A, void *layoutA,
                   const void *B, void *layoutB, const void *beta, const void *C, void *layoutC,
                   void *D, struct layout *layoutD, const void *algorithm, void *workspace,
                   size_t bytes, void *stream)
{
    (void)handle, (void)product, (void)alpha, (void)A, (void)layoutA, (void)B, (void)layoutB,
        (void)beta, (void)C;
    (void)layoutC, (void)D, (void)algorithm, (void)workspace, (void)bytes, (void)stream;
    return layoutD->rows ? 0 : 7;
}

int cublasLtMatrixLayoutGetAttribute(const struct layout *l, int attribute, void *to, size_t bytes,
                                     size_t *written)
{
    if (bytes != (attribute == 2 || attribute == 3 ? 8 : 4))
        return 7;
    *written = bytes;
    if (bytes == 8)
        *(uint64_t *)to = attribute == 2 ? l->rows : l->columns;
    else
        *(uint32_t *)to = attribute == 5 ? l->batches : l->type;
    return 0;
}

int cublasLtMatmulDescGetAttribute(const int *transposed, int attribute, int *to, size_t bytes,
                                   size_t *written)
{
    *to = attribute == 3 ? *transposed : 0;
    *written = bytes;
    return 0;
}
#else
int cublasLtMatmul(void *, void *, const void *, const void *, void *, const void *, void *,
                   const void *, const void *, void *, void *, struct layout *, const void *,
                   void *, size_t, void *);

static int inner(const char *key, int64_t m, int64_t n, int64_t k)
{
    struct layout a = {(uint64_t)m, (uint64_t)k, 0, 1}, d = {(uint64_t)m, (uint64_t)n, 0, 1};
    int plain = 0;

    if (!m)
        return 7;
    for (const char *c = "cublasGemmEx"; *c == *key; c++, key++)
        if (!*c)
            return cublasLtMatmul(NULL, &plain, NULL, NULL, &a, NULL, &a, NULL, NULL, &d, NULL, &d,
                                  NULL, NULL, 0, NULL);
    return 0;
}

#define operations_of(type) 0
#define HOOK(name, key, operations, batches, parameters, arguments)                                \
    int name parameters;                                                                           \
    int name parameters                                                                            \
    {                                                                                              \
        return inner(#key, m, n, k);                                                               \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "../../../preload/hooks/cublas.def"
#endif
