#!/usr/bin/env python3
"""The wrapped program behaves as without the shim: same output, same exit code, whatever happens to the trace.

usage: check_victim.py --build DIR
The expectation is the program's own output without the shim; the shim must also have traced, or the comparison proves nothing.
"""
import argparse
import os
import resource
import struct
import subprocess
import sys
import tempfile

HEADER = "<8sHHIIIII"  # magic, major, minor, header, chunk and slot bytes, pid, parent: trace/format.h


def traces(folder):
    found = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith(".cstrace"):
            with open(os.path.join(folder, name), "rb") as f:
                found.append(f.read())
    return found


def slots(trace):
    """Committed slots of all chunks."""
    header, chunk = 4096, 16384
    return sum(struct.unpack_from("<II", trace, at)[1] for at in range(header, len(trace) - 7, chunk)
               if struct.unpack_from("<I", trace, at)[0] == 0x4B4E4843)


def lost(trace):
    """Records that the header counts as lost. Offset of file_header::lost: after magic, version, sizes, pids, the start time,
    two clock pairs, driver kind and version, level, state and the number of chunks."""
    return struct.unpack_from("<Q", trace, 8 + 4 + 20 + 8 + 16 + 16 + 16 + 8)[0]


class Check:
    def __init__(self, build):
        self.build = build
        self.victim = os.path.join(build, "tests", "victim")
        self.failed = 0

    def run(self, mode, environment=None, limit=None):
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(self.build, "lib", "sim"), VICTIM_SETTING="kept")
        env.update(environment or {})

        def set_limit():
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        p = subprocess.run([self.victim] + ([mode] if mode else []), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           stdin=subprocess.DEVNULL, preexec_fn=set_limit, timeout=60)
        return p.stdout, p.stderr, p.returncode

    def compare(self, title, mode, extra, files, limit=None, folder=None):
        """`files`: how many traces there must be, None = do not care."""
        plain = self.run(mode)
        with tempfile.TemporaryDirectory() as place:
            out = folder or os.path.join(place, "trace")
            env = {"LD_PRELOAD": os.path.join(self.build, "lib", "libcapturesan.so"), "CAPTURESAN_OUTPUT": out}
            env.update(extra)
            shim = self.run(mode, env, limit)
            found = traces(out)
        problems = []
        if plain != shim:
            problems.append("output differs:\n--- without\n%s\n--- with\n%s" % (plain, shim))
        if files is not None and len(found) != files:
            problems.append("%d trace files, expected %d" % (len(found), files))
        if files and not all(slots(t) > 10 for t in found):
            problems.append("a trace has next to no records: %s" % [slots(t) for t in found])
        # Not recorded as an event at any level, so the name is there only if the end of the process brought it.
        if title == "traced" and b"cuArrayCreate_v2" not in b"".join(found):
            problems.append("the trace does not name the call that the simulated driver lacks")
        print("%s: %s" % (title, "ok" if not problems else "FAILED"))
        for p in problems:
            print("  " + p)
        self.failed += bool(problems)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    check = Check(os.path.abspath(parser.parse_args().build))
    out, _, code = check.run("")
    if code != 7 or b"cuStreamSynchronize(stream) = 900" not in out:
        print("the program itself does not run as expected: exit %s\n%s" % (code, out.decode()))
        return 1
    check.compare("traced", "", {}, 1)
    check.compare("level full", "", {"CAPTURESAN_LEVEL": "full"}, 1)
    check.compare("switched off", "", {"CAPTURESAN": "off"}, 0)
    check.compare("fork", "fork", {}, 2)
    check.compare("exec", "exec", {}, 2)
    check.compare("vfork and exec", "vfork", {}, 2)
    check.compare("children not followed", "exec", {"CAPTURESAN_CHILDREN": "none"}, 1)
    check.compare("fork, children not followed", "fork", {"CAPTURESAN_CHILDREN": "none"}, 1)
    check.compare("file size limit of 64 KiB", "", {}, 1, limit=64 * 1024)
    check.compare("file size limit of 8 KiB", "", {}, None, limit=8 * 1024)
    check.compare("file size limit of 0", "", {}, None, limit=0)
    check.compare("folder that cannot be made", "", {"CAPTURESAN_OUTPUT": "/proc/none/trace"}, 0, folder="/proc/none/trace")
    check.compare("path too long", "", {"CAPTURESAN_OUTPUT": "/tmp/" + "x" * 900}, 0, folder="/nowhere")
    check.compare("largest trace of 1 byte", "", {"CAPTURESAN_MAX_TRACE": "1"}, None)
    check.compare("unreadable settings", "", {"CAPTURESAN_MAX_TRACE": "many", "CAPTURESAN_LEVEL": "?"}, 1)
    if check.failed:
        print("%d checks failed" % check.failed)
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
