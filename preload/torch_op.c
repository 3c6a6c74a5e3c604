/* What happens when an operator starts and ends. Called by PyTorch, through torch_stub.c, on the
 * thread that runs the operator, with PyTorch's locks not held. Exceptions of PyTorch's own
 * functions may pass through here: nothing is open while they are called. */
#include "torch.h"

#include <string.h>
#include "core/record.h"
#include "torch_flops.h"
#include "torch_forward.h"
#include "torch_shapes.h"

/* An operator's context says that it is no frame. PyTorch deletes it by the second entry of its
 * virtual table; there is nothing to delete. */
static void delete_nothing(void *context)
{
    (void)context;
}
static void (*const virtual_table[])(void *) = {delete_nothing, delete_nothing};
static struct {
    const void *virtual_table;
} left_out = {virtual_table};

/* What torch.profiler leaves out of its own tables. */
static int is_left_out(const char *name)
{
    if (name[0] == 'p')
        return strncmp(name, "profiler::_record_function_e", 28) == 0; /* enter, enter_new, exit */
    if (strncmp(name, "aten::", 6) != 0)
        return 0;
    name += 6;
    return (name[0] == 'i' && strcmp(name, "is_leaf") == 0) ||
           (name[0] == 'o' && strcmp(name, "output_nr") == 0) ||
           (name[0] == '_' && strcmp(name, "_version") == 0);
}

/* The slower half of start: with the inputs' sizes. */
static __attribute__((noinline)) void push_with_sizes(const struct gt_torch_rf *rf,
                                                      struct gt_op *op)
{
    char shapes[GT_TORCH_SHAPES_BYTES];
    struct gt_torch_inputs in;

    if (gt_torch_inputs_read(rf, &in) == 0) {
        if (gt_torch_wants.flops)
            op->flops = gt_torch_flops(rf, op->name, &in);
        if (gt_torch_wants.shapes)
            op->shapes = gt_torch_shapes(shapes, &in);
    }
    gt_torch_inputs_free(&in);
    gt_op_push(op);
}

struct gt_torch_context *gt_torch_start(const struct gt_torch_rf *rf, unsigned scope)
{
    struct gt_op op = {
        .name = gt_torch_calls.name(rf), .token = (uintptr_t)rf, .scope = (uint8_t)scope};

    if (op.name) {
        if (scope == GT_TORCH_FUNCTION && is_left_out(op.name))
            return (struct gt_torch_context *)&left_out;
        if (op.name[0] == 'P' && strncmp(op.name, "ProfilerStep#", 13) == 0)
            op.name = "ProfilerStep*";
    }
    gt_torch_forward(rf, scope, &op);
    if (gt_torch_wants.overloads)
        op.overload = gt_torch_calls.overload_name(rf);
    if (gt_torch_wants.shapes | gt_torch_wants.flops)
        push_with_sizes(rf, &op);
    else
        gt_op_push(&op);
    return NULL;
}

void gt_torch_end(const struct gt_torch_rf *rf, struct gt_torch_context *context)
{
    if (!context)
        gt_op_pop((uintptr_t)rf);
}
