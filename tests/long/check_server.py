#!/usr/bin/env python3
"""A server under `run`: memory and disk stay flat, `report` works meanwhile, Ctrl-C ends with the report.

usage: check_server.py --build DIR [--seconds N] [--pause MICROSECONDS] [--samples FILE]
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time


def resident(pid):
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def server_of(pid):
    """The server among the descendants; between it and the command there is a helper."""
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        for child in map(int, f.read().split()):
            with open("/proc/%d/cmdline" % child, "rb") as c:
                if c.read().split(b"\0")[0].endswith(b"/load"):
                    return child
            found = server_of(child)
            if found:
                return found
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--seconds", type=int, default=12)
    # Without a pause the simulated driver makes millions of calls a second, more than any GPU; that is what check_flood.py is for.
    parser.add_argument("--pause", type=int, default=100)
    parser.add_argument("--samples", help="append the samples to this file, one JSON object a line")
    a = parser.parse_args()
    build = os.path.abspath(a.build)
    command = os.path.join(build, "bin", "capturesan")
    wrong = []

    def expect(good, text):
        print(("ok: " if good else "FAILED: ") + text)
        if not good:
            wrong.append(text)

    with tempfile.TemporaryDirectory() as place:
        trace, final = os.path.join(place, "trace"), os.path.join(place, "final.json")
        run = subprocess.Popen([command, "run", "--driver", "sim", "-o", trace, "--report", "json=" + final, "--",
                                os.path.join(build, "tests", "load"), "serve", str(a.pause)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
        run.stdout.readline()  # serving
        server = server_of(run.pid)
        if server is None:
            run.kill()
            sys.exit("FAILED: the server is not among the descendants of the command")
        samples = []
        reported = None
        until = time.monotonic() + a.seconds
        started = time.monotonic()
        while time.monotonic() < until and run.poll() is None:
            time.sleep(a.seconds / 60)
            samples.append({"s": round(time.monotonic() - started, 1), "command_rss": resident(run.pid), "server_rss": resident(server),
                            "disk": sum(e.stat().st_size for e in os.scandir(trace))})
            if reported is None and time.monotonic() > until - a.seconds / 2:
                reported = subprocess.run([command, "report", "--report", "json", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                          check=False)
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does it
        out, err = run.communicate(timeout=60)
        with open(final) as f:
            data = json.load(f)
    meanwhile = json.loads(reported.stdout)
    steps = int(out)
    expect(run.returncode == 0, "exit code %d" % run.returncode)
    # What `run` has judged is overwritten above 8 MiB: a second reader must say that it has not seen the beginning.
    m = meanwhile["summary"]
    expect(m["running"] and m["events"] > 10000 and (m["captures"] == 1 or not m["complete"]),
           "report meanwhile: running %s, %d events, %d captures, complete %s" % (m["running"], m["events"], m["captures"], m["complete"]))
    s = data["summary"]
    expect(s["replays"] == steps, "%d replays reported, the server made %d" % (s["replays"], steps))
    expect(s["dropped"] == 0 and not data["findings"], "%d dropped, %d findings" % (s["dropped"], len(data["findings"])))
    last_line = err.decode().splitlines()[-1]
    expect(last_line.startswith("capturesan: 0 errors"), "last line: " + last_line)
    third = len(samples) // 3
    for name, slack in (("command_rss", 8 << 20), ("server_rss", 8 << 20), ("disk", 16 << 20)):
        early = max(x[name] for x in samples[third:2 * third])
        late = max(x[name] for x in samples[2 * third:])
        expect(late <= early * 1.1 + slack, "%s: %.1f MiB in the second third, %.1f in the last" % (name, early / 2**20, late / 2**20))
    if a.samples:
        with open(a.samples, "a") as f:
            for x in samples:
                f.write(json.dumps(x) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
