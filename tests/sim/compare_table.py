#!/usr/bin/env python3
"""Runs a probe and compares what it prints with a measured table, row by row: `compare_table.py KEYS TABLE PROBE [ARGUMENT...]`.

KEYS is the number of columns that name a row; the others are the answers. Prints each row that differs, then `N/M`. Fails
unless all rows are there and equal. Exit code 77: the probe has no device to run on.
"""
import csv
import io
import pathlib
import subprocess
import sys

SKIPPED = 77


def table(text, keys):
    rows = list(csv.reader(io.StringIO(text)))
    return {tuple(row[:keys]): row[keys:] for row in rows[1:]}


def traces(folder):
    return set(pathlib.Path(folder).glob("*.cstrace")) if folder else set()


def main():
    keys, measured_path, *command = sys.argv[1:]
    folder = next((word.partition("=")[2] for word in command if word.startswith("CAPTURESAN_OUTPUT=")), None)
    before = traces(folder)
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode == SKIPPED:
        print(run.stdout.strip())
        return SKIPPED
    if run.returncode:
        print(f"the probe ended with {run.returncode}: {run.stderr.strip()}")
        return 1
    if folder and traces(folder) == before:
        print(f"no trace was written: the shim was not loaded; {run.stderr.strip()}")
        return 1
    measured = table(pathlib.Path(measured_path).read_text(), int(keys))
    found = table(run.stdout, int(keys))
    differing = [key for key in measured if found.get(key) != measured[key]]
    for key in differing:
        print(f"{' / '.join(key)}: {found.get(key)}, measured {measured[key]}")
    unmeasured = [key for key in found if key not in measured]
    for key in unmeasured:
        print(f"{' / '.join(key)}: not in the measured table")
    print(f"{len(measured) - len(differing)}/{len(measured)}")
    return 1 if differing or unmeasured or not measured else 0


if __name__ == "__main__":
    sys.exit(main())
