/* A program's own use of CUPTI, as a profiler built into it would: see cupti_own.c. */
#ifndef SIM_CUPTI_OWN_H
#define SIM_CUPTI_OWN_H
#ifdef __cplusplus
extern "C" {
#endif
void own_start(void);
/* Flushes, and prints what came, sorted, without what differs from run to run. */
void own_print(void);
#ifdef __cplusplus
}
#endif
#endif
