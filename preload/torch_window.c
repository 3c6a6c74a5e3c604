/* Tells when the program's own torch.profiler runs: the functions of libtorch_cpu.so that start and
 * stop it, which libtorch_python.so calls. Runs on the program's thread. Arguments and results go
 * through as they are; an exception of the real one passes through. */
#include "torch.h"

#include "hook.h"
#include "window.h"

#define ENABLE                                                                                     \
    _ZN5torch8autograd8profiler14enableProfilerERKNS_8profiler4impl14ProfilerConfigERKSt3setINS3_12ActivityTypeESt4lessIS8_ESaIS8_EERKSt13unordered_setIN2at11RecordScopeESt4hashISH_ESt8equal_toISH_ESaISH_EE
#define DISABLE _ZN5torch8autograd8profiler15disableProfilerEv
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

static struct gt_torch_real real_enable = {"libtorch_cpu.so", TEXT(ENABLE)};
static struct gt_torch_real real_disable = {"libtorch_cpu.so", TEXT(DISABLE)};

static void tell(int running)
{
    if (gt_window_torch)
        gt_window_torch(running);
}

typedef void enable_fn(const void *config, const void *activities, const void *scopes);
GT_EXPORT enable_fn ENABLE;
GT_EXPORT void ENABLE(const void *config, const void *activities, const void *scopes)
{
    enable_fn *real = (enable_fn *)gt_torch_real(&real_enable);

    if (real)
        real(config, activities, scopes);
    tell(1);
}

/* Before the real one: what it does to collect its results is none of the program's doing. */
void *gt_torch_before_disable(void) __attribute__((visibility("hidden")));
void *gt_torch_before_disable(void)
{
    tell(0);
    return gt_torch_real(&real_disable);
}

/* Returns a std::unique_ptr: see torch_stub.c. The real one exists, or nobody could call this. */
#ifdef __aarch64__
__asm__(
    ".text\n\t.balign 4\n\t.globl " TEXT(DISABLE) "\n\t.type " TEXT(DISABLE) ", %function\n" TEXT(
        DISABLE) ":\n\t.cfi_startproc\n\thint #34\n"
                 "\tstp x29, x30, [sp, #-32]!\n\t.cfi_def_cfa_offset 32\n"
                 "\t.cfi_offset 29, -32\n\t.cfi_offset 30, -24\n"
                 "\tmov x29, sp\n\tstr x8, [sp, #16]\n\tbl gt_torch_before_disable\n"
                 "\tldr x8, [sp, #16]\n\tldp x29, x30, [sp], #32\n"
                 "\t.cfi_restore 29\n\t.cfi_restore 30\n\t.cfi_def_cfa_offset 0\n\tmov x16, "
                 "x0\n\tbr x16\n"
                 "\t.cfi_endproc\n\t.size " TEXT(DISABLE) ", .-" TEXT(DISABLE));
#else
typedef void *disable_fn(void *result);
GT_EXPORT disable_fn DISABLE;
GT_EXPORT void *DISABLE(void *result)
{
    disable_fn *real = (disable_fn *)gt_torch_before_disable();

    return real(result);
}
#endif
