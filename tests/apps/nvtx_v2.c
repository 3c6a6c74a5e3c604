/* NVTX v2 client: declares the functions itself and gets them from libnvToolsExt.so.1, by linking
 * and again by dlopen and dlsym. --expect as in nvtx_basic.c. A name that the library lacks must
 * stay missing with the profiler there. Exit 1: it does not. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int nvtxRangePushA(const char *text);
int nvtxRangePop(void);
uint64_t nvtxRangeStartA(const char *text);
void nvtxRangeEnd(uint64_t id);
void nvtxMarkA(const char *text);
void *nvtxDomainCreateA(const char *name);
int nvtxDomainRangePushEx(void *domain, const void *attributes);
int nvtxDomainRangePop(void *domain);

struct attr {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t text_type;
    const char *text;
};

static int opened(void)
{
    void *lib = dlopen("libnvToolsExt.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*push)(const char *), (*pop)(void);

    if (!lib) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    push = (int (*)(const char *))dlsym(lib, "nvtxRangePushA");
    pop = (int (*)(void))dlsym(lib, "nvtxRangePop");
    if (!push || !pop)
        return 1;
    for (int i = 0; i < 6; i++) {
        push("opened");
        pop();
    }
    /* not in the stand-in library, though the profiler has it; and in neither */
    if (dlsym(lib, "nvtxMarkW") || !dlerror() || dlsym(lib, "nvtxNothing") || !dlerror())
        return 1;
    return dlclose(lib);
}

int main(int argc, char **argv)
{
    struct attr a = {.version = 2, .size = sizeof(a), .text_type = 1, .text = "old work"};
    void *domain = nvtxDomainCreateA("v2");

    for (int i = 0; i < 3; i++) {
        nvtxRangePushA("old outer");
        for (int j = 0; j < 4; j++) {
            nvtxRangePushA("old inner");
            nvtxRangePop();
        }
        nvtxRangePop();
        nvtxDomainRangePushEx(domain, &a);
        nvtxDomainRangePop(domain);
    }
    nvtxRangeEnd(nvtxRangeStartA("old async"));
    nvtxMarkA("old mark");
    if (opened() != 0) {
        puts("wrong");
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "--expect") == 0)
        puts("expect old outer 3\nexpect old inner 12\nexpect v2:old work 3\nexpect old async 1\n"
             "expect old mark 1\nexpect opened 6");
    puts("done");
    return 0;
}
