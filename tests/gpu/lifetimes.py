"""Programs about the memory of a graph, in PyTorch: wrong without any error, each with a fixed twin; and programs that do what
engines do, 1,000 replays and nothing wrong. One line of JSON at the end; no network, no data.

  wrong, fixed with --fixed:
    reused      an input of the graph is given back, and its place handed out to another tensor
    cached      an input of the graph is given back and lies in the allocator's cache
    trimmed     ... and empty_cache gives it back to the driver
    tensor_map  the same with an input that a Triton kernel takes as a tensor map
    unregistered  the page-locked source of a captured copy is unregistered
    workspace   the workspace of a captured matrix product is freed
  clean:
    optimizer   forward, backward and a capturable Adam in one graph
    trees       torch.compile(mode="reduce-overhead")
    pools       graphs that share a pool and keep their outputs by weak references only
    expandable  expandable segments that grow and shrink beside the graph
    decode      a small transformer that decodes with a static cache
    cupy        CuPy's own pool
    nccl        an all-reduce captured on one GPU
    profiled    torch.profiler(profile_memory=True); prints what it recorded
    remade      an input that one line makes anew for every replay, and that lands where it was
    scratch     the workspace of a captured matrix product is freed and made anew, elsewhere in the program, for the same stream
"""
import argparse
import json
import os
import sys
import weakref

from graphs import add_with_cupy, capture, need

REPLAYS = 1000
MIB = 1 << 20


