#!/usr/bin/env python3
"""Instructions that the shim adds to one call, counted by callgrind and compared with instructions.json (10 %).

usage: check_instructions.py --build DIR --compiler NAME [--write]
Counts do not depend on the load or the model of the machine, but on the compiler: the file has a row for each that was measured.
Exit code 77: no valgrind, or a compiler without a row.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

FILE = pathlib.Path(__file__).with_name("instructions.json")
CASES = ("filtered", "launch", "recorded", "varied")
FEW, MANY = 50000, 150000
SKIP = 77


def collected(build, case, calls, shim):
    with tempfile.TemporaryDirectory() as place:
        env = dict(os.environ, LD_LIBRARY_PATH=str(build / "lib/fake"), CAPTURESAN_OUTPUT=place + "/trace", CAPTURESAN_KEEP_TRACE="1")
        if shim:
            env["LD_PRELOAD"] = str(build / "lib/libcapturesan.so")
        done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(build / "bin/call_cost"), case,
                               str(calls), "1"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        found = re.search(rb"Collected : (\d+)", done.stderr)
        if done.returncode != 0 or not found:
            sys.exit("call_cost did not run under callgrind:\n" + done.stderr.decode(errors="replace"))
        if shim and not os.listdir(place + "/trace"):
            sys.exit("the shim was not loaded: there is no trace")
        return int(found[1])


def per_call(build, case):
    """What one more call costs with the shim, less what it costs without: start and end of the program cancel out."""
    with_shim, without = (collected(build, case, MANY, shim) - collected(build, case, FEW, shim) for shim in (True, False))
    return (with_shim - without) / (MANY - FEW)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--write", action="store_true")
    a = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return SKIP
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    key = "%s %s" % (a.compiler, platform.machine())
    if key not in known and not a.write:
        print("skipped: nobody has counted with %s yet; add a row with --write" % key)
        return SKIP
    counts = {case: round(per_call(a.build.resolve(), case), 1) for case in CASES}
    if a.write:
        known[key] = counts
        FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    failed = 0
    for case in CASES:
        now, then = counts[case], known[key][case]
        # Half an instruction is the slack of a count of ten: the sort of the samples is in it.
        good = abs(now - then) <= max(0.1 * then, 0.5)
        failed += not good
        print("%s: %.1f instructions a call, %.1f on file: %s" % (case, now, then, "ok" if good else "FAILED"))
    if failed:
        print("If the change is meant: check_instructions.py --write, and say why in the commit.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
