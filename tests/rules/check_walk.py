#!/usr/bin/env python3
"""Follows docs/writing-rules.md word for word: writes its files, runs its commands, and compares what they print.

usage: check_walk.py CAPTURESAN SIM_FOLDER CUDA_FOLDER
Each line after a command must occur in what it prints, in that order, all words of it in one line.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "writing-rules.md"


def blocks():
    """Kind and lines of each fenced block."""
    for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        yield kind, text


def steps(text):
    command, expected = None, []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, expected
            command, expected = line[2:], []
        else:
            expected.append(line)
    if command:
        yield command, expected


def main():
    command, sim, cuda = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    env = {k: v for k, v in os.environ.items() if not k.startswith("CAPTURESAN")}
    env |= {"PATH": f"{command.parent}:{env['PATH']}", "SIM": str(sim), "CUDA": str(cuda)}
    ran, wrong = 0, []
    with tempfile.TemporaryDirectory(prefix="capturesan-walk-") as name:
        folder = pathlib.Path(name)
        for kind, text in blocks():
            if kind == "cpp":
                (folder / "refused.cpp").write_text(text)
            elif kind == "yaml" and text.startswith("schema:"):
                (folder / "mine.yaml").write_text(text)
            elif kind == "yaml" and text.startswith("overrides:"):
                (folder / "more.yaml").write_text("schema: 1\n" + text)
                done = subprocess.run(["capturesan", "rules", "lint", "more.yaml"], cwd=folder, env=env, capture_output=True, text=True)
                if done.returncode:
                    wrong.append(f"the override: {done.stdout}")
            elif kind == "yaml":  # goes before the tests
                rules = (folder / "mine.yaml").read_text()
                (folder / "mine.yaml").write_text(rules.replace("    tests:\n", text + "    tests:\n", 1))
            for line, expected in steps(text) if not kind else ():
                ran += 1
                done = subprocess.run(["bash", "-c", line], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if done.returncode:
                    wrong.append(f"$ {line}\n  exit code {done.returncode}: {done.stdout}")
                said = iter(done.stdout.splitlines())
                for want in expected:
                    if not any(" ".join(want.split()) in " ".join(one.split()) for one in said):
                        wrong.append(f"$ {line}\n  does not say {want!r}, but\n{done.stdout}")
                        break
    for line in wrong:
        print(line)
    print(f"{ran} commands, {len(wrong)} wrong")
    return 1 if wrong or ran < 8 else 0


if __name__ == "__main__":
    sys.exit(main())
