"""The part `lifetimes` of scripts/gpu-check: tests/gpu/lifetimes.py under `capturesan run`."""
import concurrent.futures
import pathlib
import time

PROGRAM = pathlib.Path(__file__).resolve().parent / "lifetimes.py"

# name -> rule, severity and least confidence of what must be found in the wrong program
WRONG = {
    # Of the same size as before, so that only the line of the program tells its owners apart.
    "reused": ("CS201", "error", "likely"),
    "cached": ("CS201", "warning", "likely"),
    "trimmed": ("CS201", "error", "proved"),
    "tensor_map": ("CS201", "error", "likely"),
    "unregistered": ("CS207", "warning", "likely"),
    # cuBLAS passes one large struct: that a word in it is an address can only be suspected.
    "workspace": ("CS201", "error", "suspected"),
}
CLEAN = ("optimizer", "trees", "pools", "expandable", "decode", "cupy", "nccl", "profiled", "remade", "scratch")
SKIP = 77
LEVELS = ("suspected", "likely", "proved")


def at_least(finding, level):
    return LEVELS.index(finding["confidence"]) >= LEVELS.index(level)


def judge(parts, wanted, bare, watched):
    """What differs from what must be, in words."""
    code, out, err, report = watched
    wrong = []
    program = parts.last_json(out)
    if report is None or program is None:
        return [f"no report, or the program did not end: {code} {err[-600:]}"]
    if report["child_exit"] != bare[0]:
        wrong.append(f"the program ended with {report['child_exit']} under the shim and {bare[0]} without it")
    if report["summary"]["replays"] < program["replays"]:
        wrong.append(f"replays: {report['summary']['replays']}, the program made {program['replays']}")
    if not report["summary"]["complete"]:
        wrong.append("the trace is incomplete")
    loud = [f for f in report["findings"] if at_least(f, "likely") and f["severity"] != "note"]
    if wanted is None:
        if loud:
            wrong.append(f"found: {[(f['rule'], f['message']) for f in loud]}")
        if not program["right"]:
            wrong.append("it computed something else")
        if program != parts.last_json(bare[1]) and "memory" in program:
            wrong.append(f"the profiler recorded {program['memory']}, without the shim {(parts.last_json(bare[1]) or {}).get('memory')}")
        return wrong
    rule, severity, level = wanted
    if not any(f["rule"] == rule and f["severity"] == severity and at_least(f, level) for f in report["findings"]):
        wrong.append(f"not found: {rule} {severity}, at least {level}; found {[(f['rule'], f['severity'], f['confidence']) for f in report['findings']]}")
    other = [f["rule"] for f in loud if f["rule"] != rule]
    if other:
        wrong.append(f"found besides: {other}")
    return wrong


def one(run, parts, name, fixed):
    command = [parts.PYTHON, str(PROGRAM), name, *(["--fixed"] if fixed else [])]
    start = time.monotonic()
    wanted = None if fixed or name in CLEAN else WRONG[name]
    # Only where the two are compared is the bare run worth its time.
    bare = parts.plain(command) if name == "profiled" else (0, "", "")
    watched = parts.audited(run, command, "--show", "suspected")
    code, out, err, report = watched
    sample = {"name": name + (" fixed" if fixed else ""), "seconds": round(time.monotonic() - start, 1), "exit": code,
              "program": parts.last_json(out)}
    if report and report["child_exit"] == SKIP:
        return {**parts.finish({**sample, "why": out.strip()[-200:]}, []), "skipped": True}
    if report:
        sample["findings"] = [{**parts.brief(f), "confidence": f["confidence"]} for f in report["findings"]][:8]
        sample["summary"] = report["summary"]
        sample["graphs"] = report["graphs"][:4]
    wrong = judge(parts, wanted, bare, watched)
    if wrong:
        sample["stderr"] = err[-2000:]
    return parts.finish(sample, wrong)


def samples(run, parts):
    jobs = [(name, fixed) for name in WRONG for fixed in (False, True)] + [(name, False) for name in CLEAN]
    # Nothing is timed here, so that several may run beside each other.
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        pending = [pool.submit(one, run, parts, *job) for job in jobs]
        for done in concurrent.futures.as_completed(pending):
            yield done.result()
