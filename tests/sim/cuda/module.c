/* Modules and libraries: both are a cubin that was read; a library belongs to no context. */
#include "sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void unload(struct CUmod_st *m)
{
    struct sim_block b;

    pthread_mutex_lock(&sim_lock);
    for (int i = 0; i < m->variable_count; i++) {
        (void)sim_block_remove(m->variables[i].data, &b);
        free(m->variables[i].data);
    }
    for (int i = 0; i < m->function_count; i++)
        sim_drop(m->functions[i]);
    free(m->variables);
    free(m->functions);
    free(m->image);
    sim_drop(m);
    pthread_mutex_unlock(&sim_lock);
}

static CUresult load(struct CUmod_st **out, const void *image, CUcontext c)
{
    char *cubin = NULL;
    size_t bytes = 0;

    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = sim_cubin_of(image, &cubin, &bytes);
    if (r)
        return r;
    struct CUmod_st *m = sim_new(SIM_MODULE, sizeof *m);
    if (!m) {
        free(cubin);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    m->image = cubin;
    m->image_bytes = bytes;
    m->context = c;
    (void)sim_host_function(""); /* opens their libraries, before the lock */
    pthread_mutex_lock(&sim_lock);
    r = sim_cubin_read(m);
    for (int i = 0; !r && i < m->variable_count; i++) {
        struct sim_block b = {.start = m->variables[i].data,
                              .size = m->variables[i].size,
                              .kind = GTSIM_DEVICE,
                              .device = c ? c->device : 0,
                              .context = c,
                              .module = true};
        r = sim_block_add(&b);
    }
    pthread_mutex_unlock(&sim_lock);
    if (r) {
        unload(m);
        return r;
    }
    *out = m;
    sim_announce(&(struct gtsim_resource){
        .cbid = 6, .context = c, .module = m, .cubin = m->image, .cubin_bytes = m->image_bytes});
    return CUDA_SUCCESS;
}

static char *read_file(const char *path)
{
    FILE *f = path ? fopen(path, "rb") : NULL;
    char *text = NULL;

    if (f && !fseek(f, 0, SEEK_END)) {
        long n = ftell(f);

        rewind(f);
        text = n > 0 ? calloc(1, (size_t)n + 64) : NULL;
        if (text && fread(text, 1, (size_t)n, f) != (size_t)n) {
            free(text);
            text = NULL;
        }
    }
    if (f)
        fclose(f);
    return text;
}

CUresult sim_cuModuleLoadData(CUmodule *module, const void *image)
{
    SIM_CONTEXT_OR_RETURN(c);
    return load(module, image, c);
}

CUresult sim_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                CUjit_option *options, void **optionValues)
{
    (void)numOptions;
    (void)options;
    (void)optionValues;
    return sim_cuModuleLoadData(module, image);
}

CUresult sim_cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    return sim_cuModuleLoadData(module, fatCubin);
}

CUresult sim_cuModuleLoad(CUmodule *module, const char *fname)
{
    SIM_CONTEXT_OR_RETURN(c);
    char *image = read_file(fname);
    if (!image)
        return fname ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
    CUresult r = load(module, image, c);
    free(image);
    return r;
}

CUresult sim_cuModuleUnload(CUmodule hmod)
{
    if (!sim_is(hmod, SIM_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_announce(&(struct gtsim_resource){.cbid = 7,
                                          .context = hmod->context,
                                          .module = hmod,
                                          .cubin = hmod->image,
                                          .cubin_bytes = hmod->image_bytes});
    unload(hmod);
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUresult sim_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption *libraryOptions, void **libraryOptionValues,
                               unsigned int numLibraryOptions)
{
    (void)jitOptions;
    (void)jitOptionsValues;
    (void)numJitOptions;
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    return load((struct CUmod_st **)library, code, NULL);
}

CUresult sim_cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
                                   CUjit_option *jitOptions, void **jitOptionsValues,
                                   unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                                   void **libraryOptionValues, unsigned int numLibraryOptions)
{
    (void)jitOptions;
    (void)jitOptionsValues;
    (void)numJitOptions;
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    char *image = read_file(fileName);
    if (!image)
        return fileName ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
    CUresult r = load((struct CUmod_st **)library, image, NULL);
    free(image);
    return r;
}

CUresult sim_cuLibraryUnload(CUlibrary library)
{
    return sim_cuModuleUnload((CUmodule)library);
}

CUresult sim_cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    if (!pMod)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(library, SIM_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    *pMod = (CUmodule)library;
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    if (!hfunc || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(hmod, SIM_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    for (int i = 0; i < hmod->function_count; i++) {
        if (!strcmp(hmod->functions[i]->name, name)) {
            *hfunc = hmod->functions[i];
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult sim_cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    return sim_cuModuleGetFunction((CUfunction *)pKernel, (CUmodule)library, name);
}

CUresult sim_cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(mod, SIM_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    *count = (unsigned)mod->function_count;
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions,
                                        CUmodule mod)
{
    if (!functions)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(mod, SIM_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; i < numFunctions && i < (unsigned)mod->function_count; i++)
        functions[i] = mod->functions[i];
    return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
    return sim_cuModuleGetFunctionCount(count, (CUmodule)lib);
}

CUresult sim_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
    return sim_cuModuleEnumerateFunctions((CUfunction *)kernels, numKernels, (CUmodule)lib);
}

CUresult sim_cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
    if (!name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is(hmod, SIM_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    for (int i = 0; i < hmod->variable_count; i++) {
        if (strcmp(hmod->variables[i].name, name))
            continue;
        if (dptr)
            *dptr = (CUdeviceptr)hmod->variables[i].data;
        if (bytes)
            *bytes = hmod->variables[i].size;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult sim_cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                const char *name)
{
    return sim_cuModuleGetGlobal_v2(dptr, bytes, (CUmodule)library, name);
}
