#!/usr/bin/env python3
"""Every report format, read by a strict reader: usage check_reports.py WRITE_REPORTS SARIF_SCHEMA JSON_SCHEMA [CAPTURESAN EXAMPLES]."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml  # expat: refuses what XML 1.0 forbids

CASES = ("hostile", "many", "ordinary", "clean", "empty")
# C0 and C1 controls but the newline, DEL, what turns the direction of writing, line separators, non-characters.
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufffe\uffff]")
# RFC 3986: unreserved, percent-encoded and the slash; `file:` before an absolute path.
URI = re.compile(r"(file://(?=/))?(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+")

WRITER, SCHEMA, JSON_SCHEMA = sys.argv[1:4]
COMMAND, EXAMPLES = (sys.argv[4:6] + [None, None])[:2]


def strings_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_of(inner)


def no_duplicates(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key occurs twice: {keys}"
    return dict(pairs)


def strict_json(data):
    def refuse(word):
        raise ValueError(word)
    return json.loads(data.decode("utf-8", "strict"), object_pairs_hook=no_duplicates, parse_constant=refuse)


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="capturesan-reports-")
        cls.folder = pathlib.Path(cls.temporary.name)
        subprocess.run([WRITER, cls.folder], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def bytes_of(self, case, form):
        return (self.folder / f"{case}.{form}").read_bytes()

    def json_of(self, case, form):
        return strict_json(self.bytes_of(case, form))

    def test_same_input_same_bytes(self):
        with tempfile.TemporaryDirectory() as again:
            subprocess.run([WRITER, again], check=True)
            for path in self.folder.iterdir():
                self.assertEqual(path.read_bytes(), (pathlib.Path(again) / path.name).read_bytes(), path.name)

    def test_text_formats_hold_no_control_characters(self):
        for form in ("text", "github", "summary", "dot", "junit"):
            for case in CASES:
                text = self.bytes_of(case, form).decode("utf-8", "strict")
                self.assertIsNone(FORBIDDEN.search(text), (form, case))
                self.assertLess(len(text), 4 << 20, "names are cut")

    def test_json_formats(self):
        for form in ("json", "sarif", "gitlab"):
            for case in CASES:
                raw = self.bytes_of(case, form)
                strict_json(raw)
                self.assertNotIn(b"</", raw)
                if form == "json":  # says what was there; the others are shown to people
                    continue
                self.assertLess(len(raw), 10 << 20)
                for text in strings_of(self.json_of(case, form)):
                    self.assertIsNone(FORBIDDEN.search(text), (form, case, text[:80]))

    def validate_json(self, report):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3 has no jsonschema (scripts/set-up installs it)")
        schema = json.loads(pathlib.Path(JSON_SCHEMA).read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        self.assertEqual([f"{list(e.absolute_path)}: {e.message[:200]}" for e in validator.iter_errors(report)][:5], [])
        # Every field is described, so that the schema cannot fall behind.
        self.assertEqual(set(report), set(schema["properties"]))
        self.assertEqual(set(report["summary"]), set(schema["properties"]["summary"]["properties"]))
        for found in report["findings"][:1]:
            self.assertEqual(set(found), set(schema["definitions"]["finding"]["properties"]))

    def test_json_fits_its_schema(self):
        for case in CASES:
            report = self.json_of(case, "json")
            report["findings"] = report["findings"][:100]
            self.validate_json(report)

    # SARIF

    def run_of(self, case):
        sarif = self.json_of(case, "sarif")
        self.assertEqual((sarif["version"], len(sarif["runs"])), ("2.1.0", 1))
        return sarif["runs"][0]

    def validate(self, sarif):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3 has no jsonschema (scripts/set-up installs it)")
        schema = json.loads(pathlib.Path(SCHEMA).read_text())
        jsonschema.Draft4Validator.check_schema(schema)
        validator = jsonschema.Draft4Validator(schema)
        self.assertEqual([f"{list(e.absolute_path)}: {e.message[:200]}" for e in validator.iter_errors(sarif)][:5], [])
        # A validator that accepts everything would prove nothing.
        broken = json.loads(json.dumps(sarif))
        broken["runs"][0]["tool"].pop("driver")
        self.assertFalse(validator.is_valid(broken))

    def test_sarif_fits_the_oasis_schema(self):
        for case in CASES:
            sarif = self.json_of(case, "sarif")
            results = sarif["runs"][0]["results"]
            sarif["runs"][0]["results"] = results[:50] + results[-50:]  # 5,000 take a minute
            self.validate(sarif)

    def test_sarif_within_the_limits_of_github(self):
        for case in CASES:
            run = self.run_of(case)
            rules = run["tool"]["driver"]["rules"]
            self.assertLessEqual(len(run["results"]), 5000)
            self.assertEqual(len({rule["id"] for rule in rules}), len(rules))
            for rule in rules:
                self.assertLessEqual(len(rule["properties"]["tags"]), 10)
            for result in run["results"]:
                self.assertEqual(rules[result["ruleIndex"]]["id"], result["ruleId"])
                self.assertEqual(list(result["partialFingerprints"]), ["capturesanFingerprint/v1"])
                self.assertEqual(len(result["locations"]), 1)
                place = result["locations"][0]["physicalLocation"]
                self.assertGreaterEqual(place["region"]["startLine"], 1)
                self.assertRegex(place["artifactLocation"]["uri"], f"^{URI.pattern}$")
        notes = [n["message"]["text"] for n in self.run_of("many")["invocations"][0]["toolExecutionNotifications"]]
        self.assertIn("1000 findings were cut: this file holds the worst 5000", notes)
        self.assertEqual(self.run_of("many")["results"][0]["ruleId"], "CS101", "the worst first")

    def test_sarif_declares_every_rule_and_tells_what_was_not_evaluated(self):
        run = self.run_of("clean")
        self.assertEqual([rule["id"] for rule in run["tool"]["driver"]["rules"]], ["CS101", "CS202"])
        self.assertEqual(run["results"], [])
        call = run["invocations"][0]
        self.assertIs(call["executionSuccessful"], True)
        self.assertIn("CS202 was not evaluated: needs level full", [n["message"]["text"] for n in call["toolExecutionNotifications"]])
        self.assertIs(self.run_of("empty")["invocations"][0]["executionSuccessful"], False)
        self.assertIs(self.run_of("hostile")["invocations"][0]["executionSuccessful"], False)

    def test_sarif_points_into_the_users_source(self):
        result = self.run_of("ordinary")["results"][0]
        place = result["locations"][0]
        self.assertEqual(place["physicalLocation"]["artifactLocation"], {"uri": "a%20dir/main.cpp", "uriBaseId": "%SRCROOT%"})
        self.assertEqual(place["physicalLocation"]["region"], {"startLine": 41, "snippet": {"text": "  wait();"}})
        self.assertEqual(place["logicalLocations"], [{"fullyQualifiedName": "app!step", "kind": "function"}])
        steps = [s["location"]["message"]["text"] for s in result["codeFlows"][0]["threadFlows"][0]["locations"]]
        self.assertEqual(len(steps), 4)
        self.assertTrue(steps[0].startswith("capture 3 begins") and steps[1].startswith("allocates") and steps[2].startswith("frees"))

    # JUnit

    def suite_of(self, case):
        root = xml.fromstring(self.bytes_of(case, "junit"))
        self.assertEqual((root.tag, len(root)), ("testsuites", 1))
        suite = root[0]
        count = collections.Counter()
        for test in suite.findall("testcase"):
            self.assertTrue(test.get("classname") and test.get("name"))
            kinds = [child.tag for child in test if child.tag != "system-out"]
            self.assertLessEqual(len(kinds), 1)
            count["tests"] += 1
            count.update(kinds)
        for attribute, kind in (("tests", "tests"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            self.assertEqual(int(suite.get(attribute)), count[kind], (case, attribute))
            self.assertEqual(suite.get(attribute), root.get(attribute))
        return suite

    def test_junit(self):
        for case in CASES:
            self.suite_of(case)
        self.assertEqual(self.suite_of("ordinary").get("name"), "/src/project/app")
        results = {test.get("classname"): [child.tag for child in test] for test in self.suite_of("ordinary").findall("testcase")}
        self.assertEqual(results, {"capturesan.CS101": ["failure"], "capturesan.CS202": ["skipped"], "capturesan": []})
        failure = self.suite_of("ordinary").find("testcase/failure")
        self.assertEqual((failure.get("type"), failure.get("message")), ("CS101", "a wait"))
        self.assertIn("app!step at a dir/main.cpp:41", failure.text)
        self.assertEqual(self.suite_of("empty").get("errors"), "1", "nothing captured is never green")
        self.assertEqual(self.suite_of("clean").get("failures"), "0")

    # GitHub

    def test_github_commands_cannot_be_forged(self):
        for case in CASES:
            lines = self.bytes_of(case, "github").decode().splitlines()
            count = collections.Counter()
            for line in lines:
                match = re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.*)", line)
                self.assertTrue(match, line[:200])
                count[match[1]] += 1
                self.assertNotRegex(match[3], r"%(?!25|0A|0D)")
                properties = dict(pair.split("=", 1) for pair in match[2].split(","))
                self.assertLessEqual(set(properties), {"file", "line", "title"})
            self.assertTrue(all(n <= 10 for n in count.values()), count)
        many = self.bytes_of("many", "github").decode().splitlines()
        self.assertTrue(many[0].startswith("::error title=CS101 "))
        self.assertIn("::5990 more findings than GitHub shows", many[-1])

    def test_github_names_the_line(self):
        self.assertIn("::error file=a dir/main.cpp,line=41,title=CS101 a-rule::a wait%0Ain app!step%0Afix: ",
                      self.bytes_of("ordinary", "github").decode())

    def test_step_summary(self):
        for case in CASES:
            text = self.bytes_of(case, "summary").decode()
            self.assertLess(len(text.encode()), 1 << 20)
            self.assertNotRegex(text, r"[<>`]")
            for line in text.splitlines():
                if line.startswith("|"):
                    self.assertEqual(line.count("|"), 5, line[:200])
        self.assertIn("5800 more findings are not listed here", self.bytes_of("many", "summary").decode())

    # GitLab

    def test_gitlab(self):
        for case in CASES:
            issues = self.json_of(case, "gitlab")
            self.assertEqual(len({issue["fingerprint"] for issue in issues}), len(issues))
            for issue in issues:
                self.assertEqual(set(issue), {"description", "check_name", "fingerprint", "severity", "location"})
                self.assertIn(issue["severity"], ("info", "minor", "major", "critical", "blocker"))
                self.assertFalse(issue["location"]["path"].startswith("./"))
                self.assertGreaterEqual(issue["location"]["lines"]["begin"], 1)
        self.assertEqual(self.json_of("ordinary", "gitlab"),
                         [{"description": "a-rule: a wait", "check_name": "CS101", "fingerprint": "abcd", "severity": "critical",
                           "location": {"path": "a dir/main.cpp", "lines": {"begin": 41}}}])

    # dot

    def test_dot(self):
        text = self.bytes_of("ordinary", "dot").decode()
        red = [line for line in text.splitlines() if "color=red" in line and "label=" in line]
        self.assertEqual(len(red), 1)
        self.assertIn("299 kernel: scale(float*) - CS101", red[0])
        self.assertIn("99 nodes are not drawn", text)  # 300, of which the first 200 and the red one are
        self.assertNotIn("color=red", self.bytes_of("clean", "dot").decode())
        for case in CASES:
            text = re.sub(r'"(?:[^"\\]|\\.)*"', "S", self.bytes_of(case, "dot").decode())
            self.assertNotIn('"', text, "every string ends where it should")
            self.assertEqual(text.count("{"), text.count("}"))
            self.assertRegex(text, r"\A[\w\s{}\[\];=,>-]*\Z")

    def test_dot_is_read_by_graphviz(self):
        if not shutil.which("dot"):
            self.skipTest("no dot (Graphviz) here")
        for case in CASES:
            done = subprocess.run(["dot", "-Tcanon"], input=self.bytes_of(case, "dot"), capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""), case)


@unittest.skipIf(COMMAND is None, "no command given")
class Command(unittest.TestCase):
    """The real command over a real trace: a file for each format, and the same bytes from run and check."""

    def test_all_at_once(self):
        with tempfile.TemporaryDirectory(prefix="capturesan-reports-") as name:
            folder = pathlib.Path(name)
            env = {key: value for key, value in os.environ.items() if not key.startswith(("CAPTURESAN", "GITHUB"))}
            env["GITHUB_STEP_SUMMARY"] = str(folder / "page.md")
            forms = ("json", "sarif", "junit", "gitlab", "dot", "github")
            options = [word for form in forms for word in ("--report", f"{form}={folder}/one.{form}")]
            program = pathlib.Path(EXAMPLES) / "cs201_freed_copy_source"
            ran = subprocess.run([COMMAND, "run", "--driver", "sim", "-o", folder / "t", *options, "--", program],
                                 env=env, capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 1, ran.stderr)
            Reports.validate_json(self, json.loads((folder / "one.json").read_text()))
            rule = json.loads((folder / "one.json").read_text())["findings"][0]
            self.assertEqual(rule["rule"], "CS201")
            sarif = strict_json((folder / "one.sarif").read_bytes())
            Reports.validate(self, sarif)
            result = sarif["runs"][0]["results"][0]
            self.assertEqual(result["partialFingerprints"], {"capturesanFingerprint/v1": rule["fingerprint"]})
            uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            self.assertTrue(uri.endswith("examples/example.h"), uri)  # replay() is inline there
            self.assertGreaterEqual(len(sarif["runs"][0]["tool"]["driver"]["rules"]), 12)
            self.assertEqual(xml.fromstring((folder / "one.junit").read_bytes()).get("failures"), "1")
            self.assertIn("CS201", (folder / "one.github").read_text())
            self.assertIn("CS201", (folder / "page.md").read_text())
            self.assertEqual(len(json.loads((folder / "one.gitlab").read_text())), 1)
            self.assertRegex((folder / "one.dot").read_text(), r"memcpy[^\n]*CS201[^\n]*color=red")
            # The line of the source is quoted below its frame.
            self.assertRegex(ran.stderr, r"cs201_freed_copy_source\.cpp:(\d+)\n +\1 \| ")
            for form in ("sarif", "gitlab", "dot"):
                done = subprocess.run([COMMAND, "check", "--report", form, folder / "t"], env=env, capture_output=True, check=False)
                self.assertEqual(done.stdout, (folder / f"one.{form}").read_bytes(), form)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
