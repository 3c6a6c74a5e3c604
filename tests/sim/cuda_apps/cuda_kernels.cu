/* Kernels of the clients, compiled by nvcc to a cubin and a fatbin. cuda_kernels.c has what stands for them
 * on the simulated GPU; keep the two alike. A name's end tells the simulated duration. */

__device__ int counter = 7;
__constant__ float table[4] = {1, 2, 3, 4};

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

/* mangled */
__global__ void fill_20us(float *p, int n, float v)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = v;
}

template <typename T> __global__ void scale_3us(T *p, int n, T by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] *= by;
}
template __global__ void scale_3us<double>(double *, int, double);

/* arguments of odd sizes, static shared memory, a variable of the module */
struct odd {
    char c[5];
    short s;
};
extern "C" __global__ void mixed_1ms(char a, double b, struct odd o, long long *out)
{
    __shared__ long long parts[64];
    parts[threadIdx.x % 64] = a + (long long)b + o.c[4] + o.s + counter;
    __syncthreads();
    out[0] = parts[0] + (long long)table[3];
}

/* no parameters, and nothing stands for it */
extern "C" __global__ void nothing_500ns()
{
}
