"""What frameworks do with CUDA graphs, one program each, none with a mistake. Each prints one line of JSON with a digest of what it
computed, so that a run under the shim can be compared with a bare one. No network, no data.

  triton            a Triton kernel captured by torch.cuda.graph
  cupy              a CuPy stream captured and its graph launched
  jax               XLA's command buffers: a jitted loop (graphs built by hand, no capture)
  compile           torch.compile(mode="reduce-overhead"): graph trees
  graphed           torch.cuda.make_graphed_callables around a training step
  expandable        capture and replay with expandable segments
  workers           replays while spawned DataLoader workers feed them
  profiler          torch.profiler before, during and after captures; prints the kernels that it recorded

A framework that is not installed: exit code 77 and the reason.
"""
import argparse
import json
import os
import sys

from graphs import add_with_cupy, capture, need

REPLAYS = 200


def triton_program():
    torch, triton = need("torch"), need("triton")
    from triton import language as tl

    @triton.jit
    def add_one(data, count, BLOCK: tl.constexpr):
        where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(data + where, mask=where < count)
        tl.store(data + where, value + 1, mask=where < count)

    data = torch.zeros(1000, device="cuda")
    graph = capture(torch, lambda: add_one[(8,)](data, 1000, BLOCK=128))
    before = data.sum().item()
    for _ in range(REPLAYS):
        graph.replay()
    return {"sum": data.sum().item() - before}


def cupy_program():
    return {"sum": float(add_with_cupy(REPLAYS).sum())}


def jax_program():
    os.environ.setdefault("XLA_FLAGS", "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUSTOM_CALL --xla_gpu_graph_min_graph_size=1")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = need("jax")
    import jax.numpy as jnp
    if jax.default_backend() != "gpu":
        print("skipped: JAX has no GPU backend here")
        sys.exit(77)

    @jax.jit
    def step(x):
        for _ in range(8):
            x = jnp.tanh(x @ weights + 0.1) + jnp.cumsum(x, axis=0) * 0.001
        return x

    weights = jnp.eye(64) * 0.5
    x = jnp.ones((64, 64)) * 0.01
    for _ in range(REPLAYS):
        x = step(x)
    return {"sum": round(float(x.sum()), 4)}


def compile_program():
    torch = need("torch")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64)).cuda()
    compiled = torch.compile(model, mode="reduce-overhead")
    total = torch.zeros((), device="cuda")
    with torch.no_grad():
        for i in range(REPLAYS):
            torch.compiler.cudagraph_mark_step_begin()
            x = torch.full((16 if i % 2 else 32, 64), 0.01 * (i % 7), device="cuda")
            total += compiled(x).sum()
    return {"sum": round(total.item(), 2)}


def graphed_program():
    torch = need("torch")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    sample = torch.randn(32, 64, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(model, (sample,))
    for _ in range(REPLAYS):
        optimizer.zero_grad(set_to_none=False)
        loss = (graphed(torch.randn(32, 64, device="cuda")) - 1).square().mean()
        loss.backward()
        optimizer.step()
    return {"loss": round(loss.item(), 3)}


def expandable_program():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
    torch = need("torch")
    held = torch.zeros(1 << 20, device="cuda")

    def work():
        held.add_(torch.ones(1 << 20, device="cuda"))

    graph = capture(torch, work)
    before = held.sum().item()
    for i in range(REPLAYS):
        graph.replay()
        if i % 20 == 0:  # segments grow and shrink beside the graph's pool
            other = torch.empty((1 + i % 60) << 20, device="cuda")
            del other
            torch.cuda.empty_cache()
    return {"sum": held.sum().item() - before}


class rows:
    """A data set of its own: importable by spawned workers."""

    def __len__(self):
        return 64

    def __getitem__(self, i):
        import torch
        return torch.full((64,), float(i))


def workers_program():
    torch = need("torch")
    static = torch.zeros(8, 64, device="cuda")
    total = torch.zeros((), device="cuda", dtype=torch.float64)
    graph = capture(torch, lambda: total.add_(static.sum()))
    total.zero_()
    loader = torch.utils.data.DataLoader(rows(), batch_size=8, num_workers=2, multiprocessing_context="spawn", pin_memory=True)
    for _ in range(3):
        for batch in loader:
            static.copy_(batch, non_blocking=True)
            graph.replay()
            torch.cuda.current_stream().synchronize()  # before the loader may reuse the pinned batch
    return {"sum": total.item()}


def profiler_program():
    torch = need("torch")
    from torch.profiler import ProfilerActivity, profile
    data = torch.zeros(1000, device="cuda")
    work = lambda: data.add_(1).mul_(1)  # noqa: E731
    kernels = {}

    def recorded(name, body):
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
            body()
            torch.cuda.synchronize()
        kernels[name] = sum(e.count for e in p.key_averages() if e.device_type == torch.autograd.DeviceType.CUDA)

    work()
    first = capture(torch, work)  # a capture before any session
    recorded("before", lambda: [work() for _ in range(10)])
    graphs = []
    recorded("during", lambda: (graphs.append(capture(torch, work)), [graphs[0].replay() for _ in range(10)]))
    graphs.append(capture(torch, work))
    recorded("after", lambda: [graph.replay() for graph in (first, *graphs) for _ in range(10)])
    return {"sum": data.sum().item(), "kernels": kernels}


PROGRAMS = {name[:-len("_program")]: value for name, value in list(globals().items()) if name.endswith("_program")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=PROGRAMS)
    outcome = PROGRAMS[parser.parse_args().program]()
    print(json.dumps(outcome))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
