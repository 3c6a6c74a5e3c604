"""Odd things that programs do with CUDA's driver. Arguments: the image, what to do (a function below). Prints what
the driver answered, which must be the same with and without a profiler."""
import ctypes
import os
import sys
import threading
import time
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_void_p

IMAGE = sys.argv[1].encode()


def say(*words):
    print(*words, flush=True)


class Driver:
    """Functions by name; a name that begins with a small letter `try_` may fail."""

    def __init__(self, name="libcuda.so.1"):
        self.lib = ctypes.CDLL(name)

    def __getattr__(self, name):
        if name.startswith("try_"):
            return getattr(self.lib, name[4:])
        real = getattr(self.lib, name)

        def call(*arguments):
            r = real(*arguments)
            assert r == 0, (name, r)
        return call


class Gpu:
    def __init__(self, context=True, image=IMAGE):
        self.cu = Driver()
        self.device, self.context, self.module, self.kernel = c_int(), c_void_p(), c_void_p(), c_void_p()
        self.memory = c_void_p()
        self.cu.cuInit(0)
        self.cu.cuDeviceGet(byref(self.device), 0)
        if context:
            self.new_context()

    def new_context(self):
        self.cu.cuCtxCreate_v2(byref(self.context), 0, self.device)
        self.load()

    def load(self):
        self.cu.cuModuleLoad(byref(self.module), IMAGE)
        self.cu.cuModuleGetFunction(byref(self.kernel), self.module, b"update_10us")
        self.cu.cuMemAlloc_v2(byref(self.memory), c_size_t(4000))
        self.values = [c_int(1000), c_void_p(self.memory.value), c_float(0.5)]
        self.parameters = (c_void_p * 3)(*(ctypes.addressof(v) for v in self.values))

    def launch(self, times=1, stream=None, grid=4):
        for _ in range(times):
            self.cu.cuLaunchKernel(self.kernel, grid, 1, 1, 256, 1, 1, 0, stream, self.parameters, None)

    def try_launch(self, stream=None, grid=4):
        return self.cu.try_cuLaunchKernel(self.kernel, grid, 1, 1, 256, 1, 1, 0, stream, self.parameters, None)

    def sync(self):
        self.cu.cuCtxSynchronize()


def nothing():
    """CUDA refuses to begin."""
    cu = Driver()
    say(cu.try_cuInit(0), cu.try_cuCtxSynchronize(), cu.try_cuMemFree_v2(c_void_p(4096)))


