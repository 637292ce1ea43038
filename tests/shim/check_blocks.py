#!/usr/bin/env python3
"""Blocks of a caching allocator as PyTorch's: what is found, what is recorded, and that the profiler is told the same.

usage: check_blocks.py --build DIR
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# mode -> (severity, confidence, word of the message) of each CS201, most events
CASES = {
    "stale": ([("error", "proved", "belongs to 4096 bytes")], 60),  # latent first: one finding keeps the worst
    "again": ([("warning", "likely", "latent")], 60),  # then suspected only, which takes nothing back
    "pool": ([], 60),
    "beside": ([], 60),  # 200,000 reports that concern no graph
    # The same from Python, where the shim knows the line that a block was handed out at.
    "python other": ([("error", "likely", "handed out again at another line")], 60),
    "python same": ([("error", "suspected", "belongs to 2048 bytes")], 60),
    "python thread": ([("error", "suspected", "belongs to 2048 bytes")], 60),
}
PYTHON_PROGRAM = pathlib.Path(__file__).resolve().parent / "python_blocks.py"


def pythons():
    """Every CPython here whose frames the shim can read; more may be named in CAPTURESAN_PYTHONS, between colons."""
    candidates = [p for p in os.environ.get("CAPTURESAN_PYTHONS", "").split(":") if p]
    candidates += [p for minor in (11, 12, 13) if (p := shutil.which(f"python3.{minor}"))] + [sys.executable]
    found = {}
    for candidate in candidates:
        asked = subprocess.run([candidate, "-c", "import ctypes, sys; print(sys.version_info[1], sys.executable)"], capture_output=True,
                               text=True, check=False)
        minor, _, path = asked.stdout.strip().partition(" ")
        if asked.returncode == 0 and minor in ("11", "12", "13"):  # not the stand-in of a version that is not there
            found.setdefault(minor, path)
    return list(found.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    failed = 0
    jobs = []
    for mode, wanted in CASES.items():
        if mode.startswith("python "):
            jobs += [(f"{mode} ({pathlib.Path(p).name})", [p, PYTHON_PROGRAM, mode.split()[1]], wanted) for p in pythons()]
        else:
            jobs.append((mode, [build / "tests/block_victim", mode], wanted))
    for mode, command, (wanted, most_events) in jobs:
        with tempfile.TemporaryDirectory() as place:
            env = {k: v for k, v in os.environ.items() if not k.startswith("CAPTURESAN")}
            env["LD_LIBRARY_PATH"] = f"{build}/tests/blocks:{build}/lib/sim"
            plain = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
            report = pathlib.Path(place) / "report.json"
            watched = subprocess.run([build / "bin/capturesan", "run", "--driver", "sim", "-o", f"{place}/trace", "--show", "suspected",
                                      "--report", f"json={report}", "--", *command], env=env, capture_output=True, text=True, timeout=60)
            result = json.loads(report.read_text()) if report.exists() else {"findings": [], "summary": {"events": 0, "replays": 0}}
        wrong = []
        if plain.returncode != 0 or (len(command) == 2 and "calls" not in plain.stdout):
            wrong.append(f"the program itself: {plain.returncode} {plain.stdout}{plain.stderr}")
        if plain.stdout != watched.stdout:
            wrong.append(f"the profiler was told {watched.stdout!r}, without the shim {plain.stdout!r}")
        found = [f for f in result["findings"] if f["rule"] == "CS201"]
        other = [f["rule"] for f in result["findings"] if f["rule"] != "CS201"]
        if other or len(found) != len(wanted):
            wrong.append(f"found {[(f['severity'], f['confidence'], f['message']) for f in found]} and {other}")
        for (severity, confidence, word), f in zip(wanted, sorted(found, key=lambda f: f["time_s"])):
            if (f["severity"], f["confidence"]) != (severity, confidence) or word not in f["message"]:
                wrong.append(f"{f['severity']} {f['confidence']} {f['message']}, expected {severity} {confidence} {word}")
        if not 12 <= result["summary"]["events"] <= most_events or result["summary"]["replays"] < 2:
            wrong.append(f"recorded: {result['summary']}")
        print(f"{mode}: {'FAILED' if wrong else 'ok'}", *wrong, sep="\n  ")
        failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
