#!/usr/bin/env python3
"""The checker must be able to fail: a report that differs in one thing from what a program announces is caught."""
import copy
import sys
import unittest

import check_examples as check

TEXT = "// EXPECT: CS101 cuStreamSynchronize\n// EXPECT-NOT: CS105\n// CAPTURES: 1\n// REPLAYS: 0\n// EVENTS: 8\n"
CLEAN = "// EXPECT: none\n// REPLAYS: 3\n// EVENTS: 8\n"
FINDING = {"rule": "CS101", "api": "cuStreamSynchronize", "severity": "error", "suppressed": False, "message": "m",
           "stack": [{"file": "/any/where/x.cpp"}]}
REPORT = {"findings": [FINDING], "captures": [{}], "child_exit": 0, "driver": {"kind": "simulated"},
          "summary": {"replays": 0, "events": 9, "dropped": 0, "complete": True}}


def judge(change=None, text=TEXT, exit_code=1):
    report = copy.deepcopy(REPORT)
    if change:
        change(report)
    return check.differences(check.expectations(text), report, exit_code, "sim", "x.cpp")


class Checker(unittest.TestCase):
    def test_accepts_what_was_announced(self):
        self.assertEqual(judge(), [])

    def test_catches_each_difference(self):
        def put(key, value):
            return lambda report: report["summary"].__setitem__(key, value)
        changes = {
            "finding missing": lambda r: r["findings"].clear(),
            "finding about another call": lambda r: r["findings"][0].update(api="cuEventQuery"),
            "second finding": lambda r: r["findings"].append({**FINDING, "rule": "CS105"}),
            "stack elsewhere": lambda r: r["findings"][0].update(stack=[]),
            "suppressed": lambda r: r["findings"][0].update(suppressed=True),
            "no capture": lambda r: r["captures"].clear(),
            "one capture too many": lambda r: r["captures"].append({}),
            "replays": put("replays", 1),
            "shim not loaded": put("events", 0),
            "dropped": put("dropped", 1),
            "incomplete": put("complete", False),
            "other driver": lambda r: r["driver"].update(kind="real"),
            "program failed": lambda r: r.update(child_exit=3),
        }
        for name, change in changes.items():
            with self.subTest(name):
                self.assertNotEqual(judge(change), [])

    def test_exit_code_follows_the_findings(self):
        self.assertNotEqual(judge(exit_code=0), [])

    def test_clean_program_with_a_finding(self):
        self.assertTrue(any("not announced" in line for line in judge(text=CLEAN)))

    def test_announced_loss_must_happen(self):
        lost = {**FINDING, "rule": "CS901", "api": "", "severity": "warning"}
        text = TEXT.replace("CS101 cuStreamSynchronize", "CS901")
        summary = REPORT["summary"]
        right = {**REPORT, "findings": [lost], "summary": {**summary, "dropped": 7, "complete": False}}
        wanted = check.expectations(text)
        self.assertEqual(check.differences(wanted, right, 0, "sim", "x.cpp"), [])
        for change in ({"dropped": 0}, {"complete": True}):
            wrong = {**right, "summary": {**right["summary"], **change}}
            self.assertNotEqual(check.differences(wanted, wrong, 0, "sim", "x.cpp"), [])

    def test_blame_without_a_refusal(self):
        self.assertEqual(len(check.wrongly_blamed(check.expectations(TEXT), REPORT)), 1)
        wanted = check.expectations(TEXT)
        self.assertEqual(check.wrongly_blamed(wanted, {**REPORT, "findings": [{**FINDING, "rule": "CS201"}]}), [])
        self.assertEqual(len(check.wrongly_blamed(wanted, {"findings": [], "captures": []})), 1)
        built = {**wanted, "captures": 0}
        self.assertEqual(check.wrongly_blamed(built, {"findings": [], "captures": []}), [])

    def test_refuses_unusable_comments(self):
        for text in ("", "// EXPECT: none\n", CLEAN + TEXT, TEXT.replace("CS101", "SYNC"), TEXT.replace("REPLAYS: 0", "R: 0")):
            with self.subTest(text), self.assertRaises(ValueError):
                check.expectations(text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
