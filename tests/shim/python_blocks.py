"""A caching allocator as PyTorch's, used from Python: a block of a graph is given back and handed out again, with the same base and size.

  other   at another line of the program: another owner
  same    at the line that handed it out first: perhaps the same buffer made anew
  thread  by a thread that Python does not know: nobody can tell
"""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
torch = ctypes.CDLL("libfake_torch.so")


def must(result):
    if result != 0:
        sys.exit(f"unexpected answer {result}")


def report(address, size):
    torch.fake_torch_report(ctypes.c_void_p(address), ctypes.c_int64(size), 1)


def make(address):
    torch.fake_torch_report(ctypes.c_void_p(address), ctypes.c_int64(2048), 1)


def main(mode):
    context, stream, graph, executable, memory = (ctypes.c_void_p() for _ in range(5))
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))
    must(cuda.cuStreamCreate(ctypes.byref(stream), 1))
    must(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 21)))
    block = memory.value + 1024
    make(block)
    must(cuda.cuStreamBeginCapture_v2(stream, 2))
    must(cuda.cuMemcpyDtoDAsync_v2(ctypes.c_void_p(memory.value + 65536), ctypes.c_void_p(block), ctypes.c_size_t(64), stream))
    must(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
    must(cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)))
    must(cuda.cuGraphLaunch(executable, stream))
    report(block, -2048)
    if mode == "other":
        torch.fake_torch_report(ctypes.c_void_p(block), ctypes.c_int64(2048), 1)
    elif mode == "same":
        make(block)
    else:
        torch.fake_torch_report_elsewhere(ctypes.c_void_p(block), ctypes.c_int64(2048), 1)
    must(cuda.cuGraphLaunch(executable, stream))
    must(cuda.cuStreamSynchronize(stream))


main(sys.argv[1])
