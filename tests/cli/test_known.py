"""Baselines, suppressions and the fingerprints both stand on."""
import json
import unittest

from support import BUILD, CLEAN, ERROR, REAL, CommandTest

SUPPRESS = """schema: 1
suppressions:
  - rule: CS101
    frame: '{frame}'
    api: cuStreamSynch*
    reason: a probe that is thrown away
    owner: infra
    expires: {expires}
"""
PROGRAMS = {name: BUILD / "tests/cli/fingerprint" / name / "subject" for name in ("plain", "lines", "optimised")}


class Fingerprints(CommandTest):
    command = REAL

    def findings(self, program, folder):
        done = self.call("run", "--driver", "sim", "-o", folder, "--report", f"json={folder}.json", "--", program)
        self.assertEqual(done.returncode, 1, done.stderr)
        report = json.loads((self.folder / f"{folder}.json").read_text())
        return [f for f in report["findings"] if f["rule"] == "CS101"]

    def test_they_survive_other_addresses_added_lines_and_another_optimisation(self):
        one, again = self.findings(PROGRAMS["plain"], "a"), self.findings(PROGRAMS["plain"], "b")
        lines, optimised = self.findings(PROGRAMS["lines"], "c"), self.findings(PROGRAMS["optimised"], "d")
        frame = lambda findings: findings[0]["stack"][0]
        # The test is about nothing unless these differ.
        self.assertNotEqual(frame(one)["address"], frame(again)["address"], "no ASLR here")
        self.assertEqual(frame(lines)["line"], frame(one)["line"] + 100)
        self.assertNotEqual(frame(optimised)["offset"], frame(one)["offset"])
        self.assertEqual({f[0]["fingerprint"] for f in (one, again, lines, optimised)}, {one[0]["fingerprint"]})

    def test_another_function_is_another_finding(self):
        other = self.findings(BUILD / "examples/cs101_host_sync", "a")  # another module
        self.assertNotEqual(other[0]["fingerprint"], self.findings(PROGRAMS["plain"], "b")[0]["fingerprint"])


