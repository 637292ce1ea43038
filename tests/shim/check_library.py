#!/usr/bin/env python3
"""The workspace of a library that a graph uses: the finding names the library that allocated and freed it.

usage: check_library.py --build DIR
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

WORDS = ", allocated and freed in libfake_blas.so"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    failed = 0
    for mode in ("wrong", "fixed"):
        with tempfile.TemporaryDirectory() as place:
            report = pathlib.Path(place) / "report.json"
            done = subprocess.run([build / "bin/capturesan", "run", "--driver", "sim", "-o", f"{place}/trace", "--report", f"json={report}",
                                   "--", build / "tests/library_victim", mode], capture_output=True, text=True, timeout=60, check=False)
            result = json.loads(report.read_text()) if report.exists() else {"findings": [], "summary": {"replays": 0}}
        found = [(f["rule"], f["confidence"], f["message"].endswith(WORDS), f["pointers"][0]["allocated_in"]) for f in result["findings"]]
        wanted = [("CS201", "proved", True, "libfake_blas.so")] if mode == "wrong" else []
        right = done.stdout == "done\n" and found == wanted and result["summary"]["replays"] == 2
        print(f"{mode}: {'ok' if right else f'FAILED: {done.stdout} {done.stderr[-600:]} {found}'}")
        failed += not right
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
