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


def pin():
    """Keeps this process on one core for all its loops: on which core a process lands changes its speed by more than a shim does."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[len(cores) // 2]})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--only", help="one loop")
    arguments = parser.parse_args()
    pin()
    with torch.no_grad():
        result = {name: measure(step, units, arguments.samples) for name, (step, units) in loops().items()
                  if arguments.only in (None, name)}
    print(json.dumps({"torch": torch.__version__, "ns": result}))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
