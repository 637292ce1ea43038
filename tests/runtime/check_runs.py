#!/usr/bin/env python3
"""`capturesan run` and `capturesan env` with programs of the CUDA runtime where there is no GPU: which runtime they get, what is said
about it, and that the audit sees the same through a shared and a static one."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
COMMAND = BUILD / "bin/capturesan"
PROGRAMS = BUILD / "tests"


class Runs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="capturesan-runtime-")
        self.addCleanup(self.folder.cleanup)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("CAPTURESAN", "LD_"))}
        self.environment = {**kept, "NO_COLOR": "1"}

    def call(self, *words, **more):
        return subprocess.run([str(word) for word in words], cwd=self.folder.name, capture_output=True, text=True, timeout=60,
                              check=False, **{"env": self.environment, **more})

    def audited(self, name):
        done = self.call(COMMAND, "run", "--driver", "sim", "--report", "json=report.json", "--", PROGRAMS / name)
        report = json.loads((pathlib.Path(self.folder.name) / "report.json").read_text())
        return done, report

    def test_shared_and_our_static_runtime(self):
        # basics.cu makes one mistake on purpose: a launch on the legacy stream while a blocking stream is captured.
        for name in ("runtime_basics", "runtime_basics_static"):
            with self.subTest(name):
                done, report = self.audited(name)
                self.assertEqual(done.stdout.splitlines()[-1], "ok", done.stdout)
                self.assertEqual(report["child_exit"], 0)
                self.assertEqual([(f["rule"], f["api"]) for f in report["findings"]], [("CS102", "cuLaunchKernel")])
                self.assertEqual(report["driver"]["kind"], "simulated")
                self.assertEqual((report["summary"]["captures"], report["summary"]["replays"]), (2, 4))
                self.assertNotIn("warning:", done.stderr)

    def test_code_is_loaded_by_the_first_launch_inside_the_capture(self):
        done = self.call(COMMAND, "run", "--driver", "sim", "--keep-trace", "-o", "trace", "--", PROGRAMS / "runtime_first_use")
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = re.findall(r"\bcu(?:StreamBeginCapture|LibraryLoadData|LaunchKernel|StreamEndCapture)",
                           self.call(COMMAND, "dump", "trace").stdout)
        self.assertEqual(calls, ["cuStreamBeginCapture", "cuLibraryLoadData", "cuLaunchKernel", "cuStreamEndCapture"])

    def test_automatic_choice(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is a GPU here")
        done = self.call(COMMAND, "run", "--", PROGRAMS / "runtime_basics")
        self.assertEqual(done.stdout.splitlines()[-1], "ok", done.stdout)
        self.assertIn("no GPU: using the simulated driver", done.stderr.splitlines()[0])
        self.assertIn("driver: simulated", done.stderr.splitlines()[-1])

    def lines_about_the_runtime(self, text):
        return [line for line in text.splitlines() if "NVIDIA's" in line and "runtime" in line]

    def test_nvidias_static_runtime_is_named_once(self):
        for program in (PROGRAMS / "runtime_basics_nvidia", PROGRAMS / "runtime_host_only_nvidia"):
            with self.subTest(program.name):
                done = self.call(COMMAND, "run", "--driver", "sim", "--", program)
                said = self.lines_about_the_runtime(done.stderr)
                self.assertEqual(len(said), 1, done.stderr)
                self.assertIn(f"{program} has NVIDIA's runtime linked in", said[0])
                for cure in ("-cudart shared", f"-cudart static -L{BUILD / 'lib/sim'}", "on a GPU"):
                    self.assertIn(cure, said[0])

    def test_the_driver_itself_says_it_without_the_command(self):
        environment = {**self.environment, "LD_LIBRARY_PATH": str(BUILD / "lib/sim")}
        done = self.call(PROGRAMS / "runtime_basics_nvidia", env=environment)
        said = self.lines_about_the_runtime(done.stderr)
        self.assertEqual(len(said), 1, done.stderr)
        for cure in ("-cudart shared", f"-cudart static -L{BUILD / 'lib/sim'}", "on a GPU"):
            self.assertIn(cure, said[0])

    def test_env(self):
        done = self.call(COMMAND, "env", "--driver", "sim", "-o", "trace")
        self.assertEqual(done.returncode, 0, done.stderr)
        exported = dict(line.removeprefix("export ").split("=", 1) for line in done.stdout.splitlines())
        environment = {**self.environment, **{name: shlex.split(value)[0] for name, value in exported.items()}}
        ran = self.call(PROGRAMS / "runtime_basics", env=environment)
        self.assertEqual(ran.stdout.splitlines()[-1], "ok", ran.stdout)
        checked = self.call(COMMAND, "check", "trace")
        self.assertEqual(checked.returncode, 1, checked.stderr)
        self.assertIn("CS102", checked.stdout)
        self.assertIn("driver: simulated", checked.stdout)


if __name__ == "__main__":
    unittest.main()