def null():
    g = Gpu()
    cu = g.cu
    say("launch", cu.try_cuLaunchKernel(None, 1, 1, 1, 1, 1, 1, 0, None, None, None))
    say("ex", cu.try_cuLaunchKernelEx(None, None, None, None), cu.try_cuLaunchKernelEx_ptsz(None, None, None, None))
    for name in ("cuMemcpy3D_v2", "cuMemcpy3DPeer", "cuMemcpy2D_v2", "cuMemcpy2DUnaligned_v2", "cuCtxDestroy_v2",
                 "cuMemFree_v2", "cuMemFreeHost", "cuMemRelease", "cuArrayDestroy", "cuMipmappedArrayDestroy",
                 "cuModuleUnload", "cuStreamDestroy_v2", "cuEventDestroy_v2", "cuMemPoolDestroy"):
        say(name, getattr(cu, "try_" + name)(None))
    for name in ("cuMemcpy3DAsync_v2", "cuMemcpy2DAsync_v2", "cuMemcpy3DPeerAsync", "cuGraphLaunch", "cuMemFreeAsync",
                 "cuEventRecord", "cuMemAlloc_v2", "cuMemAllocHost_v2", "cuArrayCreate_v2", "cuArray3DCreate_v2"):
        say(name, getattr(cu, "try_" + name)(None, None))
    for name in ("cuMemHostAlloc", "cuMemAllocManaged", "cuMemAllocAsync", "cuModuleGetFunction", "cuMipmappedArrayCreate",
                 "cuLaunchCooperativeKernelMultiDevice", "cuMemcpyDtoD_v2", "cuMemcpyHtoD_v2", "cuMemsetD8_v2"):
        say(name, getattr(cu, "try_" + name)(None, None, None))
    say(cu.try_cuMemCreate(None, c_size_t(0), None, None), cu.try_cuMemAllocFromPoolAsync(None, None, None, None))
    say(cu.try_cuMemcpyBatchAsync_v2(None, None, None, c_size_t(0), None, None, c_size_t(0), None))
    say(cu.try_cuMemcpyBatchAsync_v2(None, None, None, c_size_t(3), None, None, c_size_t(0), None))
    say(cu.try_cuMemcpy3DBatchAsync_v2(c_size_t(2), None, None, None))
    say(cu.try_cuGetProcAddress_v2(None, None, 0, ctypes.c_uint64(0), None))
    f = c_void_p()
    for version in (0, -1, 1, 2000, 11030, 12000, 13000, 99000):
        for flags in (0, 1, 2, 3, 77):
            r = cu.try_cuGetProcAddress_v2(b"cuLaunchKernel", byref(f), version, ctypes.c_uint64(flags), None)
            say(version, flags, r, bool(f.value))
    for name in (b"", b"cu", b"cuLaunch" * 40, b"cuNone", b"_ptsz", b"cuLaunchKernel_ptsz", b"cuMemAlloc_v2"):
        say(cu.try_cuGetProcAddress_v2(name, byref(f), 13000, ctypes.c_uint64(0), None))
    g.launch(3)
    g.sync()


def destroyed():
    """Contexts come and go with launches outstanding."""
    g = Gpu(context=False)
    for _ in range(80):
        g.new_context()
        g.launch(5)
        say(g.cu.try_cuCtxDestroy_v2(g.context))


def primary():
    g = Gpu(context=False)
    for i in range(20):
        g.cu.cuDevicePrimaryCtxRetain(byref(g.context), g.device)
        g.cu.cuCtxSetCurrent(g.context)
        g.load()
        g.launch(5)
        say(g.cu.try_cuDevicePrimaryCtxReset_v2(g.device) if i % 2 else g.cu.try_cuDevicePrimaryCtxRelease_v2(g.device))


def many():
    """As many contexts as a thread may have."""
    g = Gpu(context=False)
    contexts = []
    for _ in range(60):
        g.new_context()
        contexts.append(c_void_p(g.context.value))
        g.launch(2)
        g.sync()
        g.launch(1)
    for c in contexts:
        g.cu.cuCtxDestroy_v2(c)


def streams():
    g = Gpu()
    all = []
    for _ in range(1000):
        s = c_void_p()
        g.cu.cuStreamCreate(byref(s), 1)
        all.append(s)
        g.launch(2, s)
    g.sync()
    for s in all:
        g.cu.cuStreamDestroy_v2(s)


def bursts():
    g = Gpu()
    for _ in range(10):
        g.launch(600)
        g.sync()


def flood():
    """More than any table holds, before anybody waits."""
    g = Gpu()
    g.launch(10000)
    g.sync()


def forked():
    """A child of a process with launches outstanding: what it may still do is up to the driver."""
    g = Gpu()
    for _ in range(5):
        g.launch(3)
        pid = os.fork()
        if not pid:
            g.cu.try_cuCtxSynchronize()
            g.cu.try_cuMemFree_v2(g.memory)
            os._exit(7)
        say(os.waitpid(pid, 0)[1])
        g.sync()


def forever():
    g = Gpu()
    say("begins")

    def work():
        p = c_void_p()
        g.cu.cuCtxSetCurrent(g.context)
        while True:
            g.launch(10)
            g.cu.cuMemAlloc_v2(byref(p), c_size_t(1000))
            g.cu.cuMemFree_v2(p)
            g.sync()
    for _ in range(3):
        threading.Thread(target=work).start()


