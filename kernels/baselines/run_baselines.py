"""Times the Triton baselines and a torch composition on the cells of verify_bench, the same way: a CUDA graph of steps over
rotating pools, medians. Checks each against float64 once. Joins the result with verify_bench's JSON, and with what
flashinfer_mla printed, into one table.

    run_baselines.py --json OUT.json [--verify BENCH.json] [--flashinfer OUT.txt] [--configs EARLIER.json]
                     [--contexts 1024,..] [--batch 1,8] [--rows 8,..] [--only T-pack]
"""

import argparse
import concurrent.futures
import json
import math
import multiprocessing
import re
import statistics
import sys
import time

import torch
import triton

from triton_kernels import extend_kernel, merge_kernel, split_kernel

HEADS, SCALE = 8, 0.1446792
SCALE_LOG2 = SCALE * 1.4426950408889634
CONFIGS = [(16, 4, 2), (32, 4, 2), (32, 4, 3), (32, 8, 2), (64, 4, 2), (64, 8, 1), (64, 8, 2)]  # BN, warps, stages
BASELINES = ("T-pack", "T-dec", "T-ext", "torch", "flashinfer")
EXTEND = [(32, 64, 8, 1), (32, 32, 8, 1)]  # BM, BN, warps, stages


def group_rows(rows):
    return 16 if rows <= 16 else 32 if rows <= 32 else 64


def compile_one(job):
    """In a process of its own: fills Triton's cache on disk. A configuration that does not fit is reported, not fatal."""
    kind, rows, bm, bn, warps, stages = job
    try:
        bf, i64, i32, f32 = torch.bfloat16, torch.int64, torch.int32, torch.float32
        common = [bf, bf, i32, i64, i64]
        if kind == "split":
            split_kernel.warmup(*common, f32, f32, 0.1, 4, 8, 32, 2, 16, GROUP_ROWS=rows, BM=bm, BN=bn, num_warps=warps,
                                num_stages=stages, grid=(1,))
        else:
            extend_kernel.warmup(*common, bf, 0.1, 4, 8, BM=bm, BN=bn, num_warps=warps, num_stages=stages, grid=(1,))
    except Exception as e:  # noqa: BLE001 - whatever the compiler throws
        return f"{job}: {str(e).splitlines()[0][:100]}"
    return None


class Problem:
    def __init__(self, batch, context, rows, pools):
        self.batch, self.context, self.rows, self.draft, self.pools = batch, context, rows, rows // HEADS, pools
        tokens = batch * (context + self.draft)
        dev = "cuda"
        self.kv = torch.empty(pools, tokens + 64, 576, dtype=torch.bfloat16, device=dev).normal_(0, 0.5)
        self.q = torch.randn(batch, rows, 576, device=dev).bfloat16()
        order = torch.randperm(tokens + 64, device=dev)
        self.kv_indices = order[:batch * context].contiguous()
        self.out_cache_loc = order[batch * context:tokens].contiguous()
        self.kv_indptr = (torch.arange(batch + 1, device=dev) * context).int()
        self.out = torch.empty(batch, rows, 512, dtype=torch.bfloat16, device=dev)

    def oracle(self, pool):
        outs = []
        for b in range(self.batch):
            slots = torch.cat([self.kv_indices[b * self.context:(b + 1) * self.context],
                               self.out_cache_loc[b * self.draft:(b + 1) * self.draft]])
            k = self.kv[pool][slots].double()
            s = self.q[b].double() @ k.T * SCALE
            t = torch.arange(self.rows, device="cuda") // HEADS
            d = torch.arange(len(slots), device="cuda") - self.context
            s = s.masked_fill(d[None, :] > t[:, None], float("-inf"))
            outs.append(torch.softmax(s, -1) @ k[:, :512])
        return torch.stack(outs)


