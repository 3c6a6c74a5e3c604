/* What the simulated device runs in place of train.c's kernels. Built as build/sim/demo/kernels.so.
 */
#define ARG(type, i) (*(type *)args[i])
#define EACH(i, n) for (long i = 0, end_ = (long)grid[0] * block[0]; i < end_ && i < (n); i++)

void multiply_80us(void **args, unsigned *grid, unsigned *block);
void relu_5us(void **args, unsigned *grid, unsigned *block);
void update_10us(void **args, unsigned *grid, unsigned *block);

void multiply_80us(void **args, unsigned *grid, unsigned *block)
{
    float *y = ARG(float *, 1);
    const float *w = ARG(const float *, 2);
    EACH(i, ARG(int, 0)) y[i] = y[i] * w[i];
}

void relu_5us(void **args, unsigned *grid, unsigned *block)
{
    float *y = ARG(float *, 1);
    EACH(i, ARG(int, 0)) y[i] = y[i] > 0 ? y[i] : 0;
}

void update_10us(void **args, unsigned *grid, unsigned *block)
{
    float *w = ARG(float *, 1);
    EACH(i, ARG(int, 0)) w[i] -= ARG(float, 2) * w[i];
}
