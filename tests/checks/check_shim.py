#!/usr/bin/env python3
"""What the shim asks of the process that it is loaded into: libc alone, an old one, and next to no static TLS.

usage: check_shim.py LIBRARY [CALLS.DEF]; with calls.def, also that every ABI name of the list is exported and no other cu name.
"""
import re
import subprocess
import sys

NEWEST_GLIBC = (2, 28)  # as PyTorch's wheels
MOST_TLS = 64           # bytes of static TLS


def readelf(library, *options):
    return subprocess.run(["readelf", "-W", *options, library], check=True, capture_output=True, text=True).stdout


def problems(needed, versions, tls, exported, listed):
    wrong = []
    if needed != ["libc.so.6"]:
        wrong.append(f"NEEDED is {needed}, must be exactly libc.so.6")
    for name, version in sorted(versions):
        if tuple(map(int, version.split("."))) > NEWEST_GLIBC:
            wrong.append(f"{name} needs glibc {version}, newer than {'.'.join(map(str, NEWEST_GLIBC))}")
    if tls > MOST_TLS:
        wrong.append(f"{tls} bytes of thread-local storage, at most {MOST_TLS} are allowed")
    if listed:
        for name in sorted(listed - exported):
            wrong.append(f"{name} is in calls.def and not exported")
        for name in sorted(n for n in exported - listed if re.match(r"cu[A-Z]", n)):
            wrong.append(f"{name} is exported and not in calls.def")
    return wrong


def facts(library):
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(library, "-d"))
    symbols = readelf(library, "--dyn-syms")
    versions = set(re.findall(r" UND (\S+?)@+GLIBC_([\d.]+)", symbols))
    versions |= {("a version reference", v) for v in re.findall(r"Name: GLIBC_([\d.]+)", readelf(library, "-V"))}
    exported = {name.split("@")[0] for name in
                re.findall(r"(?:FUNC|IFUNC|OBJECT|NOTYPE) +(?:GLOBAL|WEAK|UNIQUE) +DEFAULT +\d+ (\S+)", symbols)}
    segments = [line.split() for line in readelf(library, "-l").splitlines() if line.split()[:1] == ["TLS"]]
    tls = sum(int(fields[5], 16) for fields in segments)  # MemSiz
    return needed, versions, tls, exported


def main():
    listed = set()
    if len(sys.argv) > 2:
        with open(sys.argv[2], encoding="utf-8") as calls:
            listed = set(re.findall(r"^CALL\((\w+),", calls.read(), re.MULTILINE))
    found = facts(sys.argv[1])
    wrong = problems(*found, listed)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{sys.argv[1]}: NEEDED {' '.join(found[0])}; {found[2]} bytes of TLS; {len(found[3])} exported names; {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
