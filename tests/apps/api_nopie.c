/* api_basic.c as a program at a fixed address: weak symbols would stay NULL there, the stubs'
 * look-up does not. flags.mk has the flags. */
#include "api_basic.c"
