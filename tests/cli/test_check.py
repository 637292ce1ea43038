"""`check`, `report`, `env` and `doctor`."""
import json
import os
import subprocess
import unittest

from support import BUILD, CHILD, CLEAN, ERROR, INCOMPLETE, WARNING, CommandTest, clean_environment


class Check(CommandTest):
    def trace(self, what, name="t"):
        (self.folder / name).mkdir()
        (self.folder / name / "one.fake").write_text(json.dumps(what) if isinstance(what, dict) else what)

    def test_exit_codes(self):
        for i, (what, options, code) in enumerate(((CLEAN, [], 0), (ERROR, [], 1), (WARNING, ["--fail-on", "warning"], 1),
                                                   (INCOMPLETE, [], 0), (INCOMPLETE, ["--strict"], 3), ({"events": 0}, [], 4),
                                                   ({"events": 0}, ["--allow-empty"], 0), ("rubbish", [], 2))):
            self.trace(what, f"t{i}")
            for command in ("check", "report"):
                self.assertEqual(self.call(command, *options, f"t{i}").returncode, code, (what, options))

    def test_wrong_traces(self):
        self.trace("rubbish")
        for words in (["no/such"], [], ["t"]):
            done = self.call("check", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_report_on_stdout(self):
        self.trace(ERROR)
        done = self.call("check", "t")
        self.assertEqual(done.stderr, "")
        self.assertIn("== CS101 a-mistake\n", done.stdout)
        self.assertIn("not evaluated: CS202 (needs level full)\n", done.stdout)
        self.last_line(done.stdout)

    def test_json_on_stdout_leaves_the_last_line_to_stderr(self):
        self.trace(ERROR)
        done = self.call("check", "--report", "json", "t")
        report = json.loads(done.stdout)
        self.assertEqual(report["summary"]["last_line"], self.last_line(done.stderr))
        # The fields that design and other tools count on.
        for key in ("schema", "driver", "summary", "exit_reason", "child_exit", "captures", "graphs", "findings"):
            self.assertIn(key, report)
        self.assertEqual(set(report["driver"]), {"kind", "version", "device"})
        for key in ("rule", "name", "severity", "confidence", "message", "remediation", "api", "result", "thread", "capture", "graph",
                    "pointers", "stack", "python", "count", "cascade", "after", "fingerprint", "suppressed"):
            self.assertIn(key, report["findings"][0])
        self.assertEqual(self.call("check", "--report", "json", "--report", "text", "t").returncode, 2)

    def test_the_same_twice(self):
        self.trace(ERROR)
        self.assertEqual(self.call("check", "--report", "json", "t").stdout, self.call("check", "--report", "json", "t").stdout)

    def test_several(self):
        self.trace(ERROR, "a")
        self.trace(WARNING, "b")
        self.assertIn("1 error, 1 warning", self.call("check", "a", "b").stdout)
        self.assertIn("1 error, 1 warning", self.call("check", "--", "a", "b").stdout)


class Env(CommandTest):
    def test_can_be_evaluated(self):
        script = f'eval "$({self.command} env --driver sim -o "it\'s here" 2>/dev/null)"; {CHILD} exit 6; echo $? "$CAPTURESAN_OUTPUT"'
        done = self.call("-c", script, command="sh")
        self.assertEqual(done.stdout, f"6 {self.folder.resolve()}/it's here\n")


    def test_what_nobody_got_leaves_no_folder(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([self.command, "env", "--driver", "sim", "-o", "t"], cwd=self.folder, env=clean_environment(), stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 5)
        self.assertEqual(list(self.folder.iterdir()), [])


class Doctor(CommandTest):
    def doctor(self, *words, **more):
        return self.call("doctor", "--driver", "sim", *words, **more)

    def test_healthy(self):
        done = self.doctor("--", CHILD)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertIn("can be preloaded", done.stdout)

    def test_obstacles(self):
        static = BUILD / "tests/cli/child_static"
        if static.exists():
            done = self.doctor("--", static)
            self.assertEqual(done.returncode, 1)
            self.assertIn("statically linked", done.stdout)
            self.assertIn("-> link it dynamically", done.stdout)
        self.assertIn("command not found", self.doctor("--", "no-such").stdout)
        self.assertIn("CAPTURESAN=off", self.doctor(environment={"CAPTURESAN": "off"}).stdout)
        self.assertIn("LD_PRELOAD is set", self.doctor(environment={"LD_PRELOAD": str(self.command.parents[1] / "lib/libcapturesan.so")}).stdout)
        if not os.path.exists("/dev/nvidiactl"):
            self.assertEqual(self.call("doctor", "--driver", "real").returncode, 1)

    def test_process(self):
        done = self.doctor("--pid", str(os.getpid()))
        self.assertEqual(done.returncode, 1)
        self.assertIn("was started without the shim", done.stdout)
        inside = self.call("run", "--driver", "sim", "--", "sh", "-c", f"{self.command} doctor --pid $$")
        self.assertIn("has the shim", inside.stdout)


if __name__ == "__main__":
    unittest.main()
