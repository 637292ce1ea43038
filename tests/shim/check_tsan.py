#!/usr/bin/env python3
"""The shim's own code, under the thread sanitizer: 64 threads, captures invalidated, chunks used anew by a follower.

usage: check_tsan.py --build DIR [--rounds N]
"""
import argparse
import os
import struct
import subprocess
import sys
import tempfile
import threading

HEADER, CHUNK = 4096, 16384  # trace/format.h
EVENTS, SEALED, CONSUMED = 0, 1, 2


def consume(path, stop):
    """What a follower does: marks sealed chunks as consumed, so that the shim takes them again."""
    fd = os.open(path, os.O_RDWR)
    while not stop.wait(0.02):
        for at in range(HEADER, os.fstat(fd).st_size - CHUNK + 1, CHUNK):
            state, purpose = struct.unpack("<II", os.pread(fd, 8, at + 44))  # chunk_header::state, purpose
            if state == SEALED and purpose == EVENTS:
                os.pwrite(fd, struct.pack("<I", CONSUMED), at + 44)
    os.close(fd)


def recycled(path):
    with open(path, "rb") as f:
        head = f.read(HEADER)
    # file_header::recycled: after `lost` (see check_victim.py) two ticks, four words
    return struct.unpack_from("<Q", head, 8 + 4 + 20 + 8 + 16 + 16 + 16 + 8 + 8 + 16 + 16)[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--rounds", default="25")
    a = parser.parse_args()
    tests = os.path.join(os.path.abspath(a.build), "tests")
    symbols = subprocess.run(["readelf", "-Ws", os.path.join(tests, "libtsan_shim.so")], stdout=subprocess.PIPE, check=True).stdout
    if b"__tsan_write8" not in symbols:
        print("the shim under test is not instrumented")
        return 1
    with tempfile.TemporaryDirectory() as place:
        # The sanitizer cannot see the locks of an uninstrumented driver.
        with open(os.path.join(place, "suppressions"), "w") as f:
            f.write("called_from_lib:libcuda.so.1\nrace:libcuda.so.1\n")
        env = dict(os.environ, LD_LIBRARY_PATH="%s/../lib/sim:%s" % (tests, tests), CAPTURESAN_OUTPUT=os.path.join(place, "trace"),
                   CAPTURESAN_LEVEL="full", TSAN_OPTIONS="exitcode=66 suppressions=%s" % os.path.join(place, "suppressions"))
        process = subprocess.Popen(["setarch", "-R", os.path.join(tests, "tsan_storm"), "64", a.rounds], env=env, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        stop = threading.Event()
        follower = None
        while process.poll() is None and follower is None:
            files = os.listdir(env["CAPTURESAN_OUTPUT"]) if os.path.isdir(env["CAPTURESAN_OUTPUT"]) else []
            if files:
                path = os.path.join(env["CAPTURESAN_OUTPUT"], files[0])
                follower = threading.Thread(target=consume, args=(path, stop))
                follower.start()
        out = process.communicate()[0].decode(errors="replace")
        stop.set()
        if follower is None:
            print(out + "\nno trace was written")
            return 1
        follower.join()
        size, again = os.path.getsize(path), recycled(path)
    print(out[-6000:])
    print("exit %d, trace %d bytes, %d chunks used anew" % (process.returncode, size, again))
    if process.returncode != 0 or size < 8 << 20 or again == 0:
        print("FAILED: expected exit 0, more than 8 MiB and chunks used anew")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
