"""The binding under torch.cuda.graph: 61 layers in one graph, replayed with other lengths, slots and masks, against
float64 torch; then graph replay against eager launches. Exit code 1 on a failure, 77 without a usable GPU.

    check_graph.py [--json FILE]
"""

import argparse
import json
import statistics
import sys

import torch

import verify_mla

LAYERS, HEADS, DRAFT, BATCH, SCALE = 61, 8, 9, 4, 0.1446792
ROOM = 6000  # prefix tokens over the batch


def oracle(step_tensors, layer, mask):
    """float64, one request at a time, from the same device tensors."""
    t = step_tensors
    outs, lses = [], []
    indptr = t["kv_indptr"].tolist()
    for b in range(BATCH):
        prefix = t["kv_indices"][indptr[b]:indptr[b + 1]]
        slots = torch.cat([prefix, t["out_cache_loc"][b * DRAFT:(b + 1) * DRAFT]])
        k = t["kv"][layer][slots].double()
        q = t["q"][layer][b * DRAFT:(b + 1) * DRAFT].double()
        s = torch.einsum("thd,jd->thj", q, k) * SCALE
        seen = torch.ones(DRAFT, len(slots), dtype=torch.bool, device=k.device)
        seen[:, len(prefix):] = mask[b]
        s = s.masked_fill(~seen[:, None, :], float("-inf"))
        outs.append(torch.softmax(s, -1) @ k[:, :512])
        lses.append(torch.logsumexp(s, -1))
    return torch.cat(outs), torch.cat(lses)


def random_tree():
    """Ancestor closure of a random tree, [BATCH, DRAFT, DRAFT]."""
    mask = torch.zeros(BATCH, DRAFT, DRAFT, dtype=torch.bool)
    for b in range(BATCH):
        for t in range(DRAFT):
            if t:
                parent = int(torch.randint(t, (1,)))
                mask[b, t] = mask[b, parent]
            mask[b, t, t] = True
    return mask.cuda()


def fill(t, lengths):
    """Rewrites every buffer in place, as an engine does between replays. Returns the mask of the draft tokens."""
    slots = t["kv"].shape[1]
    order = torch.randperm(slots, device="cuda")
    total = sum(lengths)
    t["kv"].normal_(0, 0.5)
    t["q"].normal_()
    t["kv_indptr"].copy_(torch.tensor([sum(lengths[:b]) for b in range(BATCH + 1)], dtype=torch.int32))
    t["kv_indices"][:total] = order[:total]
    t["out_cache_loc"].copy_(order[total:total + BATCH * DRAFT])
    mask = random_tree()
    offset = 0
    for b, length in enumerate(lengths):
        t["mask_indptr"][b] = offset
        block = torch.ones(DRAFT, length + DRAFT, dtype=torch.uint8, device="cuda")
        block[:, length:] = mask[b].to(torch.uint8)
        t["custom_mask"][offset:offset + block.numel()] = block.flatten()
        offset += block.numel()
    t["mask_indptr"][BATCH] = offset
    t["out"].fill_(float("nan"))
    t["lse"].fill_(float("nan"))
    return mask


