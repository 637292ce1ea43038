#!/usr/bin/env python3
"""Runs examples under `capturesan run` and compares the JSON report with the comments of each program.

Comments, anywhere in examples/NAME.cpp or NAME.cu:
  // EXPECT: CS101 cuStreamSynchronize   this rule, about this call; one line each, and nothing else may be found
  // EXPECT: none                        no finding at all
  // EXPECT-NOT: CS105                   would be wrong; said for the reader, checked too
  // REAL-SIGNAL: 11                     on a real driver the program is ended by this signal, inside the driver; nothing else is judged
  // CAPTURES: 1                         exactly so many captures (default: at least one); 0: its graphs are built, not captured
  // REPLAYS: 3                          exactly so many launches of a graph
  // EVENTS: 10                          at least so many recorded calls, so that an unloaded shim cannot pass
  // SHOW: suspected                     findings that are only suspected count too

Exit code: 0 all as announced, 1 a difference, 77 skipped (no GPU).
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP = 77
KINDS = {"sim": "simulated", "real": "real"}


def expectations(text):
    """The announcements of one program; raises ValueError if they are not usable."""
    tags = re.findall(r"^\s*// (EXPECT|EXPECT-NOT|CAPTURES|REPLAYS|EVENTS|SHOW|REAL-SIGNAL): (.*?)\s*$", text, re.MULTILINE)
    wanted = {"findings": set(), "not": set(), "captures": None, "replays": None, "events": None, "show": "", "real-signal": 0}
    for tag, value in tags:
        if tag == "EXPECT" and value != "none":
            match = re.fullmatch(r"(CS\d{3})(?: (cu\w+))?", value)
            if not match:
                raise ValueError(f"not a rule and a call: 'EXPECT: {value}'")
            wanted["findings"].add((match[1], match[2] or ""))
        elif tag == "EXPECT-NOT":
            wanted["not"].add(value)
        elif tag == "SHOW":
            wanted["show"] = value
        elif tag != "EXPECT":
            wanted[tag.lower()] = int(value)
    says_none = ("EXPECT", "none") in tags
    if says_none == bool(wanted["findings"]):
        raise ValueError("needs either 'EXPECT: none' or the findings to expect")
    if wanted["replays"] is None or wanted["events"] is None:
        raise ValueError("needs REPLAYS and EVENTS")
    return wanted


def differences(wanted, report, exit_code, driver, source_name):
    """What the report says otherwise than the program's comments, in words."""
    wrong = []

    def expect(what, got, right):
        if got != right:
            wrong.append(f"{what}: {got}, expected {right}")

    findings = [f for f in report["findings"] if not f["suppressed"]]
    found = {(f["rule"], f["api"]) for f in findings}
    for rule, api in sorted(wanted["findings"] - found):
        wrong.append(f"not found: {rule} {api}".rstrip())
    for rule, api in sorted(found - wanted["findings"]):
        message = next(f["message"] for f in findings if f["rule"] == rule)
        wrong.append(f"found, but not announced: {rule} {api}: {message}")
    for rule in sorted(wanted["not"] & {rule for rule, _ in found}):
        wrong.append(f"found, although ruled out: {rule}")
    for finding in findings:
        if finding["api"] and not any(pathlib.Path(frame["file"]).name == source_name for frame in finding["stack"]):
            wrong.append(f"{finding['rule']}: no frame of its stack is in {source_name}")

    summary = report["summary"]
    if wanted["captures"] is not None:
        expect("captures", len(report["captures"]), wanted["captures"])
    elif not report["captures"]:
        wrong.append("no capture was seen")
    expect("replays", summary["replays"], wanted["replays"])
    if summary["events"] < wanted["events"]:
        wrong.append(f"events: {summary['events']}, expected at least {wanted['events']}")
    loses = any(rule == "CS901" for rule, _ in wanted["findings"])  # announced: then it must be so
    expect("records were dropped", summary["dropped"] > 0, loses)
    expect("complete", summary["complete"], not loses)
    expect("driver", report["driver"]["kind"], KINDS[driver])
    expect("exit code of the program", report["child_exit"], 0)
    errors = any(f["severity"] == "error" and f.get("confidence") != "suspected" for f in findings)
    expect("exit code of capturesan", exit_code, 1 if errors else 0)
    return wrong


