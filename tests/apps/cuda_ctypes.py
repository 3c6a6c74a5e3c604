"""CUDA's driver from Python by ctypes: what cuda-python and numba do underneath. Prints results and contents.
`leak`: leaves some memory behind; `maps`: says whether CUPTI is in the process."""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
u64, size_t = ctypes.c_uint64, ctypes.c_size_t


def call(name, *args):
    result = getattr(cuda, name)(*args)
    print(name, result)
    return result


if call("cuInit", 0):
    sys.exit(1)
device, context, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
call("cuDeviceGetCount", ctypes.byref(count))
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
memory, stream = u64(), ctypes.c_void_p()
call("cuMemAlloc_v2", ctypes.byref(memory), size_t(4096))
call("cuStreamCreate", ctypes.byref(stream), 1)
out = ctypes.create_string_buffer(4096)
for i in range(5):
    call("cuMemsetD8Async", memory, 65 + i, size_t(4096), stream)
    call("cuMemcpyDtoHAsync_v2", out, memory, size_t(4096), stream)
    call("cuStreamSynchronize", stream)
    print(out.raw[0:1], out.raw[4095:])
call("cuMemcpyHtoD_v2", u64(3), out, size_t(10))  # no device memory
call("cuMemFree_v2", memory)
call("cuMemFree_v2", memory)
call("cuStreamDestroy_v2", stream)
pfn = ctypes.c_void_p()
if hasattr(cuda, "cuGetProcAddress"):
    call("cuGetProcAddress", b"cuCtxSynchronize", ctypes.byref(pfn), 11040, u64(0))
    print("by pointer", ctypes.CFUNCTYPE(ctypes.c_int)(pfn.value)())
print("newer", hasattr(cuda, "cuGetProcAddress_v2"))
if sys.argv[1:] == ["leak"]:
    for size in (1000, 24):
        call("cuMemAlloc_v2", ctypes.byref(memory), size_t(size))
    host = ctypes.c_void_p()
    call("cuMemAllocHost_v2", ctypes.byref(host), size_t(500))
if sys.argv[1:] == ["maps"]:
    print("CUPTI", "libcupti" in open("/proc/self/maps").read())
