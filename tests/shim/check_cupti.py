#!/usr/bin/env python3
"""CUPTI's slot is held while captures are open and at no other time, what it tells reaches the report, and whoever has it keeps it.

usage: check_cupti.py --build DIR
Expected answers of CUPTI: its documentation (one subscriber, error 39 for a second one). Results of the calls: the golden matrix.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

FREE, HELD = "free", "held"
ANSWERS = ["sync: 900", "end: 901"]


def run(build, mode, *options):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "r.json"
        environment = dict(os.environ, LD_LIBRARY_PATH=str(build / "tests/fake_cupti"))
        done = subprocess.run([build / "bin/capturesan", "run", "--driver", "sim", "-o", f"{folder}/t", "--report", f"json={report}",
                               *options, "--", build / "tests/cupti_victim", mode], capture_output=True, text=True, timeout=60,
                              env=environment, check=False)
        return done.stdout.splitlines(), done.stderr, done.returncode, json.loads(report.read_text())


def states(lines):
    return [line.split(": ")[1].split(",")[0] for line in lines if "subscriptions" in line]


def rules(report):
    return sorted(f["rule"] for f in report["findings"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    wrong = []

    def expect(what, got, wanted):
        if got != wanted:
            wrong.append(f"{what}: {got!r}, expected {wanted!r}")

    out, err, code, report = run(build, "loaded", "--cupti=auto")
    expect("loaded: slot", states(out), [FREE, HELD, HELD, FREE, FREE])
    expect("loaded: two windows", [line for line in out if "subscriptions" in line][-1].endswith("2 subscriptions"), True)
    expect("loaded: answers", [line for line in out if line in ANSWERS], ANSWERS)
    expect("loaded: rules", rules(report), ["CS101"])
    expect("loaded: runtime call", [f["runtime_api"] for f in report["findings"]], ["cudaStreamSynchronize"])
    expect("loaded: exit code", code, 1)

    out, err, code, report = run(build, "loaded")
    expect("off: slot", states(out), [FREE] * 5)
    expect("off: runtime call", [f["runtime_api"] for f in report["findings"]], [""])

    out, err, code, report = run(build, "absent", "--cupti=auto")
    expect("absent: rules", rules(report), ["CS101"])

    out, err, code, report = run(build, "held", "--cupti=auto")
    expect("held: slot", states(out), [HELD] * 5)
    expect("held: rules", rules(report), ["CS101", "CS904"])
    expect("held: holder", ["CUPTI for a V1 client" in f["message"] for f in report["findings"] if f["rule"] == "CS904"], [True])

    out, err, code, report = run(build, "absent", "--cupti=require")
    expect("require: found by name", [f["runtime_api"] for f in report["findings"]], [""])  # nobody plays runtime calls
    expect("require: complete", report["summary"]["complete"], True)

    out, err, code, report = run(build, "held", "--cupti=require")
    expect("require, held: complete", report["summary"]["complete"], False)
    expect("require, held: said", "CUPTI" in err, True)

    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
