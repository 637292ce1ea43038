"""Loops whose time says what a shim costs. Prints one line of JSON: nanoseconds per unit of work, several samples a loop.

  replay_1ms     launches of a graph that keeps the GPU busy for about a millisecond
  replay_empty   launches of a graph with one tiny kernel, back to back
  eager          launch-bound: tiny kernels one by one
  blocks         a step that takes and returns 5,000 blocks of PyTorch's allocator

PyTorch 2.11; no network, no data.
"""
import argparse
import json
import os
import sys
import time

import torch

MATRIX = 2048        # one product of this size in half precision takes tens of microseconds
PRODUCTS = 40
BLOCKS = 5000


def capture(work):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def measure(step, units, samples):
    """Nanoseconds per unit: `samples` runs of `units` steps, each ended by one synchronisation."""
    for _ in range(max(1, units // 4)):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(samples):
        start = time.perf_counter_ns()
        for _ in range(units):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter_ns() - start) / units)
    return times


def loops():
    left = torch.randn(MATRIX, MATRIX, device="cuda", dtype=torch.float16)
    right = torch.randn(MATRIX, MATRIX, device="cuda", dtype=torch.float16) / MATRIX
    product = torch.empty_like(left)

    def products():
        for _ in range(PRODUCTS):
            torch.mm(left, right, out=product)

    tiny = torch.zeros(64, device="cuda")
    long_graph = capture(products)
    empty_graph = capture(lambda: tiny.add_(1))

    def blocks():
        held = [torch.empty(256, device="cuda") for _ in range(BLOCKS)]
        del held

    return {
        "replay_1ms": (long_graph.replay, 60),
        "replay_empty": (empty_graph.replay, 40000),
        "eager": (lambda: tiny.add_(1), 20000),
        "blocks": (blocks, 10),
    }


def pin(core):
    """Keeps this process on one core for all its loops: on which core a process lands changes its speed by more than a shim does."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[len(cores) // 2] if core is None else core})


def cupti_all():
    """Subscribes to every callback of the driver and the runtime API; the callback does nothing."""
    import ctypes
    libc = ctypes.CDLL(None)
    library = ctypes.CDLL("libcupti.so.13")
    subscriber = ctypes.c_void_p()
    nothing = ctypes.cast(libc.labs, ctypes.c_void_p)  # looks at its first argument, an integer to it, and returns
    if library.cuptiSubscribe(ctypes.byref(subscriber), nothing, None) != 0:
        sys.exit("cuptiSubscribe was refused")
    for domain in (1, 2):  # CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API
        if library.cuptiEnableDomain(1, subscriber, domain) != 0:
            sys.exit("cuptiEnableDomain was refused")


def serve():
    """Answers each line `LOOP UNITS` with the nanoseconds per unit. A short run first wakes caches and the GPU's own context."""
    made = loops()
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        name, units = line.split()
        step = made[name][0]
        for count in (max(1, int(units) // 8), int(units)):
            start = time.perf_counter_ns()
            for _ in range(count):
                step()
            torch.cuda.synchronize()
            took = time.perf_counter_ns() - start
        print(json.dumps({"ns": took / int(units)}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--only", help="one loop")
    parser.add_argument("--serve", action="store_true", help="reads lines `LOOP UNITS`, answers each with its time")
    parser.add_argument("--core", type=int, help="processor to stay on")
    parser.add_argument("--cupti-all", action="store_true", help="with every callback of CUPTI's driver and runtime domains")
    arguments = parser.parse_args()
    pin(arguments.core)
    if arguments.cupti_all:
        torch.cuda.init()
        cupti_all()
    if arguments.serve:
        with torch.no_grad():
            serve()
        return
    with torch.no_grad():
        result = {name: measure(step, units, arguments.samples) for name, (step, units) in loops().items()
                  if arguments.only in (None, name)}
    print(json.dumps({"torch": torch.__version__, "ns": result}))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
