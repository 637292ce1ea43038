"""The parts of scripts/gpu-check. Each takes a `session` and yields samples; what a part claims is in its docstring."""
import json
import os
import pathlib
import random
import shutil
import statistics
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


def marked(kind, name):
    """(file, line) of each line of the test's programs that carries the marker, in the order of the file."""
    found = []
    for path in (HERE / "syncs.py", HERE / "syncs_logger.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.rstrip().endswith(f"# {kind}: {name}"):
                found.append((path.name, number))
    return found


# PyTorch refuses a copy from pageable memory itself, before any call of the driver.
REFUSED_BY_PYTORCH = ("pageable",)


def judge_frames(name, report):
    wrong = []
    findings = [f for f in report["findings"] if f["severity"] == "error"]
    if name in REFUSED_BY_PYTORCH:
        return [f"findings: {[(f['rule'], f['api']) for f in findings]}, expected none"] if findings else []
    if [f["rule"] for f in findings] != ["CS101"]:
        return [f"findings: {[(f['rule'], f['api']) for f in findings]}, expected one CS101"]
    own = [(pathlib.Path(f["file"]).name, f["line"]) for f in findings[0]["python"]
           if pathlib.Path(f["file"]).name.startswith("syncs")]
    expected = marked("waits", name)
    if len(expected) != 1 or own[:1] != expected:
        wrong.append(f"innermost own frame {own[:1]}, expected {expected}")
    callers = [frame for frame in own[1:] if frame in marked("chain", name)]
    if sorted(callers) != sorted(marked("chain", name)):
        wrong.append(f"callers {own[1:]}, expected among them {marked('chain', name)}")
    if findings[0].get("runtime_api") != "cudaStreamSynchronize":
        wrong.append(f"runtime call {findings[0].get('runtime_api')!r}, expected cudaStreamSynchronize")
    return wrong


def python_frames(run):
    """A wait hidden in a Python line is found at that line, also in a helper, a method three calls deep and another module."""
    for name in ("depth1", "depth2", "depth3", "print", "nonzero", "pageable", "logger"):
        if run.left() < 15:
            return
        code, out, err, report = audited(run, [PYTHON, str(HERE / "syncs.py"), name], "--cupti=auto")
        sample = {"name": name, "exit": code}
        wrong = ["no report was written"]
        if report:
            sample.update(findings=[{**brief(f), "runtime_api": f.get("runtime_api", "")} for f in report["findings"]],
                          summary=report["summary"], driver=report["driver"])
            wrong = judge_frames(name, report)
        if wrong:
            sample["stderr"] = err[-2000:]
        yield finish(sample, wrong)


# How a loop is run: under nothing, under `capturesan run`, and under what people would use otherwise.
OURS = {"lite": ["--level", "lite"], "full": ["--level", "full"], "lite_cupti": ["--level", "lite", "--cupti=auto"]}
VARIANTS = ("bare", *OURS, "cupti_all", "memcheck")
BUDGETS = {("replay_1ms", "lite"): 1.01, ("replay_empty", "lite"): 1.05, ("eager", "lite"): 1.03, ("eager", "full"): 1.15,
           ("blocks", "lite"): 1.03}
# Where a process and its libraries come to lie in memory changes its speed by a few per cent for as long as it lives.
SEVERAL = {"bare": 4, "lite": 4, "full": 2}
SLOW = {"memcheck": 20}  # a sample of this variant has that much less work, and only every tenth round has one
UNITS = {"replay_1ms": 20, "replay_empty": 8000, "eager": 6000, "blocks": 4}


class served_loops:
    """A process of loops.py that waits for orders: only one of several works at a time, so that all see the same clocks."""

    def __init__(self, run, variant, core):
        self.variant = variant
        command = [PYTHON, str(HERE / "loops.py"), "--serve", "--core", str(core)]
        self.folder = tempfile.TemporaryDirectory(prefix="capturesan-gpu-")
        if variant in OURS:
            command = [str(run.build / "bin/capturesan"), "run", "--driver", "real", *OURS[variant], "-o", f"{self.folder.name}/trace",
                       "--report", f"json={self.folder.name}/report.json", "--", *command]
        elif variant == "cupti_all":
            command.append("--cupti-all")
        elif variant == "memcheck":
            tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
            command = [tool, "--tool", "memcheck", *command]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, loop):
        units = max(1, UNITS[loop] // SLOW.get(self.variant, 1))
        self.process.stdin.write(f"{loop} {units}\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise OSError(f"{self.variant}: the process ended")

    def close(self):
        """The report, where there is one."""
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.wait(timeout=60)
        path = pathlib.Path(self.folder.name) / "report.json"
        return json.loads(path.read_text()) if path.exists() else None


def overhead(run):
    """What `run` costs, beside CUPTI with both API domains on and compute-sanitizer: several processes each, all pinned to one core, which
    take turns in random order within each round, so that clock changes of the machine reach all of them alike."""
    core = sorted(os.sched_getaffinity(0))[len(os.sched_getaffinity(0)) // 2]
    processes = [served_loops(run, variant, core) for variant in VARIANTS for _ in range(SEVERAL.get(variant, 1))]
    for process in processes[:]:
        try:
            process.answer()  # it is ready
        except OSError as error:
            processes.remove(process)
            yield {**finish({"name": f"{process.variant}: {error}", "ns": {}}, []), "skipped": True}
    number = 0
    chance = random.Random(1)
    longest = 0.0
    while run.left() > longest * 2 + 20 and number < 200:
        start = time.monotonic()
        ns = {}
        order = [p for p in processes if p.variant not in SLOW or number % 10 == 0]
        for loop in UNITS:
            chance.shuffle(order)
            # Whoever comes first after another loop finds other clocks than the rest; that time is thrown away.
            next(p for p in order if p.variant not in SLOW).ask(loop)
            for process in order:
                ns.setdefault(process.variant, {}).setdefault(loop, []).append(round(process.ask(loop)["ns"], 1))
        longest = max(longest, time.monotonic() - start)
        yield finish({"name": f"round {number + 1}", "ns": ns}, [])
        number += 1
    for process in processes:
        report = process.close()
        if process.variant in OURS:
            wrong = [] if report and not report["summary"]["dropped"] and not report["findings"] else ["no report, a finding, or dropped records"]
            yield finish({"name": f"{process.variant}: report", "ns": {}, "summary": report["summary"] if report else None}, wrong)


def ratios(samples):
    """(loop, variant) -> one ratio per round: median of the variant's processes to median of the bare ones."""
    out = {}
    for sample in samples:
        bare = sample.get("ns", {}).get("bare")
        for variant in VARIANTS[1:]:
            for loop, times in sample.get("ns", {}).get(variant, {}).items():
                if bare:
                    out.setdefault((loop, variant), []).append(statistics.median(times) / statistics.median(bare[loop]))
    return out


def lifetimes(run):
    """Programs whose graphs outlive their memory compute something else without any error, and each is found; their fixed twins,
    and programs that do what engines do 1,000 times, give no finding at `likely` or above."""
    import lifetime_parts
    yield from lifetime_parts.samples(run, sys.modules[__name__])


PARTS = {"examples": examples, "matrix": matrix, "pytorch": pytorch, "coverage": coverage, "python_frames": python_frames, "frameworks": frameworks,
         "lifetimes": lifetimes, "overhead": overhead}
