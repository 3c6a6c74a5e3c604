/* PyTorch's operators: the calls of record.h that begin with gt_op. */
#include "core/record.h"

#define TAG(scope) GT_TAG(GT_SOURCE_TORCH, 0, scope)

int gt_op_push(const struct gt_op *op)
{
    const struct gt_attr a = {.name = op->name,
                              .shapes = op->shapes,
                              .overload = op->overload,
                              .token = op->token,
                              .flops = op->flops,
                              .scope = op->scope};
    return gt_push_attr(TAG(0), &a) < 0 ? -1 : 0;
}

void gt_op_pop(uint64_t token)
{
    gt_pop_token(GT_TAG_GROUP(TAG(0)), token);
}

void gt_op_memory(int64_t bytes, enum gt_memory_kind kind)
{
    (void)bytes;
    (void)kind;
}

int gt_op_open(void)
{
    return 0;
}

int gt_push_duplicate(gt_tag tag)
{
    return gt_push(tag, "(duplicate)");
}