def wrongly_blamed(wanted, report):
    """For a driver that refuses nothing: the rules about refused calls that speak all the same. CS103, CS106 and CS113
    are about calls that succeed."""
    wrong = [f"found, although nothing was refused: {f['rule']} {f['api']}" for f in report["findings"]
             if re.fullmatch(r"CS1(0[1245]|0[7-9]|1[01])", f["rule"])]
    if not report["captures"] and wanted["captures"] != 0:
        wrong.append("no capture was seen")
    return wrong


def run_example(build, driver, name, timeout=60, refuse=True):
    """Returns (differences, report or None, output)."""
    source = ROOT / "examples" / f"{name}.cpp"
    program = build / "examples" / name
    if not source.exists():  # runtime API: another runtime for each driver
        source = source.with_suffix(".cu")
        program = program.parent / "real" / name if driver == "real" else program
    wanted = expectations(source.read_text())
    env = {key: value for key, value in os.environ.items() if not key.startswith("CAPTURESAN_") and key != "LD_PRELOAD"}
    if not refuse:
        env["CAPTURESAN_SIM_REFUSE"] = "0"
    with tempfile.TemporaryDirectory(prefix="capturesan-example-") as folder:
        report_file = pathlib.Path(folder) / "report.json"
        command = [build / "bin/capturesan", "run", "--driver", driver, "-o", f"{folder}/trace",
                   "--report", f"json={report_file}", *(["--allow-empty"] if wanted["captures"] == 0 else []),
                   *(["--show", wanted["show"]] if wanted["show"] else []), "--", program]
        done = subprocess.run(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=timeout)
        output = done.stdout + done.stderr
        if not report_file.exists() or not report_file.stat().st_size:
            return [f"no report was written; exit code {done.returncode}"], None, output
        report = json.loads(report_file.read_text())
    if not refuse:
        return wrongly_blamed(wanted, report), report, output
    if driver == "real" and wanted["real-signal"]:  # the driver itself crashes; what can be told is that it did
        ended = report["child_exit"]
        right = ended == 128 + wanted["real-signal"]
        return [] if right else [f"the program ended with {ended}, expected signal {wanted['real-signal']}"], report, output
    return differences(wanted, report, done.returncode, driver, source.name), report, output


def gpu_missing():
    """Why there is no GPU to run on; empty if there is one."""
    if not any(pathlib.Path("/dev").glob("nvidia[0-9]*")):
        return "no NVIDIA GPU on this machine"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder")
    parser.add_argument("--driver", choices=sorted(KINDS), default="sim")
    parser.add_argument("--all", action="store_true", help="every example of the build")
    parser.add_argument("--no-refusals", action="store_true",
                        help="simulated driver without capture rules: no call may be blamed for one")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    names = arguments.names
    if arguments.all:
        names = (arguments.build / "examples/list.txt").read_text().split()
    if not names:
        parser.error("no example named")
    if arguments.driver == "real" and gpu_missing():
        print(f"skipped: {gpu_missing()}")
        return SKIP
    failed = 0
    for name in names:
        try:
            wrong, _, output = run_example(arguments.build.resolve(), arguments.driver, name,
                                           refuse=not arguments.no_refusals)
        except (ValueError, OSError, subprocess.TimeoutExpired) as error:
            wrong, output = [str(error)], ""
        print(f"{'FAILED' if wrong else 'ok':6} {name}")
        for line in wrong:
            print(f"       {line}")
        if wrong:
            failed += 1
            print("       its output was:", *output.splitlines(), sep="\n         | ")
    print(f"{len(names) - failed} of {len(names)} examples as announced")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
