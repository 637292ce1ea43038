#!/usr/bin/env python3
"""Every case in bad/*.cases: `capturesan rules lint` says exactly what is wrong, and where.

usage: check_bad_rules.py CAPTURESAN [CASE FILE]...

A case begins with `=== KIND name` and goes on with lines of a rule file. Under a line, `^^^` marks a place in it, followed by the
code, the message and, after ` -- `, the hint that are expected there; such lines do not belong to the file. An expectation that
belongs to no place is written `! CODE message -- hint`. The kinds:
    file   the lines are the whole file
    rule   the lines are keys of a rule that is good otherwise; `rule without KEY` leaves one out
    when   the line is the condition of a rule; `when each X` gives that rule an `each`
    given  the lines are events of a test of a rule that is good otherwise
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HEAD = ["schema: 1", "lists: {apis: [cuInit], numbers: [1, 2]}", "macros: {good: 'event.in_window', mine: 'exists(param.index)'}", "rules:",
        "  - id: MY900", "    name: user-of-names", "    events: [graph_launch]", "    each: graph.ptr",
        "    when: '$good and $mine and event.api in $apis and event.result in $numbers'", "    severity: note",
        "    message: m", "    remediation: r", "    tests: [{name: n, given: [], expect: none}]", "  -"]
GOOD = {"id": "id: MY101", "name": "name: mine", "events": "events: [sync]", "when": "when: 'event.result == 1'",
        "severity": "severity: error", "message": "message: 'm'", "remediation": "remediation: 'r'",
        "tests": "tests: [{name: n, given: [], expect: none}]"}
MARK = re.compile(r"^( *)(\^+) (CG[EW]\d+) (.*)$")
SAID = re.compile(r"^(?P<file>[^:\n]+)(?::(?P<line>\d+):(?P<column>\d+))?: (?:error|warning)\[(?P<code>CG[EW]\d+)\]: (?P<message>.*)$")


WORDS = re.compile(r"@words\(([\w.]+)\)")  # in a hint: the words of a field, which grow


def split(text):
    return [part.strip() for part in (text.split(" -- ", 1) + [""])[:2]]


def cases_of(path):
    case = None
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if line.startswith("=== "):
            case = {"at": f"{path.name}:{number}", "kind": line[4:].split()[0], "name": line[4:], "lines": [], "expected": []}
            yield case
        elif case is None:
            assert not line or line.startswith("#"), f"{path}:{number}: not in a case"
        elif mark := MARK.match(line):
            case["expected"].append((len(case["lines"]), len(mark[1]) + 1, len(mark[2]), mark[3], *split(mark[4])))
        elif line.startswith("! "):
            code, rest = line[2:].split(" ", 1)
            case["expected"].append((0, 0, 0, code, *split(rest)))
        else:
            case["lines"].append(line)


def built(case):
    """The text of the rule file, and by how much lines and columns of the case are moved in it."""
    words, lines = case["name"].split(), case["lines"]
    while lines and not lines[-1]:
        lines = lines[:-1]
    if case["kind"] == "file":
        return lines, 0, 0
    if case["kind"] == "when":
        extra = [f"    each: {words[words.index('each') + 1]}"] if words[1:2] == ["each"] else []
        lines = lines or [""]
        assert len(lines) == 1, case["at"]
        good = [f"    {line}" for key, line in GOOD.items() if key != "when"] + extra
        return HEAD + good + [f"    when: '{lines[0]}'"], len(HEAD) + len(good), 11
    if case["kind"] == "given":
        good = [f"    {line}" for key, line in GOOD.items() if key != "tests"]
        head = HEAD + good + ["    tests:", "      - name: n", "        expect: none", "        given:"]
        return head + [f"          {line}" for line in lines], len(head), 10
    assert case["kind"] == "rule", case["at"]
    dropped = {words[2]} if words[1:2] == ["without"] else set()
    dropped |= {line.split(":")[0] for line in lines}
    good = [f"    {line}" for key, line in GOOD.items() if key not in dropped]
    return HEAD + good + [f"    {line}" for line in lines], len(HEAD) + len(good), 4


def said_by(command, lines, folder):
    file = folder / "bad.yaml"
    file.write_text("\n".join(lines) + "\n")
    done = subprocess.run([command, "rules", "lint", "bad.yaml"], cwd=folder, capture_output=True, text=True, timeout=20)
    found, output = [], done.stdout.splitlines()
    for i, line in enumerate(output):
        said = SAID.match(line)
        if not said:
            continue
        assert said["file"] == "bad.yaml", f"another file is blamed: {line}"
        if said["line"] is None:
            hint = output[i + 1].strip() if i + 1 < len(output) and output[i + 1].startswith("  ") else ""
            found.append((0, 0, 0, said["code"], said["message"], hint))
            continue
        at = int(said["line"])
        excerpt = re.match(r"^ *(\d+) \| (.*)$", output[i + 1]) if i + 1 < len(output) else None
        length, hint = 1, ""
        if excerpt:
            assert int(excerpt[1]) == at and excerpt[2].rstrip() == lines[at - 1].rstrip(), f"wrong line shown: {output[i + 1]!r}"
            caret = re.match(r"^      \| ( *)(\^+) ?(.*)$", output[i + 2])
            assert caret and len(caret[1]) + 1 == int(said["column"]), f"caret and column differ: {output[i:i + 3]}"
            length, hint = len(caret[2]), caret[3]
        found.append((at, int(said["column"]), length, said["code"], said["message"], hint))
    expected_code = 2 if any(one[3].startswith("CGE") for one in found) else 0
    assert done.returncode == expected_code, f"exit code {done.returncode}, expected {expected_code}"
    return found, done.stdout


def main():
    command = pathlib.Path(sys.argv[1]).resolve()
    fields = json.loads(subprocess.run([command, "rules", "fields", "--json"], capture_output=True, check=True).stdout)
    words = {field["name"]: " ".join(field.get("words", [])) for field in fields}
    files = [pathlib.Path(name) for name in sys.argv[2:]] or sorted(HERE.glob("bad/*.cases"))
    count, wrong, codes = 0, 0, set()
    with tempfile.TemporaryDirectory(prefix="capturesan-bad-") as folder:
        for case in (case for file in files for case in list(cases_of(file))):
            count += 1
            text, down, right = built(case)
            expected = [(line + down, column + right, *rest, said, WORDS.sub(lambda m: words[m[1]], hint)) if line else
                        (line, column, *rest, said, hint) for line, column, *rest, said, hint in case["expected"]]
            try:
                found, output = said_by(command, text, pathlib.Path(folder))
                codes |= {one[3] for one in found}
                assert expected, "a case that expects nothing"
                assert found == expected, "expected\n" + "".join(f"    {e}\n" for e in expected) + "  said\n" + output
            except AssertionError as error:
                wrong += 1
                print(f"{case['at']}: {case['name']}: {error}")
    print(f"{count} cases, {wrong} wrong")
    if not sys.argv[2:]:
        wrong += check_codes(fields, codes, count)
    return 1 if wrong or not count else 0


def check_codes(fields, codes, count):
    """Every code of the loader has a case, or a test elsewhere that says so here."""
    elsewhere = {"CGE008": "hostile.py", "CGE009": "hostile.py"}
    if not any(field.get("needs") == "full" for field in fields):
        elsewhere["CGE034"] = "cannot happen while no field needs level full"
    source = HERE.parents[1] / "analyzer"
    used = {code for file in [*source.glob("*.cpp"), *source.glob("cli/*.cpp")] for code in re.findall(r'"(CG[EW]\d+)"', file.read_text())}
    wrong = 0
    for code in sorted(used - codes - set(elsewhere)):
        print(f"{code} has no case")
        wrong += 1
    if count < 120:
        print(f"only {count} cases")
        wrong += 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
