#!/usr/bin/env python3
"""The measured tables judge the simulation; nothing outside tests/ may read them, or name them in code."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = re.compile(r"capture_matrix|tests/golden|\bgolden/|\.csv\b", re.IGNORECASE)
SOURCES = {".cpp", ".h", ".def", ".txt", ".cmake", ".map", ".py"}


def mentions(text):
    return [number for number, line in enumerate(text.splitlines(), 1) if TABLE.search(line)]


def main():
    files = [p for folder in ("sim", "analyzer") for p in sorted((ROOT / folder).rglob("*")) if p.suffix in SOURCES]
    found = 0
    for path in files:
        for number in mentions(path.read_text()):
            print(f"{path.relative_to(ROOT)}:{number}: names a measured table")
            found += 1
    if not mentions('open("tests/golden/capture_matrix_580.159.csv")'):
        print("the check does not catch a planted mention")
        found += 1
    print(f"{len(files)} files, {found} mentions")
    return 1 if found or len(files) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
