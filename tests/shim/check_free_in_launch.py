#!/usr/bin/env python3
"""Memory that is freed while its graph is inside a launch: that launch is not blamed, the next one is, once.

usage: check_free_in_launch.py --build DIR
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# launch inside which the memory is freed, launches -> number of the launch that is blamed. The memory was there when the launch
# inside which it goes was entered, and its memset had run; the next one writes to memory that is nobody's, and is the last.
CASES = {(2, 4): [3], (1, 2): [2], (2, 2): [], (0, 3): []}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    failed = 0
    for (freed_in, launches), wanted in CASES.items():
        env = {k: v for k, v in os.environ.items() if not k.startswith("CAPTURESAN")}
        with tempfile.TemporaryDirectory() as place:
            done = subprocess.run([build / "bin/capturesan", "run", "--driver", "sim", "-o", f"{place}/trace", "--report", f"json={place}/report",
                                   "--", build / "tests/free_in_launch", str(freed_in), str(launches)],
                                  env=env, capture_output=True, text=True, timeout=60)
            report = json.loads(pathlib.Path(place, "report").read_text())
        found = [f["graph"]["replay"] for f in report["findings"] if f["rule"] == "CS201"]
        others = [f["rule"] for f in report["findings"] if f["rule"] != "CS201"]
        ran = "ended" in done.stdout and (freed_in == 0 or f"freed inside launch {freed_in}" in done.stdout)
        good = ran and found == wanted and not others and report["summary"]["replays"] == (wanted[0] if wanted else launches)
        print(f"freed in launch {freed_in} of {launches}: {'ok' if good else 'FAILED'}", "" if good else f"{found} {others}\n{done.stdout}{done.stderr}")
        failed += not good
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
