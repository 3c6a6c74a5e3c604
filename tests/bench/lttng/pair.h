/* The event that a range's begin is compared with: an int, a long, a string. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER gputally_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/bench/lttng/pair.h"
#if !defined(GT_LTTNG_PAIR_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define GT_LTTNG_PAIR_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(gputally_bench, ev, LTTNG_UST_TP_ARGS(int, a, long, b, const char *, s),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, a, a)
                                                   lttng_ust_field_integer(long, b, b)
                                                       lttng_ust_field_string(s, s)))
#endif
#include <lttng/tracepoint-event.h>
