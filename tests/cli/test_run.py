"""`run`: exit codes, streams and the last line. Each rule of the exit order and each stream is a test of its own."""
import json
import os
import pty
import re
import subprocess
import unittest

from support import (CHILD, CLEAN, ERROR, INCOMPLETE, NOTE, SUPPRESSED, SUSPECTED, WARNING, CommandTest,
                     clean_environment)


class ExitCodes(CommandTest):
    """2 usage, 5 internal, 1 findings, 3 incomplete and strict, the child's own, 4 nothing captured, 0."""

    def code(self, what, then="exit 0", *options):
        return self.run_finding(what, then, options).returncode

    def test_clean(self):
        self.assertEqual(self.code(CLEAN), 0)

    def test_finding(self):
        self.assertEqual(self.code(ERROR), 1)

    def test_finding_before_the_childs_own_code(self):
        self.assertEqual(self.code(ERROR, "exit 7"), 1)

    def test_fail_on(self):
        self.assertEqual(self.code(WARNING), 0)
        self.assertEqual(self.code(WARNING, "exit 0", "--fail-on", "warning"), 1)
        self.assertEqual(self.code(NOTE, "exit 0", "--fail-on", "warning"), 0)
        self.assertEqual(self.code(NOTE, "exit 0", "--fail-on", "note"), 1)

    def test_suspected_and_suppressed_never_count(self):
        for options in ([], ["--show", "suspected"]):
            self.assertEqual(self.code(SUSPECTED, "exit 0", "--fail-on", "note", *options), 0)
        self.assertEqual(self.code(SUPPRESSED, "exit 0", "--fail-on", "note"), 0)

    def test_incomplete(self):
        self.assertEqual(self.code(INCOMPLETE), 0)
        self.assertEqual(self.code(INCOMPLETE, "exit 0", "--strict"), 3)
        self.assertEqual(self.code(INCOMPLETE, "exit 7", "--strict"), 3)
        self.assertEqual(self.code({**ERROR, "complete": False}, "exit 0", "--strict"), 1)

    def test_the_childs_own(self):
        self.assertEqual(self.code(CLEAN, "exit 7"), 7)
        self.assertEqual(self.run_child("exit", "7").returncode, 7)  # before 4, nothing captured
        self.assertEqual(self.run_child("exit", "7", options=["--allow-empty"]).returncode, 7)

    def test_killed(self):
        for number in (9, 11, 15):
            self.assertEqual(self.code(CLEAN, f"kill -{number} $$"), 128 + number)

    def test_nothing_captured(self):
        done = self.run_child("exit", "0")
        self.assertEqual(done.returncode, 4)
        self.assertIn("doctor", done.stderr)
        self.assertEqual(self.run_child("exit", "0", options=["--allow-empty"]).returncode, 0)

    def test_unwritable_report_is_internal(self):
        # The folder is there when the run begins and gone when it ends.
        (self.folder / "out").mkdir()
        done = self.run_finding(ERROR, "rm -r out", ["--report", "json=out/a.json"])
        self.assertEqual(done.returncode, 5, done.stderr)
        self.last_line(done.stderr)

    def test_a_folder_that_was_removed_is_not_called_empty(self):
        done = self.run_child("exit", "0", options=["-o", "t"])
        self.assertIn("nothing captured", self.last_line(done.stderr))
        done = self.call("run", "--driver", "sim", "-o", "gone", "--", "rm", "-r", self.folder / "gone")
        self.assertEqual(done.returncode, 4, done.stderr)  # nothing was checked, so it is not green
        self.assertIn("gone was removed while the program ran", done.stderr)
        self.assertIn(", incomplete;", self.last_line(done.stderr))
        self.assertNotIn("doctor", done.stderr)

    def test_a_file_that_is_no_trace(self):
        done = self.run_finding("rubbish", options=["--strict"])
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("not a trace", done.stderr)

    def test_usage(self):
        for words in (["run"], ["run", "--"], ["run", "true"], ["run", "--level", "medium", "--", "true"],
                      ["run", "--wait", "soon", "--", "true"], ["run", "--max-trace", "1 GiB", "--", "true"],
                      ["run", "--report", "jsn", "--", "true"], ["run", "--report", "json=", "--", "true"],
                      ["run", "--report", "json=no/such/folder/a", "--", "true"], ["run", "--level", "lite", "--level", "full", "--", "true"],
                      ["run", "--suppress", "no.yaml", "--", "true"], ["run", "--baseline", "no.json", "--", "true"]):
            done = self.call(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertEqual(done.stdout, "")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_wrong_rule_file_stops_before_the_program_starts(self):
        done = self.run_child("echo", "started", options=["--rules", "wrong.yaml"])
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("wrong.yaml:3:7: error[CGE001]: unknown key 'wehn'\n", done.stderr)
        self.assertIn("^ did you mean when?\n", done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])