def profiler():
    """Says itself when to record."""
    g = Gpu()
    g.launch(3)
    g.cu.cuProfilerStart()
    g.launch(4)
    g.sync()
    g.cu.cuProfilerStop()
    g.launch(5)
    g.sync()


def threads():
    """Threads that end while others launch."""
    g = Gpu()

    def work():
        g.cu.cuCtxSetCurrent(g.context)
        g.launch(5)
    for _ in range(20):
        all = [threading.Thread(target=work) for _ in range(10)]
        for t in all:
            t.start()
        for t in all:
            t.join()
    g.sync()


def capture():
    """A capture in one stream, launches in another; a capture that is spoiled; one that is never ended."""
    g = Gpu()
    s, other, graph, run = c_void_p(), c_void_p(), c_void_p(), c_void_p()
    g.cu.cuStreamCreate(byref(s), 1)
    g.cu.cuStreamCreate(byref(other), 1)
    g.cu.cuStreamBeginCapture_v2(s, 2)
    g.launch(3, s)
    g.launch(4, other)
    p = c_void_p()
    g.cu.cuMemAllocAsync(byref(p), c_size_t(1 << 20), other)
    g.cu.cuMemFreeAsync(p, other)
    g.cu.cuMemAllocAsync(byref(p), c_size_t(1 << 20), other)
    g.cu.cuStreamEndCapture(s, byref(graph))
    g.cu.cuMemFreeAsync(p, other)
    g.cu.cuGraphInstantiateWithFlags(byref(run), graph, ctypes.c_uint64(0))
    for _ in range(2):
        g.cu.cuGraphLaunch(run, s)
    g.sync()
    g.cu.cuStreamBeginCapture_v2(s, 0)
    g.launch(1, s)
    say("spoiled", g.cu.try_cuStreamSynchronize(s), g.cu.try_cuStreamEndCapture(s, byref(graph)))
    g.launch(2, other)
    g.cu.cuMemAllocAsync(byref(p), c_size_t(1 << 20), other)
    g.cu.cuMemFreeAsync(p, other)
    third = c_void_p()
    g.cu.cuStreamCreate(byref(third), 1)
    g.cu.cuStreamBeginCapture_v2(third, 2)
    say("gone", g.cu.try_cuStreamDestroy_v2(third))
    g.cu.cuMemAllocAsync(byref(p), c_size_t(1 << 20), other)
    g.cu.cuMemFreeAsync(p, other)
    g.launch(2, other)
    g.sync()


def callbacks():
    """Launches from host functions, which the driver may refuse."""
    g = Gpu()
    s, out = c_void_p(), []
    g.cu.cuStreamCreate(byref(s), 1)
    kind = ctypes.CFUNCTYPE(None, c_void_p)
    host = kind(lambda _: out.append((g.try_launch(), g.cu.try_cuMemFree_v2(c_void_p(16)))))
    for _ in range(5):
        g.launch(1, s)
        say(g.cu.try_cuLaunchHostFunc(s, host, None))
    g.sync()
    say(out)


def left():
    """Ends with launches from exit handlers."""
    import atexit
    g = Gpu()
    g.launch(3)
    atexit.register(lambda: say("late", g.try_launch(), g.cu.try_cuCtxSynchronize()))
    libc = ctypes.CDLL(None)
    kind = ctypes.CFUNCTYPE(None)
    global keep
    keep = kind(lambda: None)


