#!/usr/bin/env python3
"""--poison: what a graph still uses is filled before the driver frees it, and nothing else is.

usage: check_poison.py --build DIR
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

# arguments of the program, --poison -> what it prints, word of the report. The simulated driver keeps what was in freed memory, as
# a real one does until somebody gets it (tests/golden/facts_580.159.csv).
CASES = [
    ([], False, ["01020304", "01020304"], ""),
    ([], True, ["01020304", "ffffffff"], "poison: 1 pieces of memory that a graph refers to were filled before they were freed, 0 were not"),
    (["kept"], True, ["01020304", "01020304"], "poison: 0 pieces"),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    failed = 0
    for arguments, poison, lines, word in CASES:
        env = {k: v for k, v in os.environ.items() if not k.startswith("CAPTURESAN")}
        with tempfile.TemporaryDirectory() as place:
            done = subprocess.run([build / "bin/capturesan", "run", "--driver", "sim", "-o", f"{place}/trace", "--report", f"text={place}/report",
                                   *(["--poison"] if poison else []), "--", build / "tests/poison_victim", *arguments],
                                  env=env, capture_output=True, text=True, timeout=60)
            report = pathlib.Path(place, "report").read_text() if pathlib.Path(place, "report").exists() else ""
        good = done.stdout.split() == lines and word in " ".join(report.split()) and (poison or "poison:" not in report)
        print(f"{arguments} poison={poison}: {'ok' if good else 'FAILED'}", "" if good else f"{done.stdout}{done.stderr}{report}")
        failed += not good
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
