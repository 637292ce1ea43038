#!/usr/bin/env python3
"""`capturesan rules` as people use it.

usage: check_command.py CAPTURESAN
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

COMMAND = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None

MINE = """schema: 1
rules:
  - id: MY101
    name: mine
    events: [sync]
    when: 'event.result == 700'
    severity: warning
    message: '{event.api} answered {event.result}'
    remediation: 'r'
    tests:
      - name: a wait that fails
        given: [{call: cuStreamSynchronize, stream: s1, result: 700}]
        expect: {findings: 1, at: 1, severity: warning}
      - name: a wait that succeeds
        given: [{call: cuStreamSynchronize, stream: s1}]
        expect: none
"""


class Rules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="capturesan-rules-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def rules(self, *words, **environment):
        env = {**{k: v for k, v in os.environ.items() if not k.startswith("CAPTURESAN")}, **environment}
        return subprocess.run([COMMAND, "rules", *words], cwd=self.folder, env=env, capture_output=True, text=True, timeout=60)

    def write(self, text, name="mine.yaml"):
        (self.folder / name).write_text(text)

    # ---- lint ----

    def test_shipped_rules_have_no_problem(self):
        done = self.rules("lint")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^[1-9]\d* rules: no problem\n$")

    def test_a_file_counts_its_own_rules(self):
        self.write(MINE)
        done = self.rules("lint", "mine.yaml")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "1 rule: no problem\n", ""))

    def test_all_problems_of_all_files(self):
        self.write(MINE.replace("severity: warning\n", "severity: warn\n"), "a.yaml")
        self.write(MINE.replace("MY101", "MY102").replace("event.result ==", "event.reslt =="), "b.yaml")
        done = self.rules("lint", "a.yaml", "b.yaml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("a.yaml:7:15: error[CGE014]: 'warn' is no severity", done.stdout)
        self.assertIn("b.yaml:6:12: error[CGE012]: unknown field 'event.reslt'", done.stdout)
        self.assertTrue(done.stdout.endswith("2 errors, 0 warnings\n"), done.stdout)

    def test_an_id_in_two_files_names_the_other_place(self):
        self.write(MINE, "a.yaml")
        self.write("# a comment\n" + MINE, "b.yaml")
        done = self.rules("lint", "a.yaml", "b.yaml")
        self.assertIn("b.yaml:4:9: error[CGE031]: rule id 'MY101' occurs twice", done.stdout)
        self.assertIn("the other one is at a.yaml:3:9", done.stdout)

    def test_an_override_of_a_shipped_rule(self):
        self.write("schema: 1\noverrides:\n  - {rule: CS101, severity: warning, and_when: 'thread.name != \"warm\"'}\n")
        self.assertEqual(self.rules("lint", "mine.yaml").returncode, 0)
        shown = self.rules("show", "CS101", "--rules", "mine.yaml").stdout
        self.assertIn("host-sync-in-capture: warning", shown)
        self.assertIn("($unsupported) and (thread.name != \"warm\")", shown)

    def test_a_shipped_file_by_another_name(self):
        shipped = next(pathlib.Path(COMMAND).parents[1].glob("share/capturesan/rules/capture.yaml")).resolve()
        done = self.rules("lint", str(shipped))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotRegex(done.stdout, "^0 rules")

    # ---- test ----

    def test_expected_and_found(self):
        self.write(MINE.replace("severity: warning}", "severity: error}"))
        done = self.rules("test", "mine.yaml")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertEqual(done.stdout.splitlines(), [
            "mine.yaml:11:9: MY101 'a wait that fails'",
            "  expected: findings '1', at '1', severity 'error'",
            "  found:    1 finding, first at event 1: likely warning 'cuStreamSynchronize answered CUDA_ERROR_ILLEGAL_ADDRESS (700)', "
            "severity warning",
            "1 passed, 1 failed, 0 expected to fail"])

    def test_a_wrong_file_is_not_tested(self):
        self.write(MINE.replace("call: cuStreamSynchronize, stream: s1}", "call: cuStreamSynchronise}"))
        done = self.rules("test", "mine.yaml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("mine.yaml:15:24: error[CGE033]: there is no call 'cuStreamSynchronise'", done.stdout)
        self.assertIn("no test was run", done.stdout)
        self.assertNotIn("passed", done.stdout)

    def test_a_test_that_was_announced_to_fail(self):
        self.write(MINE.replace("name: a wait that succeeds", "name: a wait that succeeds\n        todo: true"))
        done = self.rules("test", "mine.yaml")
        self.assertEqual(done.returncode, 1)
        self.assertIn("was expected to fail and does not", done.stdout)
        self.write(MINE.replace("expect: none", "expect: {findings: 1}\n        todo: true"))
        done = self.rules("test", "mine.yaml")
        self.assertEqual((done.returncode, done.stdout), (0, "1 passed, 0 failed, 1 expected to fail\n"))

    def test_one_rule(self):
        one = self.rules("test", "cs101")
        self.assertEqual(one.returncode, 0)
        self.assertLess(int(one.stdout.split()[0]), int(self.rules("test").stdout.split()[0]))
        self.assertIn("did you mean CS101?", self.rules("test", "cs10l").stderr)
        self.assertEqual(self.rules("test", "cs10l").returncode, 2)

    # ---- show, list, fields ----

    def test_show_has_the_macros(self):
        for typed in ("CS105", "cs105", "unsafe-call-in-capture"):
            done = self.rules("show", typed)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"(?m)^    \$unsupported +event\.result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED and ")
            self.assertRegex(done.stdout, r"(?m)^    \$dropped +capture\.status == active")  # by $unsupported
            self.assertRegex(done.stdout, r"(?m)^    \$waits +\[sync, query\]$")

    def test_fields(self):
        lines = self.rules("fields").stdout
        self.assertRegex(lines, r"(?m)^event\.result +result +what the call answered")
        self.assertRegex(lines, r"(?m)^graph\.replay .*may be absent$")
        self.assertRegex(lines, r"(?m)^thread\.mode .*\(global thread_local relaxed\)$")
        listed = json.loads(self.rules("fields", "--json").stdout)
        self.assertEqual([f["name"] for f in listed], [line.split()[0] for line in lines.splitlines()])
        self.assertEqual({f["name"].split(".")[0] for f in json.loads(self.rules("fields", "mem", "--json").stdout)}, {"mem"})
        self.assertIn("did you mean", self.rules("fields", "event.rslt").stderr)

    # ---- new ----

    def test_a_new_rule_is_sound_and_its_test_is_red(self):
        done = self.rules("new", "MY101", "wait-after-free")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.write(done.stdout)
        self.assertEqual(self.rules("lint", "mine.yaml").stdout, "1 rule: no problem\n")
        tested = self.rules("test", "mine.yaml")
        self.assertEqual(tested.returncode, 1)
        self.assertIn("1 passed, 1 failed", tested.stdout)
        # One edit turns it green.
        self.write(done.stdout.replace("CUDA_ERROR_UNKNOWN", "CUDA_ERROR_ILLEGAL_ADDRESS"))
        self.assertEqual(self.rules("test", "mine.yaml").returncode, 0)

    def test_the_schema_it_names_is_there(self):
        named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", self.rules("new", "MY101", "x").stdout)
        self.assertTrue(named)
        self.assertEqual(pathlib.Path(named[1]).read_text(), self.rules("schema").stdout)

    def test_bad_names(self):
        for words, said in ((["new", "MY1", "x"], "'MY1' is no rule id"), (["new", "my101", "x"], "'my101' is no rule id"),
                            (["new", "MY101", "a b"], "is no rule name"), (["new", "MY101"], "new needs an id and a name"),
                            (["new", "MY101", "x", "y"], "unexpected argument 'y'"), (["lnt"], "did you mean lint?"),
                            (["show", "cs1O1"], "did you mean CS101?"), (["list", "x"], "unexpected argument 'x'")):
            done = self.rules(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(said, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
