/* What stands for the kernels of cuda_kernels.cu on the simulated GPU (GTSIM_KERNELS): named as
 * they are, called with pointers to their arguments, for the whole grid. */
void saxpy(void **p, unsigned grid[3], unsigned block[3]);
void _Z9fill_20usPfif(void **p, unsigned grid[3], unsigned block[3]);
void _Z9scale_3usIdEvPT_iS0_(void **p, unsigned grid[3], unsigned block[3]);
void mixed_1ms(void **p, unsigned grid[3], unsigned block[3]);

struct odd {
    char c[5];
    short s;
};

static int threads(const unsigned grid[3], const unsigned block[3], int n)
{
    int all = (int)(grid[0] * block[0]);

    return all < n ? all : n;
}

void saxpy(void **p, unsigned grid[3], unsigned block[3])
{
    int n = threads(grid, block, *(int *)p[0]);
    float a = *(float *)p[1], *y = *(float **)p[3];
    const float *x = *(const float **)p[2];

    for (int i = 0; i < n; i++)
        y[i] = a * x[i] + y[i];
}

void _Z9fill_20usPfif(void **p, unsigned grid[3], unsigned block[3])
{
    int n = threads(grid, block, *(int *)p[1]);

    for (int i = 0; i < n; i++)
        (*(float **)p[0])[i] = *(float *)p[2];
}

void _Z9scale_3usIdEvPT_iS0_(void **p, unsigned grid[3], unsigned block[3])
{
    int n = threads(grid, block, *(int *)p[1]);

    for (int i = 0; i < n; i++)
        (*(double **)p[0])[i] *= *(double *)p[2];
}

/* without the module's variables, which a host function can't see: the client knows */
void mixed_1ms(void **p, unsigned grid[3], unsigned block[3])
{
    struct odd o = *(struct odd *)p[2];

    (void)grid;
    (void)block;
    **(long long **)p[3] = *(char *)p[0] + (long long)*(double *)p[1] + o.c[4] + o.s;
}
