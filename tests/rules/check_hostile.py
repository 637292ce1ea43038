#!/usr/bin/env python3
"""Rule files made to hurt: each is refused, at its place where it has one, within 1 s and 256 MiB.

usage: check_hostile.py CAPTURESAN [SLOWER]
"""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

SECONDS = 1.0
MEBIBYTES = 256  # of writable memory of its own; more is refused by the kernel
SLOWER = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0  # a build without optimisation 5, with sanitizers 10
HEAD = "schema: 1\nrules:\n  - id: MY101\n    name: n\n    events: [sync]\n    severity: note\n    message: m\n    remediation: r\n"


def doubling(steps):
    """Macros that use the one before twice: 2^steps comparisons if they were written out."""
    lines = "".join(f"  m{i:02}: '$m{i - 1:02} and $m{i - 1:02}'\n" for i in range(1, steps))
    return f"schema: 1\nmacros:\n  m00: 'event.in_window'\n{lines}rules: []\n"


def chain(steps):
    lines = "".join(f"  m{i:05}: '$m{i + 1:05}'\n" for i in range(steps))
    return f"schema: 1\nmacros:\n{lines}  m{steps:05}: 'event.in_window'\n"


def circle(steps):
    return "schema: 1\nmacros:\n" + "".join(f"  m{i}: '$m{(i + 1) % steps}'\n" for i in range(steps))


BOMB = "schema: 1\na: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(f'*{a}' for _ in range(9))}]\n" for a, b in zip("abcdefgh", "bcdefghi"))

# name: bytes, what the first line of the output must be like
CASES = {
    "alias bomb": (BOMB, ":2:4: error[CGE002]: anchors are not allowed"),
    "self alias": ("schema: 1\nlists: &x {a: *x}\n", ":2:8: error[CGE002]: anchors are not allowed"),
    "a million [": ("[" * 1_000_000, ": error[CGE006]: nested too deeply"),
    "a million {": ("{" * 1_000_000, ": error[CGE006]: nested too deeply"),
    "a million [ in a rule": (HEAD + "    tags: " + "[" * 1_000_000, ": error[CGE006]: nested too deeply"),
    "a million -": ("- " * 500_000, ":1:65: error[CGE006]: nested too deeply"),
    "a million ?": ("? " * 500_000, ": error[CGE0"),
    "a million not": (HEAD + "    when: '" + "not " * 260_000 + "event.in_window'\n",
                      ":9:4108: error[CGE029]: a condition has at most 4096 characters"),
    "a million (": (HEAD + "    when: '" + "(" * 1_000_000 + "'\n", ":9:4108: error[CGE029]: a condition has at most 4096 characters"),
    "duplicate keys": ("schema: 1\nrules: []\nrules: []\n", ":3:1: error[CGE003]: key 'rules' occurs twice"),
    "a hundred thousand duplicate keys": ("schema: 1\nlists:\n" + "  a: [b]\n" * 100_000, ":4:3: error[CGE003]: key 'a' occurs twice"),
    "a hundred thousand keys": ("schema: 1\n" + "".join(f"k{i}: x\n" for i in range(80_000)), ":2:1: error[CGE011]: unknown key 'k0'"),
    "a hundred thousand bad keys of one line": ("{schema: 1, " + ", ".join(f"k{i}: x" for i in range(70_000)) + "}",
                                                ":1:13: error[CGE011]: unknown key 'k0'"),
    "many rules": ("schema: 1\nrules:\n" + "  - {id: x}\n" * 70_000, ": error[CGE0"),
    "a hundred thousand rules": ("schema: 1\nrules:\n" + "  - {id: x, name: y}\n" * 100_000, ": error[CGE008]: cannot read the file: it is larger than 1 MiB"),
    "a zero byte": (b"schema: 1\nrules: [\0]\n", ":2:9: error[CGE001]: a zero byte is not text"),
    "a byte order mark and a typo": (b"\xef\xbb\xbfschema: 1\nrulez: []\n", ":2:1: error[CGE011]: unknown key 'rulez'"),
    "a byte order mark and a typo on its line": (b"\xef\xbb\xbf{schema: 1, rulez: []}\n", ":1:13: error[CGE011]: unknown key 'rulez'"),
    "carriage returns": (b"schema: 1\r\n# a\r\nrulez: []\r\n", ":3:1: error[CGE011]: unknown key 'rulez'"),
    "carriage returns in a block": (HEAD.replace("\n", "\r\n").encode() + b"    when: |\r\n      event.in_window\r\n      and event.apj\r\n",
                                    ":11:11: error[CGE012]: unknown field 'event.apj'"),
    "UTF-16, little end first": ("schema: 1\n".encode("utf-16-le").join([b"\xff\xfe", b""]), ":1:1: error[CGE001]: the file is UTF-16"),
    "UTF-16, big end first": ("schema: 1\n".encode("utf-16-be").join([b"\xfe\xff", b""]), ":1:1: error[CGE001]: the file is UTF-16"),
    "UTF-16 without a mark": ("schema: 1\n".encode("utf-16-le"), ":1:2: error[CGE001]: a zero byte is not text"),
    "Latin-1": ("schema: 1\nlists: {gr\xf6\xdfe: [a]}\n".encode("latin-1"), ":2:11: error[CGE001]: this byte is not UTF-8"),
    "an overlong form": (b"schema: 1\nlists: {a: [\xc0\xaf]}\n", ":2:13: error[CGE001]: this byte is not UTF-8"),
    "half a surrogate": (b"schema: 1\nlists: {a: [\xed\xa0\x80]}\n", ":2:13: error[CGE001]: this byte is not UTF-8"),
    "a text of 100 MB": (HEAD + "    when: '" + "x" * 100_000_000 + "'\n", ": error[CGE008]: cannot read the file: it is larger than 1 MiB"),
    "a text of one megabyte": (HEAD + "    when: '" + "x" * 1_000_000 + "'\n", ":9:4108: error[CGE029]: a condition has at most 4096 characters"),
    "a circle of two macros": (circle(2), ":3:7: error[CGE025]: macros refer to each other in a circle: $m0 -> $m1 -> $m0"),
    "a circle of 20,000 macros": (circle(20_000), ": error[CGE0"),
    "a chain of 20,000 macros": (chain(20_000), ": error[CGE029]: macros are nested more than 32 deep"),
    "macros that double at each of 30 steps": (doubling(30), ": error[CGE029]: the condition is too large with its macros written out"),
    "lists used again and again": ("schema: 1\nlists: {a: [" + "b, " * 100_000 + "b]}\nmacros:\n" +
                                   "".join(f"  m{i}: 'event.api in $a'\n" for i in range(5_000)),
                                   ": error[CGE029]: the lists used in conditions have too many items together"),
    "a regular expression that would explode": (HEAD + "    when: 'event.api matches \"((((a{100}){100}){100}){100})\"'\n",
                                                ":9:30: error[CGE023]: not a regular expression"),
    "an endless quote": ("schema: 1\nlists: {a: [\"" + "x\n" * 400_000, ":2:13: error[CGE0"),
    "a million colons": ("schema: 1\n" + ":" * 1_000_000, ": error[CGE0"),
    "a million spaces": ("schema: 1\nrules:" + " " * 1_000_000 + "x", ":2:1000007: error[CGE013]: 'rules' must be a list"),
    "a million line breaks": ("schema: 1\n" + "\n" * 1_000_000 + "rulez: []\n", ":1000002:1: error[CGE011]: unknown key 'rulez'"),
    "a million tabs": ("schema: 1\n" + "\t" * 1_000_000, None),
    "control characters in a key": (b"schema: 1\n\"a\x1b[31m\": b\n", ":2:1: error[CGE011]: unknown key"),
}