def copied_input(fixed, after):
    """A graph that copies its input; `after` gives the input's memory another fate. True if the copy still has the input."""
    torch = need("torch")
    source = torch.full((6 * MIB // 4,), 3.0, device="cuda")
    target = torch.empty_like(source)
    graph = capture(torch, lambda: target.copy_(source))
    graph.replay()
    kept = [source] if fixed else []
    del source
    kept.append(after(torch))  # the mistake, unless `kept` holds the input
    graph.replay()
    torch.cuda.synchronize()
    return {"right": bool((target == 3.0).all()), "replays": 2}


def reused_program(fixed):
    def after(torch):
        return [torch.full((size * MIB // 4,), 7.0, device="cuda") for size in (7, 5, 4, 3, 2)]
    return copied_input(fixed, after)


def cached_program(fixed):
    return copied_input(fixed, lambda torch: None)


def trimmed_program(fixed):
    torch = need("torch")
    source = torch.full((32 * MIB // 4,), 3.0, device="cuda")  # a segment of its own
    target = torch.empty_like(source[:16])
    graph = capture(torch, lambda: target.copy_(source[:16]))
    graph.replay()
    torch.cuda.synchronize()
    kept = source if fixed else None
    del source
    torch.cuda.empty_cache()
    outcome = {"right": None, "replays": 2}
    try:
        graph.replay()
        torch.cuda.synchronize()
        outcome["right"] = bool((target == 3.0).all())
    except RuntimeError:  # 700, if nothing is left near the address
        outcome["right"] = False
    del kept
    return outcome


def tensor_map_program(fixed):
    torch, triton = need("torch"), need("triton")
    from triton import language as tl
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def double(description, target, WIDTH: tl.constexpr):
        rows = description.load([tl.program_id(0) * 16, 0])
        where = (tl.program_id(0) * 16 + tl.arange(0, 16))[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
        tl.store(target + where, rows * 2)

    source = torch.full((6 * MIB // 4 // 64, 64), 3.0, device="cuda")
    target = torch.empty_like(source)
    description = TensorDescriptor.from_tensor(source, [16, 64])
    graph = capture(torch, lambda: double[(source.shape[0] // 16,)](description, target, WIDTH=64))
    graph.replay()
    kept = [source] if fixed else []
    del source, description
    kept.append([torch.full((size * MIB // 4,), 7.0, device="cuda") for size in (7, 5, 4, 3, 2)])
    graph.replay()
    torch.cuda.synchronize()
    return {"right": bool((target == 6.0).all()), "replays": 2}


def unregistered_program(fixed):
    torch = need("torch")
    runtime = torch.cuda.cudart()
    source = torch.full((MIB,), 3.0)
    assert int(runtime.cudaHostRegister(source.data_ptr(), 4 * MIB, 0)) == 0
    target = torch.empty(MIB, device="cuda")
    graph = capture(torch, lambda: target.copy_(source, non_blocking=True))
    graph.replay()
    torch.cuda.synchronize()
    if not fixed:
        assert int(runtime.cudaHostUnregister(source.data_ptr())) == 0  # the mistake
        source.fill_(7.0)
    outcome = {"right": None, "replays": 2}
    try:
        graph.replay()
        torch.cuda.synchronize()
        outcome["right"] = bool((target == 3.0).all())
    except RuntimeError as error:
        outcome["error"] = str(error).splitlines()[0]
    return outcome


def workspace_program(fixed):
    torch = need("torch")
    side = torch.cuda.Stream()
    left = torch.randn(64, 8192, device="cuda", dtype=torch.float16)
    right = torch.randn(8192, 64, device="cuda", dtype=torch.float16)
    out = torch.empty(64, 64, device="cuda", dtype=torch.float16)
    with torch.cuda.stream(side):
        for _ in range(3):
            torch.mm(left, right, out=out)  # its workspace belongs to this stream, and comes from ordinary memory
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        torch.mm(left, right, out=out)
    graph.replay()
    torch.cuda.synchronize()
    if not fixed:
        torch._C._cuda_clearCublasWorkspaces()  # the mistake: as a second graph's reset did
        torch.cuda.empty_cache()
    try:
        graph.replay()
        torch.cuda.synchronize()
        return {"right": torch.allclose(out, left @ right, rtol=1e-2, atol=1e-1), "replays": 2}
    except RuntimeError:
        return {"right": False, "replays": 2}


def optimizer_program(_):
    torch = need("torch")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
    x, y = torch.randn(256, 64, device="cuda"), torch.randn(256, 1, device="cuda")
    losses = []

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses[:] = [loss]

    graph = capture(torch, step)
    first = None
    for i in range(REPLAYS):
        x.copy_(torch.randn(256, 64, device="cuda"))
        graph.replay()
        if i == 0:
            first = losses[0].item()
    return {"right": losses[0].item() < first * 2, "replays": REPLAYS}


def trees_program(_):
    torch = need("torch")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64)).cuda()
    compiled = torch.compile(model, mode="reduce-overhead")
    right = True
    with torch.no_grad():
        for i in range(REPLAYS + 10):
            torch.compiler.cudagraph_mark_step_begin()
            x = torch.full((16 if i % 2 else 32, 64), 0.01 * (i % 7), device="cuda")
            y = compiled(x)
            if i % 100 == 0:
                right = right and torch.allclose(y, model(x), rtol=1e-3, atol=1e-3)
    return {"right": right, "replays": REPLAYS}


def pools_program(_):
    torch = need("torch")
    pools = [torch.cuda.graph_pool_handle() for _ in range(2)]
    x = torch.ones(4096, device="cuda")
    graphs, outputs, weak = [], [], []
    for i in range(8):
        out = []
        graphs.append(capture(torch, lambda: out.__setitem__(slice(None), [(x * (i + 1)).relu() + torch.ones_like(x)]),
                              pool=pools[i % 2]))
        if i < 2:
            outputs.append(out[0])  # the last graph of a pool may write over the outputs of the others
        weak.append(weakref.ref(out[0]))
        del out
    right = True
    for i in range(REPLAYS):
        k = i % 8
        graphs[k].replay()
        held = [torch.empty(1 + 1000 * j, device="cuda") for j in range(20)]  # ordinary blocks come and go beside them
        if k < 2:
            right = right and float(outputs[k][0]) == k + 2
        del held
    torch.cuda.synchronize()
    return {"right": right, "replays": REPLAYS}


def expandable_program(_):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
    torch = need("torch")
    held = torch.zeros(1 << 20, device="cuda")
    graph = capture(torch, lambda: held.add_(torch.ones(1 << 20, device="cuda")))
    before = held[0].item()
    for i in range(REPLAYS):
        graph.replay()
        if i % 50 == 0:
            other = torch.empty((1 + i % 60) << 20, device="cuda")
            del other
            torch.cuda.empty_cache()
    return {"right": held[0].item() - before == REPLAYS, "replays": REPLAYS}


def decode_program(_):
    torch = need("torch")
    torch.manual_seed(1)
    layers, heads, width, words, most = 2, 4, 64, 97, 1024
    wide = heads * (width // heads)
    embed = torch.randn(words, width, device="cuda") * 0.1
    weights = [{name: torch.randn(*shape, device="cuda") * 0.1 for name, shape in
                (("qkv", (width, 3 * wide)), ("out", (wide, width)), ("up", (width, 4 * width)), ("down", (4 * width, width)))}
               for _ in range(layers)]
    cache = torch.zeros(layers, 2, heads, most, width // heads, device="cuda")
    token = torch.zeros(1, dtype=torch.long, device="cuda")
    position = torch.zeros(1, dtype=torch.long, device="cuda")
    places = torch.arange(most, device="cuda")

    def step():
        x = embed[token]
        for layer, w in enumerate(weights):
            q, k, v = (torch.nn.functional.layer_norm(x, (width,)) @ w["qkv"]).view(3, heads, 1, -1)
            cache[layer, 0].index_copy_(1, position, k)
            cache[layer, 1].index_copy_(1, position, v)
            scores = (q @ cache[layer, 0].transpose(1, 2)) / 4 + torch.where(places <= position, 0.0, float("-inf"))
            x = x + (scores.softmax(-1) @ cache[layer, 1]).reshape(1, -1) @ w["out"]
            x = x + torch.nn.functional.gelu(torch.nn.functional.layer_norm(x, (width,)) @ w["up"]) @ w["down"]
        token.copy_((x @ embed.T).argmax(-1))
        position.add_(1)

    with torch.no_grad():
        graph = capture(torch, step)

        def run(go):
            cache.zero_()
            token.fill_(5)
            position.zero_()
            out = []
            for _ in range(REPLAYS):
                go()
                out.append(token.clone())
            return torch.cat(out)

        replayed = run(graph.replay)
        eager = run(step)
    return {"right": bool((replayed[:20] == eager[:20]).all()), "replays": REPLAYS}


def cupy_program(_):
    return {"right": float(add_with_cupy(REPLAYS)[0]) == REPLAYS + 1, "replays": REPLAYS}


def nccl_program(_):
    torch = need("torch")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29531", RANK="0", WORLD_SIZE="1")
    torch.distributed.init_process_group("nccl")
    x = torch.ones(1 << 16, device="cuda")
    torch.distributed.all_reduce(x)
    torch.cuda.synchronize()

    def work():
        x.add_(1)
        torch.distributed.all_reduce(x)

    graph = capture(torch, work)
    before = x[0].item()
    for _ in range(REPLAYS):
        graph.replay()
    torch.cuda.synchronize()
    right = x[0].item() - before == REPLAYS
    graph.reset()
    torch.distributed.destroy_process_group()
    return {"right": right, "replays": REPLAYS}


def profiled_program(_):
    torch = need("torch")
    from torch.profiler import ProfilerActivity, profile
    x = torch.ones(4096, device="cuda")
    graph = capture(torch, lambda: x.add_(torch.ones_like(x)))
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as p:
        for i in range(REPLAYS):
            graph.replay()
            if i % 10 == 0:
                held = [torch.empty(1000 * (j + 1), device="cuda") for j in range(10)]
                del held
        torch.cuda.synchronize()
    rows = {e.key: [e.count, getattr(e, "self_device_memory_usage", 0), e.self_cpu_memory_usage] for e in p.key_averages()}
    memory = {key: row for key, row in sorted(rows.items()) if row[1] or row[2] or key == "[memory]"}
    return {"right": True, "replays": REPLAYS, "memory": memory}


def remade_program(_):
    torch = need("torch")
    target = torch.empty(6 * MIB // 4, device="cuda")

    def make(value):
        return torch.full((6 * MIB // 4,), value, device="cuda")

    source = make(3.0)
    where = source.data_ptr()
    graph = capture(torch, lambda: target.copy_(source))
    right, replays = True, 0
    for i in range(REPLAYS):
        del source
        source = make(float(i % 5))
        if source.data_ptr() == where:  # as it does here; a program that is right asks
            graph.replay()
            replays += 1
            right = right and (i % 100 != 0 or bool((target == float(i % 5)).all()))
    torch.cuda.synchronize()
    return {"right": right and replays == REPLAYS, "replays": replays}


def scratch_program(_):
    torch = need("torch")
    side = torch.cuda.Stream()
    left = torch.randn(64, 8192, device="cuda", dtype=torch.float16)
    right = torch.randn(8192, 64, device="cuda", dtype=torch.float16)
    out, other = (torch.empty(64, 64, device="cuda", dtype=torch.float16) for _ in range(2))
    with torch.cuda.stream(side):
        for _ in range(3):
            torch.mm(left, right, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        torch.mm(left, right, out=out)
    torch._C._cuda_clearCublasWorkspaces()
    with torch.cuda.stream(side):
        torch.mm(left, right, out=other)  # makes it anew, for this stream: the graph and this are in order
        for _ in range(REPLAYS):
            graph.replay()
    torch.cuda.synchronize()
    return {"right": torch.allclose(out, other, rtol=1e-2, atol=1e-1), "replays": REPLAYS}


PROGRAMS = {name[:-len("_program")]: value for name, value in list(globals().items()) if name.endswith("_program")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--fixed", action="store_true")
    arguments = parser.parse_args()
    outcome = PROGRAMS[arguments.program](arguments.fixed)
    print(json.dumps(outcome))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
