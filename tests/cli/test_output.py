"""Where answers go: reports into files, and an answer that cannot be written is an error."""
import json
import os
import pathlib
import subprocess
import unittest

from support import BUILD, CHILD, CLEAN, ERROR, REAL, CommandTest, clean_environment


class Unwritable(CommandTest):
    """/dev/full takes nothing. 5 is the exit code of whatever cannot finish its work."""
    command = REAL

    def into_full(self, *words, stream="stdout"):
        with open("/dev/full", "wb") as full:
            return subprocess.run([self.command, *words], cwd=self.folder, env=clean_environment(), stdin=subprocess.DEVNULL,
                                  stdout=full if stream == "stdout" else subprocess.PIPE,
                                  stderr=full if stream == "stderr" else subprocess.PIPE, timeout=60, check=False)

    def test_every_command(self):
        done = self.call("run", "--driver", "sim", "-o", "t", "--", BUILD / "examples/cs101_host_sync")
        self.assertEqual(done.returncode, 1, done.stderr)
        names = [line.split()[0] for line in self.call("--help").stdout.splitlines() if line.startswith("  ")][:-1]
        words_of = {"run": None, "check": ["t"], "report": ["t"], "dump": ["t"], "env": ["--driver", "sim"], "rules": ["list"],
                    "baseline": ["t"], "doctor": ["--driver", "sim"], "version": []}
        self.assertGreaterEqual(set(words_of) | {"baseline"}, set(names) - {"redact", "diff"}, "a command is missing here")
        for name in names:
            for words in ([name, "--help"], [name, *(words_of.get(name) or [])]):
                if words == ["run"] or (len(words) == 1 and name not in ("version",)):
                    continue
                done = self.into_full(*words)
                self.assertEqual(done.returncode, 5, (words, done.stderr))
                self.assertIn(b"standard output cannot be written: No space left on device", done.stderr, words)
        for words in (["--help"], ["--version"], ["rules", "show", "CS101"], ["rules", "test"], ["dump", "--format", "json", "t"],
                      ["check", "--report", "sarif", "t"], ["check", "--report", "sarif=/dev/full", "t"]):
            self.assertEqual(self.into_full(*words).returncode, 5, words)

    def test_the_report_of_run(self):
        self.assertEqual(self.into_full("run", "--driver", "sim", "--", BUILD / "examples/cs101_host_sync", stream="stderr").returncode, 5)

    def test_the_programs_own_stdout_is_its_own_affair(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([self.command, "run", "--driver", "sim", "--allow-empty", "--", "sh", "-c", "echo x; exit 7"], cwd=self.folder,
                                  env=clean_environment(), stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(done.returncode, 7)

    def test_a_reader_that_leaves_early(self):
        self.call("run", "--driver", "sim", "-o", "t", "--", BUILD / "examples/cs101_host_sync")
        done = self.call("-c", f"{self.command} dump t | head -1; exit ${{PIPESTATUS[0]}}", command="bash")
        self.assertEqual(len(done.stdout.splitlines()), 1)
        self.assertNotIn("cannot be written", done.stderr)


class Truncated(CommandTest):
    """A trace that somebody cuts while `run` reads it: what was read counts, the rest is a gap, never a clean run."""
    command = REAL

    def test_while_it_is_read(self):
        for size in (0, 100, 4096, 4100):  # nothing, half a header, a header, a header and a little
            for wait in (0, 0.5):  # before and after `run` has read it
                script = (f"{BUILD}/examples/cs101_host_sync >/dev/null; sleep {wait}; truncate -s {size} $CAPTURESAN_OUTPUT/*.cstrace; "
                          "sleep 0.5")
                done = self.call("run", "--driver", "sim", "--", "sh", "-c", script)
                self.assertIn(done.returncode, (1, 4), (size, wait, done.stderr))
                self.assertIn(", incomplete; ", self.last_line(done.stderr), (size, wait))


class Files(CommandTest):
    def trace(self):
        (self.folder / "t").mkdir()
        (self.folder / "t/one.fake").write_text(json.dumps(ERROR))

    def test_two_reports_in_one_file(self):
        self.trace()
        (self.folder / "sub").mkdir()
        os.symlink("a", self.folder / "link")
        for one, two in (("a", "a"), ("a", "./a"), ("a", "sub/../a"), ("a", "link")):
            done = self.call("check", "--report", f"json={one}", "--report", f"sarif={two}", "t")
            self.assertEqual((done.returncode, done.stdout), (2, ""), (one, two))
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn("two reports would be written to", done.stderr)
        self.assertIn("--report json is given twice", self.call("run", "--report", "json", "--report", "json", "--", CHILD).stderr)
        self.assertEqual(self.call("check", "--report", "json=/dev/null", "--report", "sarif=/dev/null", "t").returncode, 1)

    def test_a_refused_run_leaves_no_file(self):
        (self.folder / "bad.yaml").write_text("rules: 7\n")
        (self.folder / "old").write_text("before")
        done = self.call("run", "--report", "json=new", "--report", "sarif=old", "--rules", "bad.yaml", "--", CHILD, command=REAL)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["bad.yaml", "old"])
        self.assertEqual((self.folder / "old").read_text(), "before")

    def test_a_report_is_replaced_as_a_whole(self):
        self.trace()
        (self.folder / "old").write_text("before " * 100000)
        (self.folder / "old").chmod(0o640)
        os.symlink("old", self.folder / "link")
        with open(self.folder / "old", encoding="utf-8") as reader:
            self.assertEqual(self.call("check", "--report", "json=link", "t").returncode, 1)
            self.assertEqual(reader.read(), "before " * 100000, "a reader of the old file keeps it")
        json.loads((self.folder / "old").read_text())
        self.assertTrue((self.folder / "link").is_symlink())
        self.assertEqual((self.folder / "old").stat().st_mode & 0o777, 0o640)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["link", "old", "t"])

    def test_a_full_disk_leaves_the_old_report(self):
        self.trace()
        (self.folder / "old").write_text("before")
        done = self.call("-c", f"ulimit -f 0; trap '' XFSZ; {self.command} check --report json=old t", command="bash")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("old could not be written: File too large", done.stderr)
        self.assertEqual((self.folder / "old").read_text(), "before")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["old", "t"])

    def test_a_pipe(self):
        self.trace()
        os.mkfifo(self.folder / "pipe")
        done = self.call("-c", f"{self.command} check --report json=pipe t & cat pipe; wait $!", command="bash")
        self.assertEqual(done.returncode, 1, done.stderr)
        json.loads(done.stdout)
        done = self.call("check", "--report", "json=pipe", "t")  # and nobody reads it
        self.assertEqual(done.returncode, 5)
        self.assertIn("pipe could not be written", done.stderr)

    def test_every_format_at_once(self):
        self.trace()
        formats = ("text", "json", "sarif", "junit", "github", "gitlab", "dot")
        done = self.call("check", *(word for f in formats for word in ("--report", f"{f}={f}.out")), "t")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        for name in formats:
            self.assertEqual((self.folder / f"{name}.out").read_text(), self.call("check", "--report", name, "t").stdout, name)

    def test_run_says_where_a_report_went(self):
        done = self.run_finding(ERROR, options=["-o", "t", "--report", "sarif", "--report", "junit"])
        self.assertIn("capturesan: sarif report in t/report.sarif\n", done.stderr)
        self.assertIn("capturesan: junit report in t/junit.xml\n", done.stderr)
        json.loads((self.folder / "t/report.sarif").read_text())

    def test_github(self):
        page = self.folder / "page.md"
        page.write_text("before\n")
        environment = {"GITHUB_STEP_SUMMARY": str(page)}
        done = self.run_finding(ERROR, options=["--report", "github"], environment=environment)
        self.assertIn("::error title=CS101 a-mistake::a wait\n", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertTrue(page.read_text().startswith("before\n### CaptureSan\n"), "other steps write there too")
        self.assertIn("| error | CS101 | ", page.read_text())
        # Only on request, and never silently incomplete.
        page.write_text("")
        self.run_finding(ERROR, environment=environment)
        self.assertEqual(page.read_text(), "")
        self.assertEqual(self.run_finding(CLEAN, options=["--report", "github"], environment={"GITHUB_STEP_SUMMARY": "/no/such"}).returncode, 5)

    def test_a_step_summary_is_not_written_by_other_formats(self):
        page = self.folder / "page.md"
        self.trace()
        self.call("check", "--report", "json", "t", environment={"GITHUB_STEP_SUMMARY": str(page)})
        self.assertFalse(page.exists())


class Pipes(CommandTest):
    """What is read is a regular file; nothing waits for the other end of a pipe."""
    command = REAL

    def test_nothing_hangs(self):
        for name in ("pipe", "capturesan.yaml"):
            os.mkfifo(self.folder / name)
            words = ["check", "pipe"] if name == "pipe" else ["check", "t"]
            done = self.call(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("a regular file", done.stderr)
            pathlib.Path(self.folder / name).unlink()

    def test_a_pipe_inside_a_trace(self):
        (self.folder / "t").mkdir()
        os.mkfifo(self.folder / "t/process-1-1.cstrace")
        for words in (["check", "t"], ["report", "t"], ["dump", "t"]):
            done = self.call(*words)
            self.assertEqual(done.returncode, 2, (words, done.stderr))

    def test_a_pipe_as_session(self):
        self.call("run", "--driver", "sim", "-o", "t", "--", BUILD / "examples/cs101_host_sync")
        (self.folder / "t/session.json").unlink()
        os.mkfifo(self.folder / "t/session.json")
        self.assertEqual(self.call("check", "t").returncode, 1)


if __name__ == "__main__":
    unittest.main()
