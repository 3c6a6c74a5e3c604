"""An ordinary numba-cuda script: compiles a kernel, launches it, checks what came back."""
import warnings

import numpy as np
from numba import cuda
from numba.core.errors import NumbaPerformanceWarning

warnings.simplefilter("ignore", NumbaPerformanceWarning)


@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


def launch(a, out):
    add[4, 32](a, a, out)


def main():
    host = np.arange(100, dtype=np.float32)
    a = cuda.to_device(host)
    out = cuda.device_array(100, dtype=np.float32)
    for _ in range(3):
        launch(a, out)
    cuda.synchronize()
    print("kernel", next(iter(add.overloads.values()))._codelibrary._entry_name)
    print("right" if (out.copy_to_host() == 2 * host).all() else "wrong")


main()
