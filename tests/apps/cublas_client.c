/* Calls each product of cuBLAS once, and some more, on stand-ins (stub/cublas.c). No argument:
 * linked with them; "open": by dlopen and dlsym. Prints the results. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define HOOK(name, key, operations, batches, parameters, arguments) int name parameters;
#define operations_of(type) 0
#include "../../preload/hooks/cublas.def"
#undef HOOK
int cublasLtMatmul(void *, void *, const void *, const void *, void *, const void *, void *,
                   const void *, const void *, void *, void *, void *, const void *, void *, size_t,
                   void *);

struct layout {
    uint64_t rows, columns;
    uint32_t type, batches;
};

static void *look(void *library, const char *name, void *linked)
{
    return library ? dlsym(library, name) : linked;
}

int main(int argc, char **argv)
{
    int open = argc > 1 && !strcmp(argv[1], "open"), results = 0;
    void *blas = open ? dlopen("libcublas.so.13", RTLD_NOW) : NULL;
    void *light = open ? dlopen("libcublasLt.so.13", RTLD_NOW) : NULL;
    void *handle = NULL;
    const void *alpha = NULL, *A = NULL, *B = NULL, *beta = NULL;
    void *C = NULL;
    int ta = 0, tb = 1, m = 2, n = 3, k = 5, lda = 1, ldb = 1, ldc = 1, batches = 7;
    int typeA = 6, typeB = 6, typeC = 6, compute = 0, algorithm = 0;
    long long strideA = 1, strideB = 1, strideC = 1;

#define HOOK(name, key, operations, batches, parameters, arguments)                                \
    {                                                                                              \
        int(*f) parameters = look(blas, #name, name);                                              \
        results += f ? f arguments : 1000;                                                         \
    }
#include "../../preload/hooks/cublas.def"
#undef HOOK
    int (*sgemm)(void *, int, int, int, int, int, const void *, const void *, int, const void *,
                 int, const void *, void *, int) = look(blas, "cublasSgemm_v2", cublasSgemm_v2);
    printf("all %d, no rows %d\n", results,
           sgemm(handle, 0, 0, 0, 3, 5, alpha, A, 1, B, 1, beta, C, 1));

    int (*matmul)(void *, void *, const void *, const void *, void *, const void *, void *,
                  const void *, const void *, void *, void *, void *, const void *, void *, size_t,
                  void *) = look(light, "cublasLtMatmul", cublasLtMatmul);
    for (int transposed = 0; transposed < 2; transposed++) {
        struct layout a = {transposed ? 11 : 2, transposed ? 2 : 11, 0, 4}, d = {2, 3, 0, 4};
        printf("matmul %d\n", matmul(handle, &transposed, alpha, A, &a, B, &a, beta, C, &d, C, &d,
                                     NULL, NULL, 0, NULL));
    }
    return 0;
}
