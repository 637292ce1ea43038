#!/usr/bin/env python3
"""Every call the shim makes during captures is harmless: `check_harmless.py PROBE TABLE` compares with what a real driver answered."""
import pathlib
import subprocess
import sys


def main():
    probe, table = sys.argv[1:]
    run = subprocess.run([probe], capture_output=True, text=True, check=False)
    if run.returncode:
        print(f"the probe ended with {run.returncode}: {run.stderr}")
        return 1
    measured = set(pathlib.Path(table).read_text().split("\n"))
    rows = run.stdout.splitlines()
    wrong = [row for row in rows if row not in measured]
    # status 1 = active, end 0 = success, one node: the capture did not notice
    harmful = [row for row in rows if not row.endswith(",1,0,1")]
    print(f"{len(rows)} rows, {len(wrong)} not as measured, {len(harmful)} harmful")
    print("\n".join(wrong + harmful))
    return 1 if wrong or harmful or len(rows) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
