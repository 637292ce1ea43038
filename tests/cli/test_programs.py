"""Programs that cannot be started or cannot be watched, and processes that escape: said once, and nothing is changed."""
import os
import re
import shutil
import stat
import subprocess
import unittest

from support import BUILD, CHILD, CLEAN, FAKE, CommandTest

STATIC = BUILD / "tests/cli/child_static"
ASAN = BUILD / "tests/cli/child_asan"
DRIVER = FAKE.parents[1] / "lib/sim/libcuda.so.1"


class Programs(CommandTest):
    def refused(self, program, message):
        done = self.call("run", "--driver", "sim", "--", program)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(list(self.folder.glob("capturesan-*")), [], "a trace folder was left")

    def test_missing(self):
        self.refused("no-such-command", "no-such-command: command not found")
        self.refused("./no/such/file", "./no/such/file: No such file or directory")

    def test_not_executable(self):
        (self.folder / "data").write_text("text")
        self.refused("./data", "Permission denied")
        self.refused("./", "not a program")

    def test_script_without_interpreter(self):
        script = self.folder / "script"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        done = self.call("run", "--driver", "sim", "--", "./script")
        self.assertEqual(done.returncode, 2)
        self.assertIn("./script: No such file or directory", done.stderr)

    def test_script(self):
        script = self.folder / "script"
        script.write_text("#!/bin/sh\necho \"$1\"; exit 6\n")
        script.chmod(0o755)
        done = self.call("run", "--driver", "sim", "--", "./script", "a b")
        self.assertEqual((done.returncode, done.stdout), (6, "a b\n"))

    def warned(self, program, message, *words):
        done = self.call("run", "--driver", "sim", "--", program, *words)
        self.assertIn(message, done.stderr)
        self.assertEqual(len(re.findall("warning:", done.stderr)), 1, done.stderr)
        return done

    def test_static(self):
        if not STATIC.exists():
            self.skipTest("no static C library here")
        done = self.warned(STATIC, "is statically linked, so LD_PRELOAD does not reach it", "echo", "text", "exit", "0")
        self.assertEqual((done.returncode, done.stdout), (4, "text"))
        self.assertEqual(self.warned(STATIC, "statically linked", "exit", "7").returncode, 7)

    def test_setuid_and_setgid(self):
        if os.getuid() != 0:
            self.skipTest("only root can give a file to somebody else")
        for mode, word in ((stat.S_ISUID, "setuid"), (stat.S_ISGID, "setgid")):
            program = self.folder / word
            shutil.copy(CHILD, program)
            os.chown(program, 65534, 65534)
            program.chmod(0o755 | mode)
            done = self.warned(program, f"has {word} rights, so the loader ignores LD_PRELOAD", "echo", "text")
            self.assertEqual((done.returncode, done.stdout), (4, "text"))

    def test_address_sanitizer_comes_first(self):
        if not ASAN.exists():
            self.skipTest("the compiler has no address sanitizer")
        done = self.call("run", "--driver", "sim", "--", ASAN, "echo", "text", "exit", "7")
        self.assertEqual((done.returncode, done.stdout), (7, "text"), done.stderr)
        self.assertNotIn("does not come first", done.stderr)

    def test_static_cuda_runtime_on_the_simulated_driver(self):
        objcopy = shutil.which("objcopy")
        if not objcopy:
            self.skipTest("no objcopy")
        program = self.folder / "nvcc_built"
        (self.folder / "code").write_bytes(b"x")
        # What marks a program of nvcc; it names no shared libcudart.
        subprocess.run([objcopy, "--add-section", f".nv_fatbin={self.folder / 'code'}", CHILD, program], check=True)
        self.warned(program, "has NVIDIA's runtime linked in, which refuses the simulated driver", "exit", "0")

    def test_another_cuda_runtime_on_the_simulated_driver(self):
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("no compiler")
        (self.folder / "empty.c").write_text("")
        (self.folder / "main.c").write_text("int main(void) { return 0; }\n")

        def program(soname):
            subprocess.run([compiler, "-shared", "-o", soname, f"-Wl,-soname,{soname}", "empty.c"], cwd=self.folder, check=True)
            words = [compiler, "-o", "program", "main.c", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN", "./" + soname]
            subprocess.run(words, cwd=self.folder, check=True)
            return "./program"

        done = self.warned(program("libcudart.so.12"), "needs libcudart.so.12, and the simulated driver comes with libcudart.so.13")
        self.assertIn("build it with CUDA 13 or run it on a GPU", done.stderr)
        done = self.call("run", "--driver", "sim", "--", program("libcudart.so.13"))
        self.assertNotIn("libcudart", done.stderr)

    def test_real_driver_where_there_is_none(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is a GPU here")
        done = self.call("run", "--driver", "real", "--", CHILD, "echo", "text")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("no NVIDIA GPU here", done.stderr)
        auto = self.call("run", "--", CHILD, "echo", "text")
        self.assertEqual((auto.returncode, auto.stdout), (4, "text"))
        self.assertIn("no GPU: using the simulated driver", auto.stderr.splitlines()[0])


class Descendants(CommandTest):
    def test_another_user_who_may_not_write_the_trace(self):
        if os.getuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root and setpriv")
        child = f"{CHILD} map {DRIVER} sleep 600"
        words = ["run", "--driver", "sim", "-o", "t", "--", "setpriv", "--clear-groups", "--reuid"]
        done = self.call(*words, "65534", "--regid", "65534", "sh", "-c", child)
        self.assertRegex(done.stderr, r"not covered: pid \d+ .*map .* \(may not write into the trace folder\)")
        self.assertIn(", incomplete; ", self.last_line(done.stderr))
        # A daemon that gives up its rights on the way is looked at again.
        words[4] = "v"
        done = self.call(*words[:6], CHILD, "sleep", "400", "user", "65534", "map", DRIVER, "sleep", "600")
        self.assertRegex(done.stderr, r"not covered: pid \d+ .*map .* \(may not write into the trace folder\)")
        words[4] = "u"
        done = self.call(*words, "0", "--regid", "0", "sh", "-c", child)
        self.assertNotIn("not covered", done.stderr)

    def test_not_covered(self):
        script = f'printf %s "$1" >"$CAPTURESAN_OUTPUT/one.fake"; env -u LD_PRELOAD {CHILD} map {DRIVER} sleep 600'
        words = ("run", "--driver", "sim", "-o", "t")
        done = self.call(*words, "--", "sh", "-c", script, "sh", '{"events": 4}')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"uses the driver without the shim: {CHILD} map {DRIVER}", done.stderr)
        self.assertIn(", incomplete; ", self.last_line(done.stderr))
        self.assertIn("1 process not covered", self.last_line(done.stderr))
        strict = self.call("run", "--driver", "sim", "--strict", "--", "sh", "-c", script, "sh", '{"events": 4}')
        self.assertEqual(strict.returncode, 3)
        # The folder remembers: a later check does not forget what could not be seen.
        later = self.call("check", "t")
        self.assertIn("uses the driver without the shim", later.stdout)
        self.assertIn(", incomplete; ", self.last_line(later.stdout))

    def test_covered_is_not_listed(self):
        done = self.run_finding(CLEAN, f"{CHILD} map {DRIVER} sleep 400")
        self.assertIn(", clean; ", self.last_line(done.stderr))

    def test_an_untraced_daemon_is_not_waited_for(self):
        done = self.run_child("daemon", "20000", "exit", "7", options=["--wait", "10"])
        self.assertEqual(done.returncode, 7)


if __name__ == "__main__":
    unittest.main()
