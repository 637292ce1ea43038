"""A small network captured into a CUDA graph and replayed; clean, or with one fault planted.

  none          nothing wrong: must end with 0 and without a finding
  item          `.item()` inside the capture: the host waits for a stream that is being captured
  freed-input   the graph's input is deleted and its memory given back to the driver before one more replay

Prints one line of JSON at the end. PyTorch 2.11; no network, no data.
"""
import argparse
import json
import sys

import torch

ROWS, WIDTH = 64, 256
INPUT_ROWS = 32768  # 32 MiB of floats: a segment of its own, so that the allocator can give it back


def forward(model, static_input, staging):
    staging.copy_(static_input[:ROWS])  # a copy node: its operands are known for sure
    return model(staging)


def capture(model, static_input, fault):
    """Returns (graph, output, what the graph needs) after the usual warm-up on a side stream."""
    staging = torch.empty(ROWS, WIDTH, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            forward(model, static_input, staging)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()

    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        output = forward(model, static_input, staging)
        if fault == "item":
            output = output * output.sum().item()  # the mistake
    return graph, output, staging


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=("none", "item", "freed-input"), default="none")
    parser.add_argument("--replays", type=int, default=1000)
    arguments = parser.parse_args()

    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH)).cuda()
    static_input = torch.randn(INPUT_ROWS, WIDTH, device="cuda")
    outcome = {"fault": arguments.fault, "torch": torch.__version__, "replays": 0, "error": None, "matches": None}
    try:
        graph, output, _staging = capture(model, static_input, arguments.fault)
        for _ in range(arguments.replays):
            graph.replay()
            outcome["replays"] += 1
        torch.cuda.synchronize()
        with torch.no_grad():
            outcome["matches"] = torch.allclose(output, model(static_input[:ROWS]), rtol=1e-3, atol=1e-3)
        if arguments.fault == "freed-input":
            del static_input
            torch.cuda.empty_cache()  # the mistake: the graph still reads that memory
            graph.replay()
            outcome["replays"] += 1
            torch.cuda.synchronize()
    except RuntimeError as error:  # AcceleratorError is one
        outcome["error"] = str(error).splitlines()[0]
    print(json.dumps(outcome))
    sys.stdout.flush()
    if arguments.fault == "none" and (outcome["error"] or not outcome["matches"]):
        sys.exit(1)


if __name__ == "__main__":
    main()
