#!/usr/bin/env python3
"""More calls than a trace may hold, and than its reader can follow: every call is either judged or counted as dropped.

usage: check_flood.py --build DIR [--calls N] [--max-trace SIZE] [--whole]
  --whole   then again with a trace that is kept whole, and `check` on it: memory and speed
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

THREADS = 4
# Recorded beside those of the loops: cuInit, primary context, current context, module, two functions, stream; and on each thread
# its context, its 300 events, their ends.
OTHERS = 7 + 601 * THREADS
MEMORY = 512 << 20
SPEED = 5e6  # events a second on one core


class Flood:
    def __init__(self, build, calls):
        self.build, self.calls, self.wrong = build, calls, []

    def expect(self, good, text):
        print(("ok: " if good else "FAILED: ") + text)
        if not good:
            self.wrong.append(text)

    def command(self, *words):
        """Runs the command; its stdout, its processor seconds, and the largest resident size of itself, without its children."""
        out = tempfile.TemporaryFile()
        process = subprocess.Popen([os.path.join(self.build, "bin", "capturesan"), *words], stdout=out)
        resident = 0
        while True:
            done, status, used = os.wait4(process.pid, os.WNOHANG)
            if done != 0:
                break
            with open("/proc/%d/status" % process.pid) as f:
                for line in f:
                    if line.startswith("VmHWM:"):
                        resident = max(resident, int(line.split()[1]) * 1024)
            time.sleep(0.05)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return process.returncode, out.read().decode(), used.ru_utime + used.ru_stime, resident

    def run(self, place, *options):
        report = os.path.join(place, "report.json")
        code, out, _, resident = self.command(
            "run", "--driver", "sim", "-o", os.path.join(place, "trace"), "--report", "json=" + report, *options, "--",
            os.path.join(self.build, "tests", "load"), "flood", str(self.calls), str(THREADS))
        with open(report) as f:
            data = json.load(f)
        self.expect(code == 0, "exit code %d" % code)
        self.expect(int(out) == self.calls, "the program made %s calls" % out.strip())
        self.expect(resident <= MEMORY, "run took %d MiB" % (resident >> 20))
        return data

    def bounded(self, max_trace):
        with tempfile.TemporaryDirectory() as place:
            data = self.run(place, "--max-trace", max_trace)
            size = sum(e.stat().st_size for e in os.scandir(os.path.join(place, "trace")))
        s = data["summary"]
        rest = s["events"] + s["dropped"] - self.calls
        print("%d events judged, %d dropped, trace %d MiB" % (s["events"], s["dropped"], size >> 20))
        self.expect(rest == OTHERS, "judged and dropped together are all calls and %d others, expected %d" % (rest, OTHERS))
        if s["dropped"] == 0:
            return False
        silent = [r["id"] for r in data["rules"] if r["evaluated"] and r["findings"] == 0]
        self.expect(not silent, "rules that call a trace with a gap clean: %s" % silent)
        self.expect(not s["complete"] and "incomplete" in s["last_line"], "last line: " + s["last_line"])
        return True

    def whole(self):
        place = tempfile.mkdtemp()
        try:
            s = self.run(place, "--keep-trace", "--max-trace", "16GiB")["summary"]
            self.expect(s["dropped"] == 0, "%d dropped of a trace that has room" % s["dropped"])
            started = time.monotonic()
            code, _, seconds, resident = self.command("check", "--report", "json", os.path.join(place, "trace"))
            self.expect(code == 0, "check: exit code %d" % code)
            self.expect(resident <= MEMORY, "check took %d MiB" % (resident >> 20))
            speed = self.calls / seconds
            self.expect(speed >= SPEED, "check: %.1f M events/s of processor time, %.1f by the clock (needs an optimised build)" %
                        (speed / 1e6, self.calls / (time.monotonic() - started) / 1e6))
        finally:
            shutil.rmtree(place, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--calls", type=int, default=1000000)
    parser.add_argument("--max-trace", default="16MiB")
    parser.add_argument("--whole", action="store_true")
    a = parser.parse_args()
    flood = Flood(os.path.abspath(a.build), a.calls)
    flood.expect(flood.bounded(a.max_trace), "something was dropped, or the test shows nothing")
    if a.whole:
        flood.whole()
    return 1 if flood.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
