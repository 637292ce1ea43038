#!/usr/bin/env python3
"""Names files over the soft limit of lines. A report, not a gate: it always passes."""
import sys

import tree

LIMIT = 400
EXEMPT_SUFFIXES = (".def", ".csv", ".json", ".md")


def main():
    long = []
    for path in tree.files():
        text = tree.text_of(path)
        if text is not None and path.suffix not in EXEMPT_SUFFIXES and path.name != "LICENSE":
            lines = text.count("\n")
            if lines > LIMIT:
                long.append((lines, path.relative_to(tree.ROOT).as_posix()))
    for lines, name in sorted(long, reverse=True):
        print(f"warning: {name} has {lines} lines (soft limit {LIMIT})")
    print(f"{len(long)} files over {LIMIT} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