class Streams(CommandTest):
    def test_stdout_is_the_programs(self):
        every_byte = bytes(range(1, 256))
        for options in ([], ["--report", "json"], ["--report", "text"]):
            done = subprocess.run([self.command, "run", "--driver", "sim", *options, "--", CHILD, "echo", every_byte],
                                  cwd=self.folder, capture_output=True, check=False)
            self.assertEqual(done.stdout, every_byte)

    def test_stdin_reaches_it(self):
        self.assertEqual(self.run_child("cat", stdin="one\ntwo\n").stdout, "one\ntwo\n")

    def test_arguments_after_the_dashes_are_untouched(self):
        words = ["--strict", "--", "-o", "a b", "", "--help", "*", "$HOME"]
        done = self.call("run", "--driver", "sim", "--", "sh", "-c", 'for w; do echo "<$w>"; done', "sh", *words)
        self.assertEqual(done.stdout, "".join(f"<{w}>\n" for w in words))

    def test_a_clean_run_says_at_most_three_lines(self):
        done = self.run_finding({**CLEAN, "notes": ["one", "two"]})
        self.assertLessEqual(len(done.stderr.splitlines()), 3, done.stderr)
        self.assertIn(", clean; ", self.last_line(done.stderr))

    def test_findings_appear_as_they_happen(self):
        text = json.dumps(ERROR)
        script = 'printf %s "$1" >"$CAPTURESAN_OUTPUT/one.fake"; sleep 2; echo end >&2'
        done = self.call("run", "--driver", "sim", "--", "sh", "-c", script, "sh", text)
        early, late = done.stderr.split("end\n")
        self.assertIn("error: CS101 a-mistake: a wait", early)
        self.assertIn("== CS101 a-mistake", late)

    def test_suspected_only_on_request(self):
        self.assertNotIn("perhaps", self.run_finding(SUSPECTED).stderr)
        shown = self.run_finding(SUSPECTED, options=["--show", "suspected"])
        self.assertIn("perhaps", shown.stderr)
        self.assertIn("0 errors, 0 warnings, 1 suspected, 0 suppressed", self.last_line(shown.stderr))

    def test_reports_go_to_files(self):
        done = self.run_finding(ERROR, options=["-o", "t", "--report", "json=a.json", "--report", "text=a.txt", "--report", "json"])
        report = json.loads((self.folder / "a.json").read_text())
        self.assertEqual(report, json.loads((self.folder / "t/report.json").read_text()))
        self.assertEqual((report["exit_reason"], report["child_exit"]), ("findings", 0))
        self.assertEqual(report["summary"]["last_line"], self.last_line(done.stderr))
        self.assertTrue((self.folder / "a.txt").read_text().endswith(self.last_line(done.stderr) + "\n"))
        self.assertEqual(done.stdout, "")

    def test_control_characters_of_a_trace_do_not_reach_the_terminal(self):
        what = {"events": 1, "findings": [{"message": "a\x1b[2Jb\x07\u009bc"}]}
        done = self.run_finding(what)
        self.assertNotRegex(done.stderr, "[\x00-\x09\x0b-\x1f\x7f\x9b]")
        self.assertIn("a\\x1b[2Jb\\x07\\x9bc", done.stderr)

    def test_file_size_limit_changes_nothing_for_the_program(self):
        # 64 blocks of 1024 bytes, as `ulimit -f 64`; the report would be larger.
        many = {"events": 1, "findings": [{"message": "m" * 200 + str(i)} for i in range(400)]}
        script = f'ulimit -f 64; exec "$@"'
        (self.folder / "many").write_text(json.dumps(many))
        done = subprocess.run(["sh", "-c", script, "sh", self.command, "run", "--driver", "sim", "--report", "json", "--",
                               CHILD, "echo", "text", "exit", "7"], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (7, "text"))
        plain = subprocess.run(["sh", "-c", script, "sh", CHILD, "kill", "25"], check=False)
        watched = subprocess.run(["sh", "-c", script, "sh", self.command, "run", "--driver", "sim", "--", CHILD, "kill", "25"],
                                 cwd=self.folder, capture_output=True, check=False)
        self.assertEqual(plain.returncode, -25)  # SIGXFSZ is still deadly for the program
        self.assertEqual(watched.returncode, 128 + 25)
        shrunk = subprocess.run(["sh", "-c", script, "sh", self.command, "run", "--driver", "sim", "--report", "json=big.json",
                                 "--", "sh", "-c", 'ln -s "$PWD/many" "$CAPTURESAN_OUTPUT/one.fake"'],
                                cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(shrunk.returncode, 5)
        self.last_line(shrunk.stderr)


class LastLine(CommandTest):
    def test_form(self):
        what = {"events": 1234567, "captures": 41, "replays": 9031,
                "findings": [{"rule": "CS101", "message": "1"}, {"rule": "CS101", "message": "2"}, {"severity": "warning"},
                             *({"message": str(i), "suppressed": True} for i in range(3))]}
        # The example of the design, but for the number of rules.
        self.assertEqual(self.last_line(self.run_finding(what).stderr),
                         "capturesan: 2 errors, 1 warning, 3 suppressed; 2 rules (1 not evaluated); 41 captures, 9,031 "
                         "replays, 1.2 M events, 0 dropped; driver 580.159.04 (H200)")

    def test_simulated(self):
        self.assertTrue(self.last_line(self.run_finding({**CLEAN, "driver": "simulated"}).stderr).endswith("driver: simulated"))
        self.assertTrue(self.last_line(self.run_child("exit", "0").stderr).endswith("driver: simulated"))

    def test_incomplete_is_never_clean(self):
        for what in (INCOMPLETE, {**ERROR, "complete": False}):
            line = self.last_line(self.run_finding(what).stderr)
            self.assertIn(", incomplete; ", line)
            self.assertNotIn("clean", line)

    def test_after_a_crash(self):
        done = self.run_child("kill", "11")
        self.last_line(done.stderr)
        self.assertIn("signal 11", done.stderr)

    def on_terminal(self, **environment):
        terminal, other = pty.openpty()
        (self.folder / "finding").write_text(json.dumps(ERROR))
        subprocess.run([self.command, "run", "--driver", "sim", "--", "sh", "-c", 'cp finding "$CAPTURESAN_OUTPUT/one.fake"'],
                       cwd=self.folder, env={**clean_environment(), "TERM": "xterm", **environment}, stderr=other, check=False)
        os.close(other)
        text = b""
        while True:
            try:
                got = os.read(terminal, 4096)
            except OSError:
                break
            if not got:
                break
            text += got
        os.close(terminal)
        self.assertIn(b"CS101", text)
        return text

    def test_colours_on_a_terminal_only(self):
        self.assertNotIn("\x1b", self.run_finding(ERROR).stderr)
        self.assertIn(b"\x1b[1;31merror\x1b[0m", self.on_terminal())
        self.assertIn(b"\x1b", self.on_terminal(NO_COLOR=""))  # no-color.org: only if it is not empty
        self.assertNotIn(b"\x1b", self.on_terminal(NO_COLOR="1"))
        self.assertNotIn(b"\x1b", self.on_terminal(TERM="dumb"))

    def test_a_closed_stderr_does_no_harm(self):
        done = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", self.command, "run", "--driver", "sim", "--", CHILD, "exit", "7"],
                              cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 7)


