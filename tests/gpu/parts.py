"""The parts of scripts/gpu-check. Each takes a `session` and yields samples; what a part claims is in its docstring."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/examples"))
import check_examples  # noqa: E402

PYTHON = sys.executable


class session:
    """Where things are, and how long a part may go on."""

    def __init__(self, build, seconds):
        self.build = build
        self.deadline = time.monotonic() + seconds

    def left(self):
        return self.deadline - time.monotonic()


def finish(sample, wrong):
    return {**sample, "ok": not wrong, "wrong": wrong}


def plain(command, timeout=240):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout,
                          stdin=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout, done.stderr


def last_json(text):
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                pass
    return None


def audited(run, command, *options, timeout=240):
    """`capturesan run` around a command: (exit code, stdout, stderr, report or None)."""
    with tempfile.TemporaryDirectory(prefix="capturesan-gpu-") as folder:
        report = pathlib.Path(folder) / "report.json"
        code, out, err = plain([str(run.build / "bin/capturesan"), "run", "--driver", "real", *options, "-o", f"{folder}/trace",
                                "--report", f"json={report}", "--", *command], timeout)
        return code, out, err, json.loads(report.read_text()) if report.exists() else None


def brief(finding):
    """A finding without what would bloat the file of samples."""
    return {**{key: finding[key] for key in ("rule", "api", "result", "severity", "message", "count")},
            "cascade": sorted({call["api"] for call in finding["cascade"]}),
            "stack": [f"{f['module']}!{f['symbol'] or hex(f['offset'])}" for f in finding["stack"][:8]],
            "python": [f"{pathlib.Path(f['file']).name}:{f['line']}" for f in finding["python"][:4]]}


def examples(run):
    """Every example gives on the real driver exactly the findings that its comments announce."""
    for name in (run.build / "examples/list.txt").read_text().split():
        if run.left() < 30:
            return
        start = time.monotonic()
        try:
            wrong, report, output = check_examples.run_example(run.build, "real", name)
        except (ValueError, OSError, subprocess.TimeoutExpired) as error:
            wrong, report, output = [str(error)], None, ""
        sample = {"name": name, "seconds": round(time.monotonic() - start, 2)}
        if report:
            sample.update(findings=[brief(f) for f in report["findings"]], summary=report["summary"], driver=report["driver"])
        if wrong:
            sample["output"] = output[-2000:]
        yield finish(sample, wrong)


def matrix(run):
    """The probe gets from the real driver the answers of the measured matrix, cell by cell."""
    for which, golden in (("one", "capture_matrix_580.159.csv"), ("two", "capture_matrix_two_gpus_580.159.csv")):
        command = [PYTHON, str(ROOT / "tests/sim/compare_table.py"), "4", str(ROOT / "tests/golden" / golden),
                   str(run.build / "tests/capture_probe"), which]
        code, out, err = plain(command, timeout=max(10, run.left()))
        cells = (out.split() or ["none"])[-1]
        if code == check_examples.SKIP:  # a second GPU, for the second table
            yield {**finish({"name": golden, "cells": out.strip()}, []), "skipped": True}
        else:
            yield finish({"name": golden, "cells": cells, "output": (out + err)[-8000:]},
                         [] if code == 0 else [f"{cells} cells are equal"])


# name, arguments, rule and call to find, replays
PROGRAMS = [
    ("clean", ["--fault", "none", "--replays", "1000"], None, 1000),
    ("item", ["--fault", "item", "--replays", "1000"], ("CS101", "cuStreamSynchronize"), 0),
    ("freed-input", ["--fault", "freed-input", "--replays", "1000"], ("CS201", "cuGraphLaunch"), 1001),
]


def judge_program(wanted, replays, bare_code, code, out, report):
    wrong = []
    if report is None:
        return ["no report was written"]
    serious = [f for f in report["findings"] if f["severity"] != "note" and not f["suppressed"]]
    found = [(f["rule"], f["api"]) for f in serious]
    if found != ([wanted] if wanted else []):
        wrong.append(f"findings: {found}, expected {wanted or 'none'}")
    if code != (1 if wanted else 0):
        wrong.append(f"exit code {code}")
    if report["child_exit"] != bare_code:
        wrong.append(f"the program ended with {report['child_exit']} under the shim and {bare_code} without it")
    if report["summary"]["replays"] != replays:
        wrong.append(f"replays: {report['summary']['replays']}, expected {replays}")
    if not report["captures"]:
        wrong.append("no capture was seen")
    if not report["summary"]["complete"] or report["summary"]["dropped"]:
        wrong.append("the trace is incomplete")
    for finding in serious:
        modules = {frame["module"] for frame in finding["stack"]}
        if not any(name.startswith(("libtorch", "libc10", "_C")) for name in modules):
            wrong.append(f"{finding['rule']}: no frame of PyTorch in its native stack: {sorted(modules)}")
    if wanted is None and not (last_json(out) or {}).get("matches"):
        wrong.append("the replays did not compute what eager execution computes")
    return wrong


def pytorch(run):
    """`.item()` in a capture is CS101 on cuStreamSynchronize with its stack; a clean network replayed 1,000 times has no
    finding; the same with its input freed is CS201."""
    for name, arguments, wanted, replays in PROGRAMS:
        command = [PYTHON, str(HERE / "mlp.py"), *arguments]
        bare_code, bare_out, bare_err = plain(command)
        code, out, err, report = audited(run, command)
        sample = {"name": name, "bare": {"exit": bare_code, **(last_json(bare_out) or {})}, "exit": code,
                  "program": last_json(out)}
        if report:
            sample.update(findings=[brief(f) for f in report["findings"]], summary=report["summary"], driver=report["driver"])
        wrong = judge_program(wanted, replays, bare_code, code, out, report)
        if wrong:
            sample["stderr"], sample["bare_stderr"] = err[-3000:], bare_err[-1000:]
        yield finish(sample, wrong)


def coverage(run):
    """The shim counts each wrapped call exactly as often as CUPTI does."""
    command = [PYTHON, str(HERE / "mlp.py"), "--fault", "none", "--replays", "1000"]
    code, out, err, report = audited(run, command, "--cupti=verify")
    pairs = report["summary"].get("coverage", {}) if report else {}
    wrong = [f"{name}: {pair['shim']} hooks, {pair['cupti']} by CUPTI" for name, pair in sorted(pairs.items())
             if pair["shim"] != pair["cupti"]]
    if not pairs:
        wrong.append("no counts in the report")
    if pairs and not any(name.startswith("cuGraphLaunch") and pair["shim"] == 1000 for name, pair in pairs.items()):
        wrong.append("cuGraphLaunch was not counted 1,000 times")
    sample = {"name": "mlp", "exit": code, "program": last_json(out), "names": len(pairs), "counts": pairs}
    if wrong:
        sample["stderr"] = err[-3000:]
    yield finish(sample, wrong)


# Programs of tests/gpu/frameworks.py; in some the graphs are not captured but built node by node.
FRAMEWORKS = ("triton", "cupy", "jax", "compile", "graphed", "expandable", "workers", "profiler")
BUILT_BY_HAND = ("jax",)


def frameworks(run):
    """Programs of other frameworks compute under the shim what they compute without it, are captured, and have no finding."""
    for name in FRAMEWORKS:
        if run.left() < 20:
            return
        command = [PYTHON, str(HERE / "frameworks.py"), name]
        start = time.monotonic()
        bare_code, bare_out, bare_err = plain(command)
        middle = time.monotonic()
        if bare_code == check_examples.SKIP:
            yield {**finish({"name": name, "reason": bare_out.strip()}, []), "skipped": True}
            continue
        code, out, err, report = audited(run, command)
        sample = {"name": name, "bare": last_json(bare_out), "program": last_json(out), "exit": code,
                  "seconds": {"bare": round(middle - start, 1), "shim": round(time.monotonic() - middle, 1)}}
        wrong = []
        if bare_code != 0:
            wrong.append(f"the bare program ended with {bare_code}: {bare_err[-1500:]}")
        if report is None:
            wrong.append("no report was written")
        else:
            sample.update(findings=[brief(f) for f in report["findings"]], summary=report["summary"], driver=report["driver"])
            if report["findings"]:
                wrong.append(f"findings: {[(f['rule'], f['api']) for f in report['findings']]}")
            if not report["summary"]["replays"] or not (report["captures"] or name in BUILT_BY_HAND):
                wrong.append("no capture or no replay was seen")
            if not report["summary"]["complete"] or report["summary"]["dropped"]:
                wrong.append("the trace is incomplete")
        if code != 0 or last_json(out) != last_json(bare_out):
            wrong.append(f"exit code {code}; bare {last_json(bare_out)}, under the shim {last_json(out)}")
        if wrong:
            sample["stderr"] = err[-3000:]
        yield finish(sample, wrong)


VARIANTS = ("bare", "lite", "full")
BUDGETS = {("replay_1ms", "lite"): 1.01, ("replay_empty", "lite"): 1.05, ("eager", "lite"): 1.03, ("eager", "full"): 1.15,
           ("blocks", "lite"): 1.03}


def overhead(run):
    """What `run` costs: rounds of one process without it, one at level lite and one at level full, in turns."""
    command = [PYTHON, str(HERE / "loops.py")]
    number = 0
    longest = 0.0
    while run.left() > longest * 1.3 + 10 and number < 9:
        start = time.monotonic()
        order = VARIANTS if number % 2 == 0 else VARIANTS[::-1]
        ns, wrong, events = {}, [], {}
        for variant in order:
            if variant == "bare":
                code, out, err = plain(command)
                report = None
            else:
                code, out, err, report = audited(run, command, "--level", variant)
                events[variant] = report["summary"]["events"] if report else None
                if report is None or report["summary"]["dropped"]:
                    wrong.append(f"{variant}: no report, or records were dropped")
            result = last_json(out)
            if code != 0 or not result:
                wrong.append(f"{variant}: exit code {code}: {err[-500:]}")
            else:
                ns[variant] = result["ns"]
        longest = max(longest, time.monotonic() - start)
        yield finish({"name": f"round {number + 1}", "order": list(order), "ns": ns, "events": events}, wrong)
        number += 1


def ratios(samples):
    """(loop, variant) -> one ratio to the bare process per round, each by its fastest sample: the clock of the machines measured so
    far jumps between two speeds that differ by 1.6x, also within a process, and the fastest sample is the one at full speed."""
    out = {}
    for sample in samples:
        bare = sample.get("ns", {}).get("bare")
        for variant in VARIANTS[1:]:
            for loop, times in sample.get("ns", {}).get(variant, {}).items():
                if bare:
                    out.setdefault((loop, variant), []).append(min(times) / min(bare[loop]))
    return out


PARTS = {"examples": examples, "matrix": matrix, "pytorch": pytorch, "coverage": coverage, "frameworks": frameworks,
         "overhead": overhead}
