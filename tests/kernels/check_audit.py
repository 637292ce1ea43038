#!/usr/bin/env python3
"""The second demo, audited: what makes the naive path uncapturable is found at its lines, the default variant is clean.

    check_audit.py --build FOLDER [--driver sim|real]

Exit code: 0 as it should be, 1 a difference (each on a line of its own), 77 skipped: no GPU.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP = 77
# What an engine must not do while it captures, and where this path does it: rule, call, and words that only its line has.
# Why each is refused: "Prohibited and Unhandled Operations", CUDA programming guide; tests/golden/ has the measured answers.
EAGER = [("CS101", "cuStreamSynchronize", '"wait for the read-back"'),
         ("CS105", "cuMemAlloc", "cudaMalloc(&workspace"),
         ("CS105", "cuMemAlloc", "cudaMalloc(&qo_copy"),
         ("CS105", "cuMemAlloc", "cudaMalloc(&kv_copy"),
         ("CS101", "cuStreamSynchronize", '"wait for the conversion copy'),
         ("CS105", "cuMemFree", "cudaFree(*p)")]


def lines_of(source, words):
    """The lines of the statement around the only line with these words: a statement may be broken over several."""
    lines = source.read_text().splitlines()
    found = [i for i, line in enumerate(lines) if words in line]
    if len(found) != 1:
        sys.exit(f"{source}: {len(found)} lines with {words}")
    first = last = found[0]
    while first > 0 and not lines[first - 1].rstrip().endswith((";", "{", "}")):
        first -= 1
    while not lines[last].rstrip().endswith((";", "{")):
        last += 1
    return range(first + 1, last + 2)


def run(build, driver, arguments):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        command = [build / "bin/capturesan", "run", "--driver", driver, "--level", "full", "--output", f"{folder}/trace",
                   "--report", f"json={report}", "--", build / "bin/verify_bench", *arguments]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=240)
        sys.stdout.write(f"$ verify_bench {' '.join(arguments)}\n{done.stdout}{done.stderr}")
        return done.returncode, json.loads(report.read_text()) if report.exists() else {"findings": []}


def place(finding):
    """(file name, line) of the program's innermost frame with a source line."""
    for frame in finding["stack"]:
        if frame.get("file"):
            return os.path.basename(frame["file"]), frame["line"]
    return "", 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--driver", choices=("sim", "real"), default="sim")
    options = parser.parse_args()
    if options.driver == "real" and not pathlib.Path("/dev/nvidia0").exists():
        print("skipped: no GPU")
        return SKIP
    wrong = []
    code, report = run(options.build, options.driver, ["--variant", "eager", "--mode", "graph"])
    if code != 1:
        wrong.append(f"eager: exit code {code}, expected 1: findings")
    findings = report["findings"]
    # One and the same line may be found once from each place that captures it.
    missing = {words: (rule, call, lines_of(ROOT / "kernels/eager.cu", words)) for rule, call, words in EAGER}
    wanted = list(missing.items())
    for f in findings:
        file, line = place(f)
        words = [w for w, (rule, call, lines) in wanted if f["rule"] == rule and f["api"] == call and file == "eager.cu" and line in lines]
        if not words:
            wrong.append(f"eager: not expected: {f['rule']} {f['api']} {place(f)}")
        for w in words:
            missing.pop(w, None)
    wrong += [f"eager: no {rule} about {call} at eager.cu:{lines[0]}-{lines[-1]}" for rule, call, lines in missing.values()]

    code, report = run(options.build, options.driver, ["--demo"])
    if code != 0:
        wrong.append(f"balanced: exit code {code}, expected 0: right numbers and no finding")
    if report["findings"]:
        wrong.append("balanced: " + ", ".join(f"{f['rule']} {f['api']}" for f in report["findings"]))
    counts = report.get("summary", {})
    if counts.get("captures") != 1 or counts.get("replays") != 4:
        wrong.append(f"balanced: {counts}, expected 1 capture and 4 replays")
    print("\n".join(wrong) if wrong else "as it should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
