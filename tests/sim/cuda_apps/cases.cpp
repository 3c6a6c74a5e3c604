// What public bug reports of other tools did, on the simulated driver, without nvcc: `deepbind` a
// plugin linked with the driver, `static` the driver found as the static runtime finds it, `late`
// calls from destructors after main, `reload` the driver closed and opened at another place. Usage:
// cases MODE CUBIN
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

namespace
{
// a macro's argument is what the library exports (cuMemAlloc_v2), its text what one asks for
#define EXPORTED(f) TEXT(f)
#define TEXT(f) #f
#define FUNCTIONS                                                                                  \
    X(cuInit)                                                                                      \
    X(cuDeviceGet)                                                                                 \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuCtxSetCurrent)                                                                             \
    X(cuModuleLoad)                                                                                \
    X(cuModuleGetFunction)                                                                         \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuLaunchKernel)                                                                              \
    X(cuCtxSynchronize)

struct driver {
    void *handle;
#define X(f) decltype(&::f) p##f;
    FUNCTIONS
#undef X
};
driver d;
CUfunction relu;
CUdeviceptr block;

void check(CUresult r, const char *what)
{
    if (r == CUDA_SUCCESS)
        return;
    std::printf("%s: error %d\n", what, r);
    std::exit(1);
}

void open_driver()
{
    d.handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!d.handle) {
        std::printf("%s\n", dlerror());
        std::exit(1);
    }
#define X(f) d.p##f = reinterpret_cast<decltype(&::f)>(dlsym(d.handle, EXPORTED(f)));
    FUNCTIONS
#undef X
}

// all others by cuGetProcAddress, which is asked for itself first
void ask_driver()
{
    auto get = reinterpret_cast<CUresult (*)(const char *, void **, int, cuuint64_t,
                                             CUdriverProcAddressQueryResult *)>(
        dlsym(d.handle, "cuGetProcAddress_v2"));
    void *p = nullptr;
    check(get("cuGetProcAddress", &p, 12000, 0, nullptr), "cuGetProcAddress");
    std::memcpy(&get, &p, sizeof get);
#define X(f)                                                                                       \
    check(get(#f, &p, 12000, 0, nullptr), #f);                                                     \
    std::memcpy(&d.p##f, &p, sizeof p);
    FUNCTIONS
#undef X
}

CUcontext primary;

void prepare(const char *cubin)
{
    CUdevice device;
    CUmodule module;
    check(d.pcuInit(0), "cuInit");
    check(d.pcuDeviceGet(&device, 0), "cuDeviceGet");
    check(d.pcuDevicePrimaryCtxRetain(&primary, device), "cuDevicePrimaryCtxRetain");
    check(d.pcuCtxSetCurrent(primary), "cuCtxSetCurrent");
    check(d.pcuModuleLoad(&module, cubin), "cuModuleLoad");
    check(d.pcuModuleGetFunction(&relu, module, "relu_5us"), "cuModuleGetFunction");
    check(d.pcuMemAlloc(&block, 4096), "cuMemAlloc");
}

void launch(int times)
{
    int n = 1024;
    void *arguments[] = {&n, &block};
    for (int i = 0; i < times; i++)
        check(d.pcuLaunchKernel(relu, 4, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr),
              "launch");
    check(d.pcuCtxSynchronize(), "cuCtxSynchronize");
}

int deepbind(const char *cubin)
{
    void *h = dlopen("cases_plugin.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!h) {
        std::printf("%s\n", dlerror());
        return 1;
    }
    int r = reinterpret_cast<int (*)(const char *, int)>(dlsym(h, "plugin_work"))(cubin, 5);
    std::printf("plugin: %d\n", r);
    return r;
}

int like_static_runtime(const char *cubin)
{
    open_driver();
    prepare(cubin);
    launch(3);
    ask_driver();
    launch(4);
    std::printf("launched 7\n");
    return 0;
}

// in each of four places one block is freed and one range ends
CUdeviceptr held[4];

void last(int i, const char *where)
{
    std::printf("%s: %d\n", where, held[i] ? static_cast<int>(d.pcuMemFree(held[i])) : -1);
    nvtxRangePop();
    std::fflush(stdout);
}

struct at_end {
    int i;
    const char *where;
    ~at_end()
    {
        if (held[i])
            last(i, where);
    }
};
at_end global{0, "static destructor"};
thread_local at_end local{1, "thread local of main"};

void by_atexit()
{
    last(3, "atexit");
}

void *short_thread(void *context)
{
    check(d.pcuCtxSetCurrent(static_cast<CUcontext>(context)), "cuCtxSetCurrent");
    local.i = 2;
    local.where = "thread local of a thread";
    nvtxRangePushA("held");
    return nullptr;
}

int late(const char *cubin)
{
    pthread_t t;
    open_driver();
    prepare(cubin);
    for (CUdeviceptr &p : held)
        check(d.pcuMemAlloc(&p, 256), "cuMemAlloc");
    std::atexit(by_atexit);
    for (int i = 0; i < 3; i++)
        nvtxRangePushA("held");
    pthread_create(&t, nullptr, short_thread, primary);
    pthread_join(t, nullptr);
    return local.i + 2;
}

// A thread that used a driver which is gone by the time the thread ends.
pthread_barrier_t together;

void *stays(void *cubin)
{
    nvtxRangePushA("thread");
    prepare(static_cast<const char *>(cubin));
    launch(2);
    nvtxRangePop();
    pthread_barrier_wait(&together); // used
    pthread_barrier_wait(&together); // unloaded
    return nullptr;
}

int reload(char *cubin)
{
    pthread_barrier_init(&together, nullptr, 2);
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        link_map *map = nullptr;
        open_driver();
        dlinfo(d.handle, RTLD_DI_LINKMAP, &map);
        void *place = reinterpret_cast<void *>(map->l_addr);
        pthread_create(&t, nullptr, stays, cubin);
        pthread_barrier_wait(&together);
        dlclose(d.handle);
        bool gone = !dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        // the next one lies elsewhere
        mmap(place, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        pthread_barrier_wait(&together);
        pthread_join(t, nullptr);
        std::fprintf(stderr, "%s\n", gone ? "gone" : "still there");
    }
    return 0;
}
} // namespace

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const char *mode = argv[1];
    return !std::strcmp(mode, "deepbind") ? deepbind(argv[2])
           : !std::strcmp(mode, "static") ? like_static_runtime(argv[2])
           : !std::strcmp(mode, "late")   ? late(argv[2])
                                          : reload(argv[2]);
}
