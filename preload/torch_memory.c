/* What PyTorch's allocators report: the two functions of libc10.so that we stand in front of.
 * Called on any thread at each allocation and release, also while PyTorch itself starts and ends.
 *
 * PyTorch's allocator of main memory keeps a table of blocks only while memoryProfilingEnabled()
 * says so, for without it the size of a released block is unknown. We say so from the first call
 * on, or it would warn of unknown blocks. The program's own profiler must not see more for that: of
 * main memory it gets what it would have got (torch_known.c), of devices, whose allocators always
 * report, everything. */
#include "torch.h"

#include "core/record.h"
#include "hook.h"
#include "torch_known.h"

/* c10::Device in one register: type in the low byte, both signed */
#define TYPE(device) ((int8_t)(device))

typedef _Bool enabled_fn(void);
typedef void report_fn(void *block, int64_t bytes, size_t allocated, size_t reserved,
                       uint16_t device);

#define C10 "libc10.so"
static struct gt_torch_real real_enabled = {C10, "_ZN3c1022memoryProfilingEnabledEv"};
/* 1.13 has int64_t where later versions have size_t */
static struct gt_torch_real real_report_mm = {
    C10, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"};
static struct gt_torch_real real_report_ll = {
    C10, "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"};

/* Whether the program's own profiler wants memory, on this thread. */
static int program_wants(void)
{
    enabled_fn *real = (enabled_fn *)gt_torch_real(&real_enabled);

    return real && real();
}

static void record(int64_t bytes, uint16_t device)
{
    switch (TYPE(device)) {
    case GT_TORCH_CPU:
    case GT_TORCH_MKLDNN:
    case GT_TORCH_IDEEP:
        gt_op_memory(bytes, GT_MEMORY_CPU);
        break;
    case GT_TORCH_CUDA:
    case GT_TORCH_HIP:
    case GT_TORCH_XPU:
    case GT_TORCH_PRIVATE:
        gt_op_memory(bytes, GT_MEMORY_DEVICE);
        break;
    }
}

static void report(struct gt_torch_real *function, void *block, int64_t bytes, size_t allocated,
                   size_t reserved, uint16_t device)
{
    report_fn *real;

    if (gt_torch_wants_memory()) {
        record(bytes, device);
        if (TYPE(device) == GT_TORCH_CPU) {
            if (!program_wants() || gt_torch_known(block, &bytes, &allocated) < 0)
                return;
        }
    }
    real = (report_fn *)gt_torch_real(function);
    if (real)
        real(block, bytes, allocated, reserved, device);
}

GT_EXPORT enabled_fn _ZN3c1022memoryProfilingEnabledEv;
GT_EXPORT _Bool _ZN3c1022memoryProfilingEnabledEv(void)
{
    return gt_torch_wants_memory() || program_wants();
}

GT_EXPORT report_fn _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE;
GT_EXPORT void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *block, int64_t bytes,
                                                                     size_t allocated,
                                                                     size_t reserved,
                                                                     uint16_t device)
{
    report(&real_report_mm, block, bytes, allocated, reserved, device);
}

GT_EXPORT report_fn _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE;
GT_EXPORT void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void *block, int64_t bytes,
                                                                     size_t allocated,
                                                                     size_t reserved,
                                                                     uint16_t device)
{
    report(&real_report_ll, block, bytes, allocated, reserved, device);
}
