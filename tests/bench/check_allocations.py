#!/usr/bin/env python3
"""No allocation of the heap on the shim's hot paths.

usage: check_allocations.py --build DIR
"""
import argparse
import os
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    build = os.path.abspath(parser.parse_args().build)
    with tempfile.TemporaryDirectory() as place:
        env = dict(os.environ, LD_PRELOAD=os.path.join(build, "lib", "libcapturesan.so"), CAPTURESAN_OUTPUT=os.path.join(place, "trace"),
                   LD_LIBRARY_PATH=os.path.join(build, "lib", "fake"))
        code = subprocess.run([os.path.join(build, "tests", "allocations")], env=env, check=False).returncode
        size = sum(e.stat().st_size for e in os.scandir(os.path.join(place, "trace")))
    # 20,000 rounds of at least six recorded calls of 64 bytes.
    if size < 20000 * 6 * 64:
        print("the shim has recorded only %d bytes" % size)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
