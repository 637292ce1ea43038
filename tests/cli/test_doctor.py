"""`doctor`: each obstacle that can be built without a GPU, and that it is named."""
import os
import pathlib
import resource
import shutil
import stat
import subprocess
import sys
import time
import unittest

from support import BUILD, CHILD, REAL, CommandTest, clean_environment

OLD_DRIVER = BUILD / "tests/cli/old_driver"


class Doctor(CommandTest):
    command = REAL

    def doctor(self, *words, driver="sim", **more):
        return self.call("doctor", "--driver", driver, *words, **more)

    def stopped(self, message, *words, **more):
        done = self.doctor(*words, **more)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, rf"STOP  .*{message}")
        self.assertIn("\n      -> ", done.stdout, "every obstacle has a cure")
        return done.stdout

    def remarked(self, message, *words, **more):
        done = self.doctor(*words, **more)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(message, done.stdout)

    def test_nothing_in_the_way(self):
        done = self.doctor("--", CHILD)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertNotIn("STOP", done.stdout)

    # LD_PRELOAD that is ignored

    def test_setuid(self):
        if os.getuid() != 0:
            self.skipTest("only root can make a file of another owner")
        program = self.folder / "privileged"
        shutil.copy(CHILD, program)
        os.chown(program, 65534, -1)
        program.chmod(0o755 | stat.S_ISUID)
        self.stopped("has setuid rights", "--", program)

    def test_static(self):
        static = BUILD / "tests/cli/child_static"
        if not static.exists():
            self.skipTest("no static C library here")
        self.stopped("statically linked", "--", static)

    def test_musl(self):
        (self.folder / "m.c").write_text("int main(void) { return 0; }\n")
        subprocess.run(["cc", "m.c", "-o", "m", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"], cwd=self.folder, check=True)
        self.stopped("linked against musl", "--", self.folder / "m")

    # Driver and toolkit

    def test_no_driver(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is a GPU here")
        self.stopped("no GPU: /dev/nvidiactl is missing", driver="real")

    def test_old_driver(self):
        if not (OLD_DRIVER / "libcuda.so.1").exists():
            self.skipTest("the old driver was not built")
        self.stopped(r"libcuda.so.1 here is .*, CUDA 11\.2", driver="auto", environment={"LD_LIBRARY_PATH": str(OLD_DRIVER)})

    def test_toolkit(self):
        nvcc = self.folder / "nvcc"
        for version, message in (("11.8", "the CUDA toolkit on PATH is 11.8; 12.4 or newer is needed to build kernels"), ("13.0", "CUDA toolkit 13.0")):
            nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {version}, V{version}.1'\n")
            nvcc.chmod(0o755)
            self.remarked(message, environment={"PATH": f"{self.folder}:{os.environ['PATH']}"})

    # Others in the same process

    def test_injections_in_the_environment(self):
        for name, value, message in (("CUDA_INJECTION64_PATH", "/opt/tool.so", "CUDA_INJECTION64_PATH=/opt/tool.so: another tool watches too"),
                                     ("NSYS_PROFILING_SESSION_ID", "7", "started under Nsight Systems"),
                                     ("CUDA_LAUNCH_BLOCKING", "1", "CUDA_LAUNCH_BLOCKING is set")):
            self.remarked(message, environment={name: value})

    def process_with(self, *libraries, environment=None):
        """A sleeping process that has mapped libraries of these names."""
        paths = []
        for name in libraries:
            path = self.folder / name
            subprocess.run(["cc", "-shared", "-o", path, "-x", "c", "/dev/null"], check=True)
            paths.append(str(path))
        process = subprocess.Popen(["sleep", "60"], env={**clean_environment(), "LD_PRELOAD": ":".join(paths), **(environment or {})})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for _ in range(200):
            if all(path in pathlib.Path(f"/proc/{process.pid}/maps").read_text() for path in paths):
                return process
            time.sleep(0.02)
        self.fail("the libraries were not mapped")

    def test_tools_in_a_live_process(self):
        for libraries, message in ((["libToolsInjection64.so"], "Nsight Systems is injected"),
                                   (["libsanitizer-collection.so"], "Compute Sanitizer is injected"),
                                   (["libcupti.so.13"], "CUPTI is loaded, and only one client can hold it; here that may be any library"),
                                   (["libcupti.so.13", "libtorch_cpu.so"], "here that may be torch.profiler (libtorch_cpu.so)"),
                                   (["libasan.so.8"], "the address sanitizer is in it")):
            process = self.process_with(*libraries)
            done = self.call("doctor", "--pid", str(process.pid))
            self.assertIn(message, done.stdout)
            self.assertIn("was started without the shim", done.stdout)

    def test_injection_of_a_live_process(self):
        process = self.process_with("libnothing.so", environment={"CUDA_INJECTION64_PATH": "/opt/tool.so"})
        self.assertIn("CUDA_INJECTION64_PATH=/opt/tool.so", self.call("doctor", "--pid", str(process.pid)).stdout)

    def test_address_sanitizer(self):
        asan = BUILD / "tests/cli/child_asan"
        if not asan.exists():
            self.skipTest("no address sanitizer here")
        self.remarked("will be preloaded before the shim", "--", asan)

    # Room

    def test_no_room(self):
        self.stopped("no place for the trace", "-o", "/proc/self")
        done = subprocess.run([self.command, "doctor", "--driver", "sim"], cwd=self.folder, env=clean_environment(), capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)), check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("files may not grow beyond 1024 KiB (ulimit -f)", done.stdout)

    # What the program is

    def test_static_cuda_runtime(self):
        program = self.folder / "cuda_program"
        (self.folder / "c.c").write_text('__attribute__((section(".nv_fatbin"), used)) static const char code[8];\nint main(void) { return 0; }\n')
        subprocess.run(["cc", "c.c", "-o", program], cwd=self.folder, check=True)
        self.stopped("has NVIDIA's runtime linked in", "--", program)

    def test_python(self):
        for version, message in (("3.9", "Python 3.9: no Python frames"), ("3.12", "can be preloaded")):
            program = self.folder / f"python{version}"
            shutil.copy(CHILD, program)
            self.remarked(message, "--", program)


if __name__ == "__main__":
    unittest.main()
