"""A script of cuda-bindings: loads the image named by its argument, launches a kernel of it, checks what came back."""
import ctypes
import sys

import numpy as np
from cuda.bindings import driver


def check(result):
    error, *values = result
    if error != driver.CUresult.CUDA_SUCCESS:
        sys.exit(f"{error}")
    return values[0] if values else None


def launch(kernel, *arguments):
    kinds = (ctypes.c_int, None, ctypes.c_float)
    check(driver.cuLaunchKernel(kernel, 4, 1, 1, 256, 1, 1, 0, 0, (arguments, kinds[:1] + (None,) + kinds[2:]), 0))


def main():
    check(driver.cuInit(0))
    context = check(driver.cuDevicePrimaryCtxRetain(check(driver.cuDeviceGet(0))))
    check(driver.cuCtxSetCurrent(context))
    with open(sys.argv[1], "rb") as f:
        module = check(driver.cuModuleLoadData(f.read()))
    kernel = check(driver.cuModuleGetFunction(module, b"update_10us"))
    host = np.arange(1000, dtype=np.float32)
    memory = check(driver.cuMemAlloc(host.nbytes))
    check(driver.cuMemcpyHtoD(memory, host.ctypes.data, host.nbytes))
    for _ in range(3):
        launch(kernel, 1000, memory, 0.5)
    back = np.empty_like(host)
    check(driver.cuMemcpyDtoH(back.ctypes.data, memory, host.nbytes))
    check(driver.cuMemFree(memory))
    print("right" if (back == host / 8).all() else "wrong")


main()
