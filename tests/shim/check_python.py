#!/usr/bin/env python3
"""The finding names the Python line that waited, in every CPython from 3.10 to 3.13 that this machine has.

usage: check_python.py --build DIR [PYTHON...]
An interpreter can be given as a command of several words. Exit code 77: none was found.
"""
import argparse
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(__file__).resolve().parent / "python_waits.py"
SKIP = 77


def expected_frames():
    """(line, function) of the wait and its callers, from the program's own text: the marker, and where each calls the next."""
    lines = PROGRAM.read_text().splitlines()

    def only(text):
        found = [n for n, line in enumerate(lines, 1) if text in line]
        assert len(found) == 1, (text, found)
        return found[0]

    # A call over several lines is where its callee begins (CPython 3.11 and later) or where its last argument is (3.10).
    wait = (only("cuda.cuStreamSynchronize("), only("# waits"))
    return [(wait, "wait"), ((only("return self.wait()"),), "look"), ((only(".look()"),), "main")]


def check(build, interpreter):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "r.json"
        done = subprocess.run([str(build / "bin/capturesan"), "run", "--driver", "sim", "-o", f"{folder}/t", "--report",
                               f"json={report}", "--", *interpreter, str(PROGRAM)], capture_output=True, text=True, timeout=120, check=False)
        if done.stdout.split() != ["900", "901"]:  # of the golden matrix
            return [f"the program printed {done.stdout!r}: {done.stderr[-800:]}"]
        findings = json.loads(report.read_text())["findings"]
    if [f["rule"] for f in findings] != ["CS101"]:
        return [f"findings {[f['rule'] for f in findings]}"]
    frames = [(f["line"], f["symbol"]) for f in findings[0]["python"] if pathlib.Path(f["file"]).name == PROGRAM.name]
    wrong = []
    for (wanted, function), got in zip(expected_frames(), frames + [(0, "none")] * 3):
        if got[0] not in wanted or got[1].rpartition(".")[2] != function:
            wrong.append(f"frame {got}, expected {function} at line {wanted}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("python", nargs="*")
    arguments = parser.parse_args()
    candidates = [shlex.split(p) for p in arguments.python or os.environ.get("CAPTURESAN_PYTHONS", "").split(":") if p]
    candidates += [[found] for minor in (10, 11, 12, 13) if (found := shutil.which(f"python3.{minor}"))] or [[sys.executable]]
    failed, seen = 0, 0
    for interpreter in candidates:
        version = subprocess.run([*interpreter, "-c", "import sys, ctypes; print(sys.version.split()[0])"], capture_output=True, text=True,
                                 check=False)
        if version.returncode != 0:
            continue
        seen += 1
        wrong = check(arguments.build.resolve(), interpreter)
        print(version.stdout.strip(), "ok" if not wrong else wrong)
        failed += bool(wrong)
    if not seen:
        print("skipped: no CPython was found")
        return SKIP
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