def freed():
    """Memory in odd ways."""
    g = Gpu()
    cu = g.cu
    p, h = c_void_p(), c_void_p()
    for size in (0, 1, 1 << 62, 2 ** 64 - 1, 1 << 20):
        r = cu.try_cuMemAlloc_v2(byref(p), c_size_t(size))
        say(size, r)
        if r == 0:
            say("free", cu.try_cuMemFree_v2(p), "again", cu.try_cuMemFree_v2(p))
    cu.cuMemAllocHost_v2(byref(h), c_size_t(4096))
    say("host as device", cu.try_cuMemFree_v2(h), "host", cu.try_cuMemFreeHost(h), "again", cu.try_cuMemFreeHost(h))
    cu.cuMemAlloc_v2(byref(p), c_size_t(1000))
    say("inside", cu.try_cuMemFree_v2(c_void_p(p.value + 8)))
    say("device as host", cu.try_cuMemFreeHost(p))
    other = c_void_p()
    cu.cuCtxCreate_v2(byref(other), 0, g.device)
    say("other context", cu.try_cuMemFree_v2(p))
    cu.cuMemAlloc_v2(byref(p), c_size_t(2000))
    t = threading.Thread(target=lambda: say("other thread", cu.try_cuCtxSetCurrent(other), cu.try_cuMemFree_v2(p)))
    t.start()
    t.join()
    s = [c_void_p(), c_void_p()]
    for x in s:
        cu.cuStreamCreate(byref(x), 1)
    cu.cuMemAllocAsync(byref(p), c_size_t(3000), s[0])
    say("other stream", cu.try_cuMemFreeAsync(p, s[1]), cu.try_cuMemFreeAsync(p, s[0]))
    cu.cuMemAllocAsync(byref(p), c_size_t(5000), s[0])
    say("plainly", cu.try_cuMemFree_v2(p))
    cu.cuMemAlloc_v2(byref(p), c_size_t(6000))
    say("async", cu.try_cuMemFreeAsync(p, s[0]))
    cu.cuMemAllocManaged(byref(p), c_size_t(7000), 1)
    say("managed", cu.try_cuMemFree_v2(p))
    pitch = c_size_t()
    cu.cuMemAllocPitch_v2(byref(p), byref(pitch), c_size_t(500), c_size_t(7), 4)
    say("pitch", pitch.value, cu.try_cuMemFree_v2(p))


KERNEL, COPY, SET = 10, 1, 2
REQUEST = ctypes.CFUNCTYPE(None, ctypes.POINTER(c_void_p), ctypes.POINTER(c_size_t), ctypes.POINTER(c_size_t))
COMPLETE = ctypes.CFUNCTYPE(None, c_void_p, ctypes.c_uint32, c_void_p, c_size_t, c_size_t)
CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, c_int, ctypes.c_uint32, c_void_p)
CLOCK = ctypes.CFUNCTYPE(ctypes.c_uint64)


