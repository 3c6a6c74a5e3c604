/* Between PyTorch's C++ and our C. A start function returns a std::unique_ptr, which is not as
 * large as a C struct would have to be to be returned the same way: in memory of the caller's.
 * x86-64 passes its address as a first argument, which C can say; aarch64 in x8, which it can't. */
#include "torch.h"

#ifdef __aarch64__

/* x8 is not kept by the call in between. No unwind table would mean that an exception ends the
 * program here. */
#define START(scope)                                                                               \
    void gt_torch_start_##scope(void);                                                             \
    __asm__(".text\n\t.balign 4\n\t.hidden gt_torch_start_" #scope "\n"                            \
            ".globl gt_torch_start_" #scope "\n\t.type gt_torch_start_" #scope ", %function\n"     \
            "gt_torch_start_" #scope ":\n\t.cfi_startproc\n"                                       \
            "\thint #34\n" /* bti c */                                                             \
            "\tstp x29, x30, [sp, #-32]!\n\t.cfi_def_cfa_offset 32\n"                              \
            "\t.cfi_offset 29, -32\n\t.cfi_offset 30, -24\n"                                       \
            "\tmov x29, sp\n\tstr x8, [sp, #16]\n\tmov w1, #" #scope "\n\tbl gt_torch_start\n"     \
            "\tldr x8, [sp, #16]\n\tstr x0, [x8]\n\tldp x29, x30, [sp], #32\n"                     \
            "\t.cfi_restore 29\n\t.cfi_restore 30\n\t.cfi_def_cfa_offset 0\n\tret\n"               \
            "\t.cfi_endproc\n\t.size gt_torch_start_" #scope ", .-gt_torch_start_" #scope);

#else

#define START(scope)                                                                               \
    static struct gt_torch_context **gt_torch_start_##scope(struct gt_torch_context **result,      \
                                                            const struct gt_torch_rf *rf)          \
    {                                                                                              \
        *result = gt_torch_start(rf, scope);                                                       \
        return result;                                                                             \
    }

#endif

START(0)
START(1)
START(2)
START(7)

void (*gt_torch_stub(unsigned scope))(void)
{
    switch (scope) {
    case GT_TORCH_FUNCTION:
        return (void (*)(void))gt_torch_start_0;
    case GT_TORCH_BACKWARD:
        return (void (*)(void))gt_torch_start_1;
    case GT_TORCH_SCRIPT:
        return (void (*)(void))gt_torch_start_2;
    case GT_TORCH_USER:
        return (void (*)(void))gt_torch_start_7;
    }
    return NULL;
}
