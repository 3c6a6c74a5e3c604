/* What the stub driver and the stub runtime tell the tests: which function was called last, and
 * with what. Exported by both; looked up with dlsym. */
#ifndef CUDA_STUB_H
#define CUDA_STUB_H

#include <stdint.h>

/* Every argument that lies in a register or in a place of 8 bytes on the stack. */
#define SLOTS 16
#define SLOT_PARAMETERS                                                                            \
    uintptr_t s0, uintptr_t s1, uintptr_t s2, uintptr_t s3, uintptr_t s4, uintptr_t s5,            \
        uintptr_t s6, uintptr_t s7, uintptr_t s8, uintptr_t s9, uintptr_t s10, uintptr_t s11,      \
        uintptr_t s12, uintptr_t s13, uintptr_t s14, uintptr_t s15
#define SLOT_ARRAY                                                                                 \
    {                                                                                              \
        s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15                       \
    }
typedef unsigned slot_fn(SLOT_PARAMETERS);

struct stub_seen {
    const char *name;
    uintptr_t slots[SLOTS];
    unsigned calls;  /* so far */
    unsigned result; /* what the next calls return; the test writes it */
};
/* stub_driver_seen, stub_runtime_seen */
typedef struct stub_seen *stub_seen_fn(void);

#endif
