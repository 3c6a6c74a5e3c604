/*
 * What the simulated device runs in place of the kernels of app.h: found by the kernel's name,
 * called once a launch with pointers to its arguments. Built as build/sim/apps/kernels.so.
 */
#define ARG(type, i) (*(type *)args[i])
#define EACH(i, n) for (long i = 0, end_ = (long)grid[0] * block[0]; i < end_ && i < (n); i++)

void saxpy(void **args, unsigned *grid, unsigned *block);
void scale_20us(void **args, unsigned *grid, unsigned *block);
void add_5us(void **args, unsigned *grid, unsigned *block);
void _Z4fillIfEvPT_iS0_(void **args, unsigned *grid, unsigned *block);

void saxpy(void **args, unsigned *grid, unsigned *block)
{
    const float *x = ARG(const float *, 2);
    float *y = ARG(float *, 3);
    EACH(i, ARG(int, 0)) y[i] = ARG(float, 1) * x[i] + y[i];
}

void scale_20us(void **args, unsigned *grid, unsigned *block)
{
    float *x = ARG(float *, 2);
    EACH(i, ARG(int, 0)) x[i] = ARG(float, 1) * x[i];
}

void add_5us(void **args, unsigned *grid, unsigned *block)
{
    float *x = ARG(float *, 2);
    EACH(i, ARG(int, 0)) x[i] = ARG(float, 1) + x[i];
}

void _Z4fillIfEvPT_iS0_(void **args, unsigned *grid, unsigned *block)
{
    float *p = ARG(float *, 0);
    EACH(i, ARG(int, 1)) p[i] = ARG(float, 2);
}
