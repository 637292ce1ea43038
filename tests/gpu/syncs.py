"""Waits hidden in innocent lines, inside a capture. Each waiting line carries a marker `# waits: NAME`; the check computes from it which
file and line the finding must name. `chain: NAME` marks the callers that must follow, outwards.

usage: syncs.py NAME
"""
import sys

import syncs_logger
import torch


def item_here(x):
    return x.sum().item()  # waits: depth1


def item_in_helper(x):
    def helper(y):
        return y.item()  # waits: depth2
    return helper(x.sum())  # chain: depth2


class layer:
    def __call__(self, x):
        return self.scale(x)  # chain: depth3

    def scale(self, x):
        return x * self.factor(x)  # chain: depth3

    def factor(self, x):
        return x.amax().item()  # waits: depth3


def print_tensor(x):
    print(x, file=sys.stderr)  # waits: print


def nonzero(x):
    return torch.nonzero(x)  # waits: nonzero


def pageable_copy(x):
    return x + torch.ones(x.shape).cuda()  # waits: pageable


def log(x):
    syncs_logger.progress("norm", x)  # chain: logger


PROGRAMS = {"depth1": item_here, "depth2": item_in_helper, "depth3": layer(), "print": print_tensor, "nonzero": nonzero,
            "pageable": pageable_copy, "logger": log}


def main():
    work = PROGRAMS[sys.argv[1]]
    x = torch.ones(64, device="cuda")
    work(x)  # warm-up, eager: allowed
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            work(x + 1)
    except RuntimeError as error:
        print(type(error).__name__)


if __name__ == "__main__":
    main()