def measured(command, *words, folder, limit=None):
    """Runs the command; returns exit code, output, seconds on the clock and seconds on a processor."""
    began = time.monotonic()
    with open(folder / "out", "wb") as out:
        env = {k: v for k, v in os.environ.items() if not k.startswith("CAPTURESAN")}
        child = subprocess.Popen([command, *words], cwd=folder, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env, preexec_fn=limit)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, (folder / "out").read_bytes().decode(errors="replace"), time.monotonic() - began, used.ru_utime + used.ru_stime


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    if SLOWER < 10:  # sanitizers reserve terabytes
        resource.setrlimit(resource.RLIMIT_DATA, (MEBIBYTES << 20, MEBIBYTES << 20))


def check(name, command, folder, file, begin, wrong):
    # The limit counts time on a processor: the machine may be busy with other things.
    code, output, wall, busy = measured(command, "rules", "lint", file, folder=folder, limit=limits)
    first = output.splitlines()[0] if output else ""
    if begin is not None and (code != 2 or begin not in first or not first.startswith(file)):
        wrong.append(f"{name}: exit code {code}, says {first[:200]!r}, expected {begin!r}")
    if any(ord(c) < 32 and c != "\n" for c in output):
        wrong.append(f"{name}: control characters in the output")
    if len(output) > 100_000:
        wrong.append(f"{name}: {len(output)} characters of output")
    if busy > SECONDS * SLOWER:
        wrong.append(f"{name}: {busy:.2f} s ({wall:.2f} s on the clock)")
    return busy


def main():
    command = pathlib.Path(sys.argv[1]).resolve()
    wrong, worst = [], 0.0
    with tempfile.TemporaryDirectory(prefix="capturesan-hostile-") as name:
        folder = pathlib.Path(name)
        for title, (text, begin) in CASES.items():
            (folder / "bad.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
            worst = max(worst, check(title, command, folder, "bad.yaml", begin, wrong))
        (folder / "bad.yaml").unlink()
        # What is no file that can be read at once.
        os.mkfifo(folder / "pipe.yaml")
        check("a pipe", command, folder, "pipe.yaml", ": error[CGE008]: cannot read the file: it is a pipe", wrong)
        (folder / "folder.yaml").mkdir()
        check("a folder", command, folder, "folder.yaml", ": error[CGE008]: cannot read the file: it is a folder", wrong)
        check("a device", command, folder, "/dev/zero", ": error[CGE008]: cannot read the file: it is a device", wrong)
        check("nothing", command, folder, "none.yaml", ": error[CGE008]: cannot read the file: No such file or directory", wrong)
        (folder / "loop.yaml").symlink_to("loop.yaml")
        check("a link to itself", command, folder, "loop.yaml", ": error[CGE008]: cannot read the file: Too many levels", wrong)
        # More problems than anybody reads are counted.
        (folder / "bad.yaml").write_text("schema: 1\n" + "".join(f"k{i}: x\n" for i in range(250)))
        _, output, *_ = measured(command, "rules", "lint", "bad.yaml", folder=folder)
        if "150 further problems are not shown" not in output or "[CGE009]" not in output:
            wrong.append(f"250 problems: {output[-300:]!r}")
    for line in wrong:
        print(line)
    print(f"{len(CASES) + 6} files, {len(wrong)} wrong; at most {worst:.2f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
