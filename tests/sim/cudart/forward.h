/*
 * Functions that are the driver's under another name: same number of arguments, same types but for
 * the names of structs and enums whose layout and numbers are equal. One line each.
 */
#include "tests/sim/cudart/rt.h"

/* Through the runtime's own prototype: enums and pointers differ in name only. */
#define RT_AS(name, cu) (__typeof__(name) *)(void *)drv.cu

#define FORWARD_(name, id, need, cu, params, ...)                                                  \
    RT_API cudaError_t name params                                                                 \
    {                                                                                              \
        RT_BODY(id, need, __VA_ARGS__);                                                            \
        return RT_END((CUresult)(RT_AS(name, cu))(__VA_ARGS__));                                   \
    }
#define FORWARD(name, version, cu, params, ...)                                                    \
    FORWARD_(name, name##_v##version, RT_NEEDS_CONTEXT, cu, params, __VA_ARGS__)
#define FORWARD_DRIVER(name, version, cu, params, ...)                                             \
    FORWARD_(name, name##_v##version, RT_NEEDS_DRIVER, cu, params, __VA_ARGS__)
#if RT_PT
#define FORWARD2(name, version, pt_version, cu, params, ...)                                       \
    FORWARD_(name, name##_##pt_version, RT_NEEDS_CONTEXT, cu, params, __VA_ARGS__)
#else
#define FORWARD2(name, version, pt_version, cu, params, ...)                                       \
    FORWARD(name, version, cu, params, __VA_ARGS__)
#endif
