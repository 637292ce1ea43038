#!/usr/bin/env python3
"""What the shim adds to one driver call, against nothing preloaded and against a shim that only jumps on. No GPU.

usage: measure.py --build DIR [--rounds N] [--write FILE]
The fake driver answers at once. Processor time of the calling threads, page faults included; batches of 1,000 calls. The variants
take turns, so that they see the same machine. `followed` is the shim under `capturesan run` with a pause between batches.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import runpy
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ("filtered", "launch", "recorded", "varied")
CALLS = {1: 1000000, 16: 100000}  # a thread


def call_cost(build, case, calls, threads, preload, *pause):
    with tempfile.TemporaryDirectory() as place:
        env = dict(os.environ, LD_LIBRARY_PATH=str(build / "lib/fake"), CAPTURESAN_OUTPUT=place + "/trace", LD_PRELOAD=preload)
        out = subprocess.run([str(build / "bin/call_cost"), case, str(calls), str(threads), *pause], env=env, stdout=subprocess.PIPE,
                             check=True).stdout
    return json.loads(out)


def followed(build, case):
    """Under a reader that keeps up: what it has judged is used anew, so pages are warm."""
    with tempfile.TemporaryDirectory() as place:
        out = subprocess.run([str(build / "bin/capturesan"), "run", "--driver", "sim", "--allow-empty", "-o", place + "/trace", "--",
                              "env", "LD_LIBRARY_PATH=" + str(build / "lib/fake"), str(build / "bin/call_cost"), case, "2000000", "1", "2500"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if out.returncode != 0:
        sys.exit(out.stderr.decode())
    return json.loads(out.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write")
    a = parser.parse_args()
    build = a.build.resolve()
    preloads = {"nothing": "", "empty shim": str(build / "lib/libnoshim.so"), "shim": str(build / "lib/libcapturesan.so")}
    samples = []
    for turn in range(a.rounds):
        for case in CASES:
            for threads, calls in CALLS.items():
                for variant, preload in preloads.items():
                    samples.append({"round": turn, "variant": variant, **call_cost(build, case, calls, threads, preload)})
        for case in ("recorded", "varied"):
            samples.append({"round": turn, "variant": "followed", **followed(build, case)})
        print("round %d of %d" % (turn + 1, a.rounds))
    if a.write:
        gpu_check = runpy.run_path(str(ROOT / "scripts/gpu-check"))
        model = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
        data = {"schema": 1, "part": "call_cost", "claim": "What the shim adds to one driver call; no GPU.",
                "commit": gpu_check["output_of"]("git", "rev-parse", "HEAD"), "shim": gpu_check["shim_hash"](),
                "cpu": "%s, %d cores, %s" % (model[0] if model else platform.machine(), os.cpu_count(), platform.release()),
                "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
                "command": "tests/bench/measure.py --build BUILD --rounds %d" % a.rounds, "samples": samples}
        pathlib.Path(a.write).write_text(json.dumps(data, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
