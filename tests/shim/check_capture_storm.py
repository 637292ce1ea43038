#!/usr/bin/env python3
"""Eight threads with a capture each, all open at once and all invalidated, while others create and destroy streams: the program
behaves as without the shim, and the report has every mistake at its own thread.

usage: check_capture_storm.py --build DIR
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

THREADS, ROUNDS = 8, 25


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    build = os.path.abspath(parser.parse_args().build)
    program = [os.path.join(build, "tests", "capture_storm"), str(THREADS), str(ROUNDS)]
    plain = subprocess.run(program, env=dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "lib", "sim")),
                           stdout=subprocess.PIPE, check=False)
    with tempfile.TemporaryDirectory() as place:
        report = os.path.join(place, "report.json")
        watched = subprocess.run(
            [os.path.join(build, "bin", "capturesan"), "run", "--driver", "sim", "-o", os.path.join(place, "trace"),
             "--report", "json=" + report, "--"] + program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        try:
            with open(report) as f:
                data = json.load(f)
        except OSError:
            print(watched.stderr.decode())
            return 1
    wrong = []
    if plain.returncode != 0 or plain.stdout != watched.stdout:
        wrong.append("output %r (exit %d), with the shim %r" % (plain.stdout, plain.returncode, watched.stdout))
    found = {}
    threads = set()
    for f in data["findings"]:
        key = (f["rule"], f["api"])
        found[key] = found.get(key, 0) + f["count"]
        threads.add(f["thread"]["tid"])
        if f["thread"]["tid"] != f["capture"]["origin_thread"]["tid"]:
            wrong.append("%s blames thread %s for a capture of %s" % (key, f["thread"], f["capture"]["origin_thread"]))
    # Each thread makes one mistake a round, in the capture it began itself: CS101 and nothing else.
    if found != {("CS101", "cuStreamSynchronize"): THREADS * ROUNDS}:
        wrong.append("found %s, expected %d times CS101" % (found, THREADS * ROUNDS))
    summary = data["summary"]
    expected = {"captures": 2 * THREADS * ROUNDS, "replays": 3 * THREADS * ROUNDS, "dropped": 0}
    for name, value in expected.items():
        if summary[name] != value:
            wrong.append("%s: %s, expected %s" % (name, summary[name], value))
    for line in wrong:
        print("FAILED: " + line)
    print("%d mistakes found, findings name threads %s" % (sum(found.values()), sorted(threads)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
