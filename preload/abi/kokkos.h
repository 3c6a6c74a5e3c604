/* Kokkos Tools: the few types that a tool is called with, written from the documented interface so
 * that no header of Kokkos is needed to build. Used by kokkos.c only. */
#ifndef GT_ABI_KOKKOS_H
#define GT_ABI_KOKKOS_H

#include <stdbool.h>
#include <stdint.h>

/* A memory space, passed by value. Kokkos copies a name of up to 63 bytes into it and leaves the
 * last one as it was: a name that fills it has no end. */
#define GT_KOKKOS_SPACE_BYTES 63
struct gt_kokkos_space {
    char name[GT_KOKKOS_SPACE_BYTES + 1];
};

/* What a tool asks of Kokkos; it hands them out preset, and `count` says how many it knows. */
struct gt_kokkos_settings {
    bool requires_global_fencing; /* preset to true: every event waits for the device first */
    bool reserved[255];
};

/* Interface versions are dates. Since this one the upper eight bits of a device id are the
 * execution space; before, some are 0 whatever it is. */
#define GT_KOKKOS_DEVICE_TYPES 20200625u
#define GT_KOKKOS_DEVICE_TYPE(device_id) ((device_id) >> 24)

#endif
