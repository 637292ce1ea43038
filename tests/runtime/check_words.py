#!/usr/bin/env python3
"""What CS201 says about each way of words.cu: with a disassembler, and without one.

    check_words.py BUILD PROGRAM [sim|real]

Expected: `used` and the like are wrong programs, whose kernel uses the freed buffer at every launch, as its source says. The
others get the address and do not use it, or not for certain; they may be suspected, and nothing more.
Skipped (77) where there is no cuobjdump."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CERTAIN = ("used", "flagged", "counted", "gathered", "one_warp", "neighbour")
SUSPECTED = ("unflagged", "uncounted", "unused", "limit", "index", "stored", "both_or_none", "last")
SKIP = 77


def judge(build, program, driver, way, **variables):
    """(what the rules say of the run: confidences and messages, output)."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CAPTURESAN_") or k == "CAPTURESAN_DISASSEMBLER"}
    environment.update(variables)
    with tempfile.TemporaryDirectory(prefix="capturesan-words-") as folder:
        report = pathlib.Path(folder) / "report.json"
        done = subprocess.run([build / "bin/capturesan", "run", "--driver", driver, "-o", f"{folder}/trace", "--show", "suspected",
                               "--report", f"json={report}", "--", program, way],
                              env=environment, capture_output=True, text=True, timeout=120, cwd=folder)
        output = done.stdout + done.stderr
        if f"{way} done" not in output:
            return None, output
        findings = json.loads(report.read_text())["findings"]
        return [(f["rule"], f["confidence"], f["message"]) for f in findings
                if f["rule"] == "CS201" or f["confidence"] != "suspected"], output  # a busy machine makes calls slow (CS106)


def main():
    build, program = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    driver = sys.argv[3] if len(sys.argv) > 3 else "sim"
    fetched = pathlib.Path(__file__).resolve().parents[2] / "build/disassembler/bin"  # by scripts/set-up
    if not os.environ.get("CAPTURESAN_DISASSEMBLER") and not shutil.which("cuobjdump") and fetched.exists():
        os.environ["CAPTURESAN_DISASSEMBLER"] = str(fetched)
    doctor = subprocess.run([build / "bin/capturesan", "doctor", "--driver", driver], capture_output=True, text=True, timeout=60)
    if "disassembler: " not in doctor.stdout:
        print("skipped: no cuobjdump; scripts/set-up fetches one")
        return SKIP
    wrong = []
    for way in CERTAIN + SUSPECTED:
        for tool in (True, False):
            found, output = judge(build, program, driver, way, **({} if tool else {"CAPTURESAN_DISASSEMBLER": "off"}))
            if found is None and "side by side" in output:
                print(f"{way}: not possible here")
                break
            if found is None:
                wrong.append(f"{way}: the program did not end well:\n{output}")
                break
            certain = tool and way in CERTAIN
            print(f"{way}, {'with' if tool else 'without'}: {[f[:2] for f in found]}")
            if [f[:2] for f in found] != [("CS201", "proved" if certain else "suspected")]:
                wrong.append(f"{way}, {'with' if tool else 'without'}: {found}")
            elif certain != ("which the kernel uses as an address (" in found[0][2]):
                wrong.append(f"{way}: the message is {found[0][2]}")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
