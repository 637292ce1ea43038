#!/usr/bin/env python3
"""Runs the capture probe and compares its table with a measured one, cell by cell: `compare_table.py PROBE one|two TABLE`.

Prints `N/M`, and each cell that differs. Fails unless all are there and equal. Exit code 77: the probe has no device to run on.
"""
import csv
import io
import pathlib
import subprocess
import sys

KEY = ("capture_stream", "call", "begin_mode", "calling_thread")
SKIPPED = 77


def table(text):
    return {tuple(row[k] for k in KEY): row for row in csv.DictReader(io.StringIO(text))}


def main():
    probe, which, measured_path = sys.argv[1:]
    run = subprocess.run([probe, which], capture_output=True, text=True, check=False)
    if run.returncode == SKIPPED:
        print(run.stdout.strip())
        return SKIPPED
    if run.returncode:
        print(f"the probe ended with {run.returncode}: {run.stderr.strip()}")
        return 1
    measured = table(pathlib.Path(measured_path).read_text())
    found = table(run.stdout)
    equal = 0
    for key, row in measured.items():
        if found.get(key) == row:
            equal += 1
        else:
            answers = [column for column in row if column not in KEY]
            print(f"{' / '.join(key)}: {[found.get(key, {}).get(c) for c in answers]}, measured {[row[c] for c in answers]}")
    extra = sorted(set(found) - set(measured))
    for key in extra:
        print(f"{' / '.join(key)}: not in the measured table")
    print(f"{equal}/{len(measured)}")
    return 0 if equal == len(measured) and measured and not extra else 1


if __name__ == "__main__":
    sys.exit(main())
