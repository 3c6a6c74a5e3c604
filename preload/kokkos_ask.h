/* Whether Kokkos may be told where we are (kokkos_ask.c). */
#ifndef GT_KOKKOS_ASK_H
#define GT_KOKKOS_ASK_H

/* Where Kokkos looks for its tool: since 3.7, before, and since 3.7 with a warning. */
#define GT_KOKKOS_VARIABLE "KOKKOS_TOOLS_LIBS"
#define GT_KOKKOS_OLD_VARIABLE "KOKKOS_PROFILE_LIBRARY"

/* `name` is the very pointer that getenv was called with. 1: answer. On the thread that called
 * getenv, which may hold any lock but the loader's. */
int gt_kokkos_asked(const char *name);

#endif
