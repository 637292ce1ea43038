"""Waits inside a capture, by ctypes: no framework. The line with the marker is the one that a finding must name; it is three calls deep."""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def must(result):
    if result != 0:
        sys.exit(f"unexpected answer {result}")


class waiter:
    def __init__(self, stream):
        self.stream = stream

    def look(self):
        return self.wait()

    def wait(self):
        results = [
            cuda.cuStreamSynchronize(
                self.stream)  # waits
        ]
        return results[0]


def main():
    context, stream, graph = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))
    must(cuda.cuStreamCreate(ctypes.byref(stream), 1))
    must(cuda.cuStreamBeginCapture_v2(stream, 0))
    answer = waiter(stream).look()
    print(answer, cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))


main()
