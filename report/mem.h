/* Memory of the report house: allocations that never return NULL. When memory runs out they jump to
 * the trap if one is set (a library call that must return -ENOMEM: see finish.c), else they print
 * `gputally: out of memory` and exit with 2. What was allocated since the trap was set is leaked
 * then; the process is about to end. Single thread. */
#ifndef GT_MEM_H
#define GT_MEM_H

#include <setjmp.h>
#include <stddef.h>

/* `count` objects of `size` bytes, zeroed. The caller frees with free(). */
void *gt_mem_new(size_t count, size_t size);
void *gt_mem_resize(void *old, size_t count, size_t size);
char *gt_mem_copy(const char *text, size_t len);
char *gt_mem_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Grows *array so that it holds one more than `used`; *room is its capacity. Doubles. */
void gt_mem_grow(void *array, size_t *room, size_t used, size_t size);

/* Ends the command, or jumps: for callers that learn of a lack of memory otherwise (jansson). */
void gt_mem_out(void) __attribute__((noreturn));

/* Set around a call that must not exit; the former one is to be put back. */
extern jmp_buf *gt_mem_trap;

/* For tests: the allocation with this number fails (1: the next); 0: none does. */
extern long gt_mem_fail_at;
/* malloc and free that obey gt_mem_fail_at and return NULL: for jansson. */
void *gt_mem_try(size_t size);
/* 1 once gt_mem_try had none: jansson tells it as a syntax error. */
extern int gt_mem_failed;

#endif
