#!/usr/bin/env python3
"""Cuts the traces of examples at many sizes. A cut trace is never clean, and nothing is found in it at `likely` or above that the
whole trace does not have: what is missing may be what tells a fault from a working program.

usage: check_cuts.py --build DIR [--step BYTES] NAME…
"""
import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

HEADER, CHUNK, SLOT, MAGIC = 4096, 16384, 64, 0x4b4e4843  # trace/format.h
SMALLEST = 512  # below that the file header is not whole, and the file is refused


def command(build, *words, **more):
    env = {key: value for key, value in os.environ.items() if not key.startswith("CAPTURESAN_") and key != "LD_PRELOAD"}
    return subprocess.run([build / "bin/capturesan", *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False, **more)


def judged(build, trace):
    """(report, exit code)"""
    done = command(build, "check", "--report", "json", trace)
    try:
        return json.loads(done.stdout), done.returncode
    except json.JSONDecodeError:
        return None, done.returncode


def sure(report):
    return {(f["rule"], f["api"]) for f in report["findings"] if f["confidence"] != "suspected"} - {("CS901", "")}


def end_of(data):
    """Where the last committed record ends."""
    end = HEADER
    for at in range(HEADER, len(data) - SLOT + 1, CHUNK):
        magic, used = struct.unpack_from("<II", data, at)
        if magic == MAGIC and used:
            end = at + used * SLOT
    return end


def cut_one(build, folder, trace, whole, step):
    """Differences, and the number of cuts."""
    data = trace.read_bytes()
    end, wrong, cuts, same = end_of(data), [], 0, 0
    cut = folder / "cut.cstrace"
    for size in [*range(SMALLEST, end, step), end - 1]:
        cut.write_bytes(data[:size])
        report, code = judged(build, cut)
        cuts += 1
        if report is None:
            wrong.append(f"{size} bytes: no report, exit code {code}")
            continue
        if report["summary"]["complete"] or ", incomplete;" not in report["summary"]["last_line"]:
            wrong.append(f"{size} bytes: {report['summary']['last_line']}")
        for rule, api in sorted(sure(report) - sure(whole)):
            wrong.append(f"{size} bytes: {rule} {api}, which the whole trace does not have")
        same += sure(report) == sure(whole)
    cut.write_bytes(data[:end])  # nothing but unused room is missing
    report, _ = judged(build, cut)
    if sure(report) != sure(whole):
        wrong.append(f"{end} bytes hold all records, and yet: {sure(report)}")
    print(f"       {end} bytes, {cuts} cuts, {same} of them with the findings of the whole trace")
    return wrong


def check(build, name, step):
    with tempfile.TemporaryDirectory(prefix="capturesan-cuts-") as place:
        folder = pathlib.Path(place)
        command(build, "run", "--driver", "sim", "-o", folder / "trace", "--", build / "examples" / name, cwd=folder)
        traces = list((folder / "trace").glob("*.cstrace"))
        if len(traces) != 1:
            return [f"{len(traces)} traces"]
        whole, _ = judged(build, traces[0])
        if not whole["summary"]["complete"] or not whole["summary"]["captures"] or whole["summary"]["events"] < 10:
            return ["the whole trace is not one: " + whole["summary"]["last_line"]]
        return cut_one(build, folder, traces[0], whole, step)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--step", type=int, default=256)
    parser.add_argument("names", nargs="+")
    arguments = parser.parse_args()
    failed = 0
    for name in arguments.names:
        print(name)
        wrong = check(arguments.build.resolve(), name, arguments.step)
        for line in wrong:
            print("FAILED: " + line)
        failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
