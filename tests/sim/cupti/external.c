/*
 * External correlation: numbers that the client pushes on a thread. They get into the records only
 * ahead of the record of an API call made between push and pop; where no API kind is enabled there
 * are none.
 */
#include "tests/sim/cupti/cupti_sim.h"

#define DEPTH 256
struct stack {
    uint64_t id[DEPTH];
    int depth; /* may pass DEPTH: the ids above are lost, pops still match */
};
static __thread struct stack stacks[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];

static bool valid(CUpti_ExternalCorrelationKind kind)
{
    return (int)kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID &&
           kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

SIM_API CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                           uint64_t id)
{
    if (!valid(kind))
        return CUPTI_ERROR_INVALID_PARAMETER;
    struct stack *s = &stacks[kind];
    if (s->depth < DEPTH)
        s->id[s->depth] = id;
    s->depth++;
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                          uint64_t *lastId)
{
    if (!valid(kind))
        return CUPTI_ERROR_INVALID_PARAMETER;
    struct stack *s = &stacks[kind];
    if (!s->depth)
        return CUPTI_ERROR_QUEUE_EMPTY;
    s->depth--;
    if (lastId)
        *lastId = s->depth < DEPTH ? s->id[s->depth] : 0;
    return CUPTI_SUCCESS;
}

void cupti_put_external(uint32_t correlation)
{
    for (int kind = 0; kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE; kind++) {
        const struct stack *s = &stacks[kind];
        if (!s->depth || s->depth > DEPTH)
            continue;
        CUpti_ActivityExternalCorrelation r = {
            .kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
            .externalKind = (CUpti_ExternalCorrelationKind)kind,
            .externalId = s->id[s->depth - 1],
            .correlationId = correlation,
        };
        cupti_put(&r, sizeof r);
    }
}
