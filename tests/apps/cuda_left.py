"""Launches five kernels by the driver's API and does not wait for them. Arguments: the image; then
  exit     ends by exit       quit     ends by _exit       kill  kills itself
  destroy  destroys the context first
  fork     forks, and both end by exit
  again    closes the driver, opens it again, and launches five more
"""
import ctypes
import os
import signal
import sys


def launches(cuda, image):
    def call(name, *arguments):
        r = getattr(cuda, name)(*arguments)
        assert r == 0, (name, r)

    device, context, module, kernel, memory = (ctypes.c_int(), *(ctypes.c_void_p() for _ in range(4)))
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    call("cuModuleLoad", ctypes.byref(module), image.encode())
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"update_10us")
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4000))
    n, rate = ctypes.c_int(1000), ctypes.c_float(0.5)
    values = (ctypes.c_void_p * 3)(*(ctypes.addressof(v) for v in (n, memory, rate)))
    for _ in range(5):
        call("cuLaunchKernel", kernel, 4, 1, 1, 256, 1, 1, 0, None, values, None)
    return context


def main():
    image, end = sys.argv[1:]
    cuda = ctypes.CDLL("libcuda.so.1")
    context = launches(cuda, image)
    print("launched", flush=True)
    if end == "destroy":
        assert cuda.cuCtxDestroy_v2(context) == 0
    elif end == "again":
        assert cuda.cuCtxSynchronize() == 0
        ctypes.CDLL("libdl.so.2").dlclose(ctypes.c_void_p(cuda._handle))
        launches(ctypes.CDLL("libcuda.so.1"), image)
        assert ctypes.CDLL("libcuda.so.1").cuCtxSynchronize() == 0
    elif end == "fork":
        child = os.fork()
        if child:
            os.waitpid(child, 0)
    elif end == "quit":
        os._exit(3)
    elif end == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(3)


main()