class Trace(CommandTest):
    def test_default_folder_and_session(self):
        done = self.run_child("exit", "3", options=["--level", "full"])
        name = re.search(r"trace in (\S+)", done.stderr)[1]
        session = json.loads((self.folder / name / "session.json").read_text())
        self.assertEqual(session["command"], [str(CHILD), "exit", "3"])
        self.assertEqual((session["child_exit"], session["driver"], session["options"]["level"]), (3, "sim", "full"))
        self.assertEqual((self.folder / name).stat().st_mode & 0o777, 0o700)

    def test_a_folder_in_use_is_refused(self):
        self.assertEqual(self.run_child("exit", "3", options=["-o", "t"]).returncode, 3)
        done = self.run_child("echo", "started", options=["-o", "t"])
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("t holds a trace already", done.stderr)

    def test_falls_back_from_a_folder_that_cannot_be_written(self):
        other = self.folder / "tmp"
        other.mkdir()
        here = "/proc"  # not writable even for root
        script = f'cd {here} && exec "$@"'
        done = subprocess.run(["sh", "-c", script, "sh", self.command, "run", "--driver", "sim", "--", CHILD, "exit", "3"],
                              env={"TMPDIR": str(other), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(len(list(other.iterdir())), 1)

    def test_environment_of_the_program(self):
        script = ('echo "$LD_PRELOAD|$LD_LIBRARY_PATH|$CAPTURESAN_OUTPUT|$CAPTURESAN_LEVEL|$CAPTURESAN_CUPTI|'
                  '$CAPTURESAN_CHILDREN|$CAPTURESAN_MAX_TRACE|${CAPTURESAN_SESSION:+set}|$OWN"')
        done = self.call("run", "--driver", "sim", "-o", "t", "--max-trace", "2MiB", "--children", "none", "--", "sh", "-c", script,
                         environment={"OWN": "kept", "LD_LIBRARY_PATH": "/own", "CAPTURESAN_LEVEL": "full"})
        lib = self.command.resolve().parents[1] / "lib"
        self.assertEqual(done.stdout.strip(), f"{lib}/libcapturesan.so|{lib}/sim:/own|{self.folder.resolve()}/t|full|off|none|2097152|set|kept")

    def test_own_preloads_are_kept(self):
        lib = self.command.resolve().parents[1] / "lib"
        own = f"{lib}/sim/libcuda.so.1"
        done = self.call("run", "--driver", "sim", "--", "sh", "-c", "echo $LD_PRELOAD", environment={"LD_PRELOAD": own})
        self.assertEqual(done.stdout.strip(), f"{lib}/libcapturesan.so:{own}")


if __name__ == "__main__":
    unittest.main()
