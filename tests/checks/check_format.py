#!/usr/bin/env python3
"""clang-format finds nothing to change. Skipped where the pinned major version is not installed: versions differ in taste."""
import re
import shutil
import subprocess
import sys

import tree

PINNED = "14"  # Debian 12's


def find_tool():
    for name in (f"clang-format-{PINNED}", "clang-format"):
        if shutil.which(name):
            version = subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
            if re.search(rf"version {PINNED}\.", version):
                return name
    return None


def main():
    tool = find_tool()
    if not tool:
        print(f"skipped: clang-format {PINNED} is not installed")
        return 77
    sources = [str(path.relative_to(tree.ROOT)) for path in tree.files()
               if path.suffix in (".h", ".hpp", ".c", ".cpp", ".cu", ".cuh")]
    done = subprocess.run([tool, "--dry-run", "--Werror", "--ferror-limit=1", *sources], cwd=tree.ROOT,
                          capture_output=True, text=True, check=False)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", done.stderr, re.MULTILINE)))
    for name in wrong:
        print(f"{name}: run scripts/format")
    print(f"{len(wrong)} of {len(sources)} files differ from .clang-format")
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