class Cupti:
    """The program's own use of CUPTI: counts its records by kind, and adds up what kernels took."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcupti.so.13")
        self.buffers, self.kinds, self.ns, self.called, self.dropped = {}, {}, 0, 0, 0
        self.keep = REQUEST(self.requested), COMPLETE(self.completed), CALLBACK(self.call)
        self.during = lambda: None

    def __getattr__(self, name):
        return getattr(self.lib, "cupti" + name)

    def requested(self, buffer, size, most):
        b = ctypes.create_string_buffer(8192)
        self.buffers[ctypes.addressof(b)] = b
        buffer[0], size[0], most[0] = ctypes.addressof(b), 8192, 0

    def completed(self, context, stream, buffer, size, valid):
        record = c_void_p()
        while self.lib.cuptiActivityGetNextRecord(c_void_p(buffer), c_size_t(valid), byref(record)) == 0:
            kind = ctypes.c_uint32.from_address(record.value).value
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            if kind in (3, KERNEL):
                start, end = (ctypes.c_uint64 * 2).from_address(record.value + 16)
                self.ns += end - start
        n = c_size_t()
        self.lib.cuptiActivityGetNumDroppedRecords(None, 0, byref(n))
        self.dropped += n.value
        self.during()

    def call(self, *_):
        self.called += 1

    def register(self):
        return self.ActivityRegisterCallbacks(self.keep[0], self.keep[1])

    def subscribe(self):
        self.handle = c_void_p()
        return self.Subscribe(byref(self.handle), self.keep[2], None)

    def say(self, *words):
        self.ActivityFlushAll(1)
        say(*words, sorted(self.kinds.items()), self.ns, "dropped", self.dropped, "called", self.called)


def own_before():
    """CUPTI is asked before the driver begins, with a clock of its own."""
    c = Cupti()
    clock = CLOCK(lambda: 3 * time.time_ns())
    say(c.register(), c.subscribe(), c.ActivityRegisterTimestampCallback(clock), c.ActivityEnable(KERNEL))
    g = Gpu()
    g.launch(5)
    g.sync()
    c.ActivityFlushAll(1)
    say("end", sorted(c.kinds.items()), c.dropped, c.called)


def own_again():
    """Ends with CUPTI, and begins anew, three times; launches all the while."""
    g, c = Gpu(), Cupti()
    for _ in range(3):
        g.launch(2)
        say(c.register(), c.subscribe(), c.ActivityEnable(KERNEL), c.EnableDomain(1, c.handle, 1))
        g.launch(3)
        g.sync()
        c.say("on")
        g.launch(1)
        say(c.Finalize())
        g.launch(2)
        g.sync()
    say(c.subscribe(), c.Unsubscribe(c.handle), c.Unsubscribe(c.handle), c.subscribe())
    g.launch(1)
    g.sync()
    c.say("end")


def own_inside():
    """Calls CUPTI from the callback that gets a buffer, while it ends."""
    g, c = Gpu(), Cupti()
    say(c.register(), c.subscribe(), c.ActivityEnable(KERNEL))
    g.launch(500)
    g.sync()
    g.launch(500)
    g.sync()
    say(c.Finalize())
    say(c.register(), c.ActivityEnable(KERNEL))
    g.launch(500)
    g.sync()
    say(c.ActivityDisable(KERNEL), c.Finalize())
    say(sorted(c.kinds.items()), c.ns)


def own_ends():
    """Ends with CUPTI again and again while another thread launches."""
    g, c = Gpu(), Cupti()
    stop = threading.Event()

    def work():
        g.cu.cuCtxSetCurrent(g.context)
        while not stop.is_set():
            g.launch(1)
            g.sync()
    t = threading.Thread(target=work)
    t.start()
    for _ in range(300):
        c.register()
        c.ActivityEnable(KERNEL)
        g.launch(5)
        c.Finalize()
    stop.set()
    t.join()
    say("ended")


def own_flush():
    """Another thread flushes, and one switches kinds, while one launches."""
    g, c = Gpu(), Cupti()
    c.register()
    c.ActivityEnable(KERNEL)
    stop = threading.Event()

    def flush():
        while not stop.is_set():
            c.ActivityFlushAll(0)

    def switch():
        while not stop.is_set():
            c.ActivityEnable(SET)
            c.ActivityDisable(SET)
    all = [threading.Thread(target=flush), threading.Thread(target=switch)]
    for t in all:
        t.start()
    for _ in range(50):
        g.launch(20)
        g.sync()
    stop.set()
    for t in all:
        t.join()
    c.say("end")


def own_serial():
    """The older kind of kernels' records."""
    g, c = Gpu(), Cupti()
    say(c.register(), c.ActivityEnable(3))
    g.launch(5)
    g.sync()
    c.say("three")
    say(c.ActivityDisable(3))
    g.launch(2)
    g.sync()
    c.say("none")


def own_child():
    """The child of a fork calls CUPTI."""
    g, c = Gpu(), Cupti()
    say(c.register(), c.subscribe(), c.ActivityEnable(KERNEL))
    g.launch(5)
    pid = os.fork()
    if not pid:
        c.ActivityDisable(KERNEL)
        c.ActivityFlushAll(0)
        c.Unsubscribe(c.handle)
        os._exit(5)
    say(os.waitpid(pid, 0)[1])
    g.sync()
    c.say("end")


if __name__ == "__main__":
    globals()[sys.argv[2]]()