def split_step(p, per_program, config, splits):
    bn, warps, stages = config
    groups = math.ceil(p.rows / per_program)
    partial = torch.empty(p.batch * p.rows * splits * 512, dtype=torch.float32, device="cuda")
    lse = torch.empty(p.batch * p.rows * splits, dtype=torch.float32, device="cuda")
    ns = max(2, triton.next_power_of_2(splits))
    columns = 512 if ns <= 16 else 128 if ns <= 64 else 64

    def step(pool):
        split_kernel[(p.batch * groups, splits)](
            p.q, p.kv[pool], p.kv_indptr, p.kv_indices, p.out_cache_loc, partial, lse, SCALE_LOG2, p.draft, HEADS, p.rows,
            groups, splits, GROUP_ROWS=per_program, BM=max(16, per_program), BN=bn, num_warps=warps, num_stages=stages)
        merge_kernel[(p.batch * p.rows, 512 // columns)](partial, lse, p.out, splits, NS=ns, COLUMNS=columns, num_warps=4)
    return step


def extend_step(p, config):
    bm, bn, warps, stages = config

    def step(pool):
        extend_kernel[(p.batch, HEADS, math.ceil(p.draft / bm))](
            p.q, p.kv[pool], p.kv_indptr, p.kv_indices, p.out_cache_loc, p.out, SCALE_LOG2, p.draft, HEADS, BM=bm, BN=bn,
            num_warps=warps, num_stages=stages)
    return step


def torch_step(p):
    slots = torch.cat([p.kv_indices.view(p.batch, -1), p.out_cache_loc.view(p.batch, -1)], 1).flatten()
    t = torch.arange(p.rows, device="cuda") // HEADS
    d = torch.arange(p.context + p.draft, device="cuda") - p.context
    bias = torch.zeros(p.rows, p.context + p.draft, device="cuda", dtype=torch.bfloat16)
    bias.masked_fill_(d[None, :] > t[:, None], float("-inf"))

    def step(pool):
        k = p.kv[pool].index_select(0, slots).view(p.batch, -1, 576)
        s = torch.baddbmm(bias, p.q, k.transpose(1, 2), alpha=SCALE)
        torch.bmm(torch.softmax(s, -1), k[:, :, :512], out=p.out)
    return step


def time_step(p, step, replays):
    """Microseconds per step, or None if it cannot run."""
    try:
        step(0)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for pool in range(p.pools):
                step(pool)
    except Exception:  # noqa: BLE001 - out of shared memory, no such kernel
        torch.cuda.synchronize()
        return None
    times = []
    for i in range(replays + 2):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if i >= 2:
            times.append(begin.elapsed_time(end) * 1e3 / p.pools)
    return statistics.median(times)


def correct(p, step):
    p.out.fill_(float("nan"))
    step(0)
    o = p.oracle(0)
    return ((p.out.double() - o).norm() / o.norm()).item()


def split_counts(p, groups, bn, sms):
    most = max(1, math.ceil(p.context / bn))
    return sorted({max(1, min(most, 128, round(f * sms / (p.batch * groups)))) for f in (1, 2, 4)})


def earlier_choices(path):
    """(baseline, rows, batch) -> {context: (configuration, splits)}, from an earlier result."""
    known = {}
    if not path:
        return known
    earlier = json.load(open(path))
    for key in ("results", "earlier_baselines", "baselines"):
        for row in earlier.get(key, []):
            for name, field in (("T-pack", "config"), ("T-dec", "dec config")):
                found = isinstance(row, dict) and re.match(r".*=\((\d+), (\d+), (\d+)\) splits=(\d+)", row.get(field) or "")
                if found:
                    bn, warps, stages, splits = map(int, found.groups())
                    known.setdefault((name, row["rows"], row["batch"]), {})[row["context"]] = ((bn, warps, stages), splits)
    return known


def choice_for(known, name, rows, batch, context):
    """That of the same context, or of the longest shorter one, or None."""
    by_context = known.get((name, rows, batch), {})
    usable = [c for c in by_context if c <= context]
    return by_context[max(usable)] if usable else None


def flashinfer_times(path):
    """(rows, batch, context) -> us, of the cells that flashinfer_mla did not find wrong."""
    rows = (line.split() for line in open(path)) if path else ()
    return {(int(r[0]), int(r[1]), int(r[2])): float(r[3]) for r in rows
            if len(r) == 5 and r[0].isdigit() and float(r[4]) != 0 and float(r[4]) <= 1e-2}


def best_split(p, per_program, sms, chosen=None):
    """Two rounds: every configuration at a middle split count with few replays, then the best two at every count. Or what
    was chosen before."""
    groups = math.ceil(p.rows / per_program)
    if chosen:
        step = split_step(p, per_program, *chosen)
        us = time_step(p, step, 15)
        if us is not None:
            return us, f"BN,warps,stages={chosen[0]} splits={chosen[1]}", step
    found = []
    for config in CONFIGS:
        counts = split_counts(p, groups, config[0], sms)
        us = time_step(p, split_step(p, per_program, config, counts[len(counts) // 2]), 2)
        if us is not None:
            found.append((us, config))
    best = (float("inf"), None, None)
    for _, config in sorted(found)[:2]:
        for splits in split_counts(p, groups, config[0], sms):
            us = time_step(p, split_step(p, per_program, config, splits), 5)
            if us is not None:
                best = min(best, (us, config, splits))
    if best[1] is None:
        return None, "no configuration runs", None
    step = split_step(p, per_program, best[1], best[2])
    return time_step(p, step, 15), f"BN,warps,stages={best[1]} splits={best[2]}", step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", required=True)
    parser.add_argument("--verify")
    parser.add_argument("--flashinfer", help="what flashinfer_mla printed")
    parser.add_argument("--configs", help="an earlier JSON: its configurations instead of choosing anew, where it has them")
    parser.add_argument("--contexts", default="1024,4096,16384,65536,200000")
    parser.add_argument("--batch", default="1,8")
    parser.add_argument("--rows", default="8,32,64,72,128")
    parser.add_argument("--only", default="T-pack,T-dec,T-ext,torch", help="the baselines to time, T-pack always")
    parser.add_argument("--seconds", type=float, default=240, help="stop starting new cells after this long")
    options = parser.parse_args()
    numbers = lambda text: [int(n) for n in text.split(",")]
    started = time.time()
    rows_list = numbers(options.rows)
    known, flashinfer = earlier_choices(options.configs), flashinfer_times(options.flashinfer)
    per_program = {("T-pack", r): group_rows(r) for r in rows_list} | {("T-dec", r): HEADS for r in rows_list if r > HEADS}
    jobs = set()
    for (name, r), rows in per_program.items():
        chosen = {c for (n, k, _), by in known.items() if (n, k) == (name, r) for c, _ in by.values()}
        jobs |= {("split", rows, max(16, rows), *c) for c in (chosen or CONFIGS)}
    if "T-ext" in options.only:
        jobs |= {("extend", 0, bm, bn, w, s) for bm, bn, w, s in EXTEND}
    with concurrent.futures.ProcessPoolExecutor(14, multiprocessing.get_context("spawn")) as pool:
        for message in pool.map(compile_one, sorted(jobs)):
            if message:
                print("not usable", message)
    print(f"compiled {len(jobs)} kernels in {time.time() - started:.0f} s")
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    verify = {}
    if options.verify:
        for r in json.load(open(options.verify))["results"]:
            if r["variant"] == "balanced" and r["mode"] == "graph" and r["slots"] == "random" and r["context"].isdigit():
                verify[(r["rows"], r["batch"], int(r["context"]))] = r["us"]
    results, logs = [], []
    print(f"{'rows':>5} {'B':>2} {'ctx_req':>7} {'T-pack':>9} {'T-dec':>9} {'T-ext':>10} {'torch':>9} {'flashinfer':>10} {'ours':>9} {'best/ours':>9}  best T-pack")
    for rows in rows_list:
        for batch in numbers(options.batch):
            for context in numbers(options.contexts):
                if time.time() - started > options.seconds:
                    continue
                bytes_ = batch * (context + rows // HEADS) * 1160
                p = Problem(batch, context, rows, min(256, max(4, (320 << 20) // bytes_ + 1)))
                row = dict(rows=rows, batch=batch, context=context)
                row["T-pack"], row["config"], step = best_split(
                    p, group_rows(rows), sms, choice_for(known, "T-pack", rows, batch, context))
                if step and context <= 16384:
                    row["T-pack rel-l2"] = correct(p, step)
                if "T-dec" in options.only and rows > HEADS:
                    row["T-dec"], row["dec config"], _ = best_split(
                        p, HEADS, sms, choice_for(known, "T-dec", rows, batch, context))
                if "T-ext" in options.only:  # up to 20 ms a step: few replays
                    steps = [extend_step(p, c) for c in EXTEND]
                    replays = 3 if context <= 16384 else 1
                    row["T-ext"] = min((us for us in (time_step(p, s, replays) for s in steps) if us), default=None)
                    if context <= 4096:
                        row["T-ext rel-l2"] = correct(p, steps[0])
                if "torch" in options.only:
                    row["torch"] = time_step(p, torch_step(p), 5)
                row["flashinfer"] = flashinfer.get((rows, batch, context))
                row["ours"] = verify.get((rows, batch, context))
                times = {n: row[n] for n in BASELINES if row.get(n)}
                if row["ours"] and times:
                    row["best"] = min(times, key=times.get)
                    row["speedup"] = times[row["best"]] / row["ours"]
                    logs.append(math.log(row["speedup"]))
                show = lambda n: f"{row[n]:.1f}" if row.get(n) else "-"
                print(f"{rows:5} {batch:2} {context:7} {show('T-pack'):>9} {show('T-dec'):>9} {show('T-ext'):>10} {show('torch'):>9} "
                      f"{show('flashinfer'):>10} {show('ours'):>9} {row.get('speedup', 0):9.2f}  {row.get('best', '')}; {row['config']}",
                      flush=True)
                results.append(row)
                del p, step
    mean = math.exp(sum(logs) / len(logs)) if logs else None
    if mean:
        print(f"geometric mean of best baseline over ours: {mean:.2f} over {len(logs)} cells; slowest cell {math.exp(min(logs)):.2f}")
    json.dump(dict(schema=1, torch=torch.__version__, triton=triton.__version__, geometric_mean=mean, results=results),
              open(options.json, "w"), indent=0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