class Baseline(CommandTest):
    command = REAL

    def setUp(self):
        super().setUp()
        self.assertEqual(self.call("run", "--driver", "sim", "-o", "t", "--", PROGRAMS["plain"]).returncode, 1)

    def test_only_new_findings_count(self):
        self.assertEqual(self.call("baseline", "--baseline", "known.json", "t").returncode, 0)
        done = self.call("run", "--driver", "sim", "--baseline", "known.json", "--report", "json=r.json", "--", PROGRAMS["lines"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0 errors, 0 warnings, 1 suppressed, clean", self.last_line(done.stderr))
        self.assertNotIn("CS101", done.stderr, "known ones are not announced either")
        found = json.loads((self.folder / "r.json").read_text())["findings"]
        self.assertEqual([(f["rule"], f["suppressed"], f["suppressed_by"]) for f in found], [("CS101", True, "baseline known.json")])
        new = self.call("run", "--driver", "sim", "--baseline", "known.json", "--", BUILD / "examples/cs105_unsafe_call")
        self.assertEqual(new.returncode, 1, new.stderr)

    def test_one_more_in_the_same_function_is_new(self):
        program = BUILD / "tests/cli/two_waits"
        self.call("run", "--driver", "sim", "-o", "one", "--", program, "1")
        self.call("run", "--driver", "sim", "-o", "two", "--", program, "2")
        self.call("baseline", "--baseline", "one.json", "one")
        self.call("baseline", "--baseline", "two.json", "two")
        code = lambda trace, baseline: self.call("check", "--baseline", baseline, trace)
        self.assertEqual(code("one", "one.json").returncode, 0)
        self.assertEqual(code("two", "two.json").returncode, 0)
        self.assertEqual(code("one", "two.json").returncode, 0)
        more = code("two", "one.json")
        self.assertEqual(more.returncode, 1, more.stdout)
        self.assertIn("1 error, 0 warnings, 1 suppressed", self.last_line(more.stdout))
        self.assertIn("any of them may be the new one", more.stdout)

    def test_what_is_gone_is_said(self):
        self.call("baseline", "--baseline", "known.json", "t")
        done = self.call("check", "--baseline", "known.json", "t")
        self.assertNotIn("not found this time", done.stdout)
        self.call("run", "--driver", "sim", "-o", "clean", "--", BUILD / "examples/cs101_host_sync_fixed")
        done = self.call("check", "--baseline", "known.json", "clean")
        self.assertEqual(done.returncode, 0)
        self.assertIn("note: 1 of 1 findings of the baseline known.json were not found this time", done.stdout)

    def test_the_file(self):
        written = self.call("baseline", "t").stdout
        self.assertEqual(written, self.call("baseline", "t").stdout)
        report = json.loads(written)
        self.assertEqual((report["schema"], len(report["findings"])), (1, 1))
        self.assertEqual(report["findings"][0]["frames"][0], "subject!main")
        self.assertNotRegex(written, r"0x[0-9a-f]{6}|\.cpp:\d")  # neither addresses nor lines
        # Written over an older one, the known findings stay in.
        (self.folder / "known.json").write_text(written)
        self.call("baseline", "--baseline", "known.json", "t")
        self.assertEqual((self.folder / "known.json").read_text(), written)

    def test_mistakes(self):
        for text, message in (("", "is no baseline"), ("{}", "is no baseline"), ('{"schema": 9, "findings": []}', "reads baselines of schema 1"),
                              ('{"schema": 1, "findings": [{}]}', "is no baseline")):
            (self.folder / "b.json").write_text(text)
            done = self.call("check", "--baseline", "b.json", "t")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(message, done.stderr)
        self.assertIn("capturesan baseline TRACE", self.call("check", "--baseline", "no.json", "t").stderr)
        self.assertEqual(self.call("baseline").returncode, 2)
        self.assertEqual(self.call("baseline", "no-trace").returncode, 2)
        self.assertEqual(self.call("baseline", "--baseline", "no/such/folder/b", "t").returncode, 5)


class Suppressions(CommandTest):
    command = REAL

    def setUp(self):
        super().setUp()
        self.assertEqual(self.call("run", "--driver", "sim", "-o", "t", "--", PROGRAMS["plain"]).returncode, 1)

    def check(self, text, *options):
        (self.folder / "s.yaml").write_text(text)
        return self.call("check", "--suppress", "s.yaml", *options, "t")

    def test_it_suppresses_and_is_counted(self):
        done = self.check(SUPPRESS.format(frame="subj*!main", expires="2999-12-31"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("0 errors, 0 warnings, 1 suppressed, clean", self.last_line(done.stdout))
        self.assertNotIn("unused-suppression", done.stdout)
        found = json.loads(self.check(SUPPRESS.format(frame="*!main", expires="2999-12-31"), "--report", "json").stdout)["findings"]
        self.assertEqual(found[0]["suppressed_by"], "a probe that is thrown away")

    def test_an_expired_one_does_not(self):
        done = self.check(SUPPRESS.format(frame="*!main", expires="2020-01-31"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("note: the suppression of CS101 by cuStreamSynch* in *!main expired on 2020-01-31 (a probe that is thrown away), "
                      "line 3 of the suppression file", done.stdout)
        self.assertIn("1 error, 0 warnings, 1 note, 0 suppressed", self.last_line(done.stdout))

    def test_an_unused_one_is_a_note(self):
        done = self.check(SUPPRESS.format(frame="other!*", expires="2999-12-31"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("== CS903 unused-suppression", done.stdout)
        self.assertIn("the suppression of CS101 by cuStreamSynch* in other!* matched nothing", done.stdout)
        done = self.check("schema: 1\nsuppressions:\n  - {rule: CS999, reason: x}\n", "--fail-on", "note")
        self.assertIn("is for a rule that is not loaded", done.stdout)

    def test_nothing_is_called_unused_in_an_incomplete_trace(self):
        file = next((self.folder / "t").glob("*.cstrace"))
        file.write_bytes(file.read_bytes()[:4096 + 2048])  # the header and part of a chunk
        done = self.check(SUPPRESS.format(frame="other!*", expires="2999-12-31"))
        self.assertIn("incomplete", self.last_line(done.stdout))
        self.assertNotIn("unused-suppression", done.stdout)

    def test_all_frames_must_match(self):
        both = SUPPRESS.replace("frame: '{frame}'", "frame: ['*!main', '{frame}']")
        self.assertEqual(self.check(both.format(frame="libc*!*", expires="2999-12-31")).returncode, 0)
        self.assertEqual(self.check(both.format(frame="libfoo*!*", expires="2999-12-31")).returncode, 1)

    def test_mistakes_in_the_file(self):
        for text, place, message in (
                ("[]", "1:1", "a suppression file is a map"),
                ("suppressions: []", "1:1", "schema: 1"),
                ("schema: 2\nsuppressions: []", "1:9", "schema: 1"),
                ("schema: 1\nsuppress: []", "2:1", "unknown key 'suppress'"),
                ("schema: 1\nsuppressions:\n  - {rule: CS101}\n", "3:5", "needs `reason`"),
                ("schema: 1\nsuppressions:\n  - {reason: x}\n", "3:5", "needs `rule`"),
                ("schema: 1\nsuppressions:\n  - {rule: CS101, reason: ''}\n", "3:27", "`reason` must be a text"),
                ("schema: 1\nsuppressions:\n  - {rule: CS101, reason: x, frme: 'a!b'}\n", "3:30", "did you mean 'frame'?"),
                ("schema: 1\nsuppressions:\n  - {rule: CS101, reason: x, frame: main}\n", "3:37", "a glob on module!symbol"),
                ("schema: 1\nsuppressions:\n  - {rule: CS101, reason: x, expires: 2027-02-29}\n", "3:39", "'2027-02-29' is no date"),
                ("schema: 1\nsuppressions:\n  - {rule: &a CS101, reason: *a}\n", "3:", "s.yaml:")):
            done = self.check(text)
            self.assertEqual((done.returncode, done.stdout), (2, ""), text)
            self.assertIn(f"s.yaml:{place}", done.stderr, text)
            self.assertIn(message, done.stderr, text)
        self.assertEqual(self.call("check", "--suppress", "no.yaml", "t").returncode, 2)


if __name__ == "__main__":
    unittest.main()