def median_us(work, repeats=30):
    times = []
    for i in range(repeats + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        if i >= 3:
            times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped, nothing was checked: no GPU")
        return 77
    torch.manual_seed(1)
    device = verify_mla.open_device(0)
    rows, slots = BATCH * DRAFT, ROOM + BATCH * DRAFT + 64
    new = lambda *shape, dtype: torch.zeros(*shape, dtype=dtype, device="cuda")
    t = dict(
        q=new(LAYERS, rows, HEADS, 576, dtype=torch.bfloat16), kv=new(LAYERS, slots, 576, dtype=torch.bfloat16),
        kv_indptr=new(BATCH + 1, dtype=torch.int32), kv_indices=new(ROOM + 64, dtype=torch.int64),
        qo_indptr=torch.arange(BATCH + 1, dtype=torch.int64, device="cuda") * DRAFT,
        out_cache_loc=new(rows, dtype=torch.int64), custom_mask=new(DRAFT * (ROOM + rows), dtype=torch.uint8),
        mask_indptr=new(BATCH + 1, dtype=torch.int64), out=new(LAYERS, rows, HEADS, 512, dtype=torch.bfloat16),
        lse=new(LAYERS, rows, HEADS, dtype=torch.float32))
    shared = {k: t[k] for k in ("kv_indptr", "kv_indices", "qo_indptr", "out_cache_loc", "custom_mask", "mask_indptr")}
    steps, workspace = [], None
    for layer in range(LAYERS):
        steps.append(verify_mla.Step(device, batch=BATCH, draft_tokens=DRAFT, heads=HEADS, scale=SCALE, q=t["q"][layer],
                                     kv=t["kv"][layer], out=t["out"][layer], lse=t["lse"][layer], workspace=workspace, **shared))
        workspace = steps[0].workspace  # one for all layers: they run one after the other
    print(steps[0].describe())
    try:
        verify_mla.Step(device, batch=BATCH, draft_tokens=DRAFT, heads=HEADS, scale=SCALE, q=t["q"][0], kv=t["kv"][0],
                        out=t["out"][0], **{**shared, "qo_indptr": shared["qo_indptr"].int()})
        print("FAIL  int32 qo_indptr was accepted")
        return 1
    except verify_mla.VerifyMlaError as e:
        print(f"ok    refused: {e}")

    fill(t, [1] * BATCH)
    steps[0].launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for step in steps:
            step.launch()

    failures = 0
    side = torch.cuda.Stream()
    for lengths in ([1, 1, 1, 1], [1024, 0, 33, 4000], [2000, 700, 3000, 64], [5, 1, 1, 1]):
        mask = fill(t, lengths)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):  # somebody else prefills meanwhile
            a = torch.randn(2048, 2048, device="cuda")
            for _ in range(5):
                a = a @ a * 1e-3
        graph.replay()
        torch.cuda.synchronize()
        worst_o = worst_l = 0.0
        for layer in (0, 1, 30, LAYERS - 1):
            o, lse = oracle(t, layer, mask)
            d = t["out"][layer].double() - o
            worst_o = max(worst_o, (d.norm() / o.norm()).item() if torch.isfinite(d).all() else float("inf"))
            worst_l = max(worst_l, (t["lse"][layer].double() - lse).abs().max().item())
        ok = worst_o <= 5e-3 and worst_l <= 1e-3 and bool(torch.isfinite(t["out"].float()).all())
        failures += not ok
        print(f"{'ok   ' if ok else 'FAIL '} replay of {LAYERS} layers, lengths {lengths}: rel-l2 {worst_o:.2e}, lse {worst_l:.1e}")

    # Launch cost against replay: one request, four drafts, 1k of context. With and without the promise that the prefix is
    # old, which it is for layers in a row.
    fill(t, [1024] * BATCH)
    times = {}
    for name, flags in (("", 0), (", old prefix", verify_mla.OLD_PREFIX)):
        small = [verify_mla.Step(device, batch=1, draft_tokens=4, heads=HEADS, scale=SCALE, q=t["q"][layer], kv=t["kv"][layer],
                                 out=t["out"][layer], workspace=workspace, kv_indptr=t["kv_indptr"], flags=flags,
                                 kv_indices=t["kv_indices"], out_cache_loc=t["out_cache_loc"],
                                 qo_indptr=torch.tensor([0, 4], dtype=torch.int64, device="cuda")) for layer in range(LAYERS)]
        run_small = lambda: [step.launch() for step in small]
        run_small()
        results = [t["out"][layer].clone() for layer in (0, LAYERS - 1)]
        small_graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(small_graph):
            run_small()
        eager, replay = median_us(run_small), median_us(small_graph.replay)
        same = all(torch.equal(t["out"][layer][:4], r[:4]) for layer, r in zip((0, LAYERS - 1), results))
        failures += not same
        times[name] = dict(eager_us=eager, replay_us=replay)
        print(f"{LAYERS} layers, B=1, T=4, H={HEADS}, L=1024{name}: eager {eager:.0f} us, replay {replay:.0f} us, "
              f"ratio {eager / replay:.2f}, {'equal' if same else 'FAIL different'} bits")
    if options.json:
        with open(options.json, "w") as f:
            json.dump(dict(schema=2, layers=LAYERS, batch=1, draft=4, heads=HEADS, context=1024, failures=failures,
                           plain=times[""], old_prefix=times[", old prefix"]), f)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
