/* Writes the range names that PyTorch's emit_nvtx writes (2.x and 1.13), and names that only look
 * like them. --expect as in nvtx_basic.c, and
 *   shape NAME SHAPES COUNT   a row when shapes are kept apart (GPUTALLY_RECORD_SHAPES=1)
 * Exit 77: no NVTX headers. */
#include "nvtx_client.h"

#if HAVE_NVTX
static void pair(const char *text)
{
    nvtxRangePushA(text);
    nvtxRangePop();
}

int main(int argc, char **argv)
{
    char text[256];

    client_start(argc, argv);
    /* 40 calls, every text different: two keys, two shapes */
    for (int i = 0; i < 20; i++) {
        int n = i % 2 ? 3 : 4;

        snprintf(text, sizeof(text),
                 "aten::linear, seq = %d, op_id = %d, sizes = [[2, %d], [5, %d], []], "
                 "input_op_ids = [(0,-1), (0,-1), (0,-1)]",
                 i, 2 * i + 1, n, n);
        nvtxRangePushA(text);
        snprintf(text, sizeof(text),
                 "aten::t, op_id = %d, sizes = [[5, %d]], input_op_ids = [(0,-1)]", 2 * i + 2, n);
        pair(text);
        nvtxRangePop();
    }
    /* without shapes, and 1.13 */
    for (int i = 0; i < 5; i++) {
        snprintf(text, sizeof(text), "MmBackward0, seq = %d, op_id = %d", i, 100 + i);
        pair(text);
        snprintf(text, sizeof(text), "aten::mul, seq = %d, sizes = [[4], [4]]", i);
        pair(text);
        snprintf(text, sizeof(text), "aten::ones, op_id = %d", 200 + i);
        pair(text);
    }
    pair("aten::relu"); /* no field at all */
    pair("loss, seq = high");
    pair("epoch, seq = 1 of 3");
    pair("a, sizes = [[2, 3]");
    expect("aten::linear", 20);
    expect("aten::t", 20);
    expect("MmBackward0", 5);
    expect("aten::mul", 5);
    expect("aten::ones", 5);
    expect("aten::relu", 1);
    expect("loss, seq = high", 1);
    expect("epoch, seq = 1 of 3", 1);
    expect("a, sizes = [[2, 3]", 1);
    if (expecting)
        puts("shape aten::linear [[2, 3], [5, 3], []] 10\nshape aten::linear [[2, 4], [5, 4], []] "
             "10\n"
             "shape aten::t [[5, 3]] 10\nshape aten::t [[5, 4]] 10\nshape aten::mul [[4], [4]] 5");
    puts("done");
    return 0;
}
#else
int main(void)
{
    return no_nvtx();
}
#endif
