#!/usr/bin/env python3
"""scripts/cuda-samples on a checkout of our own making: what it takes, what it leaves out, and that a failure without a reason, or one
whose reason no longer holds, is not passed over."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD, NVCC = pathlib.Path(sys.argv.pop(1)).resolve(), sys.argv.pop(1)

CMAKE = """add_executable({name} {name}.cu) # one source
set_target_properties({name} PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
{more}
"""
PROGRAM = """#include <cstdio>
#include <helper_of_the_checkout.h>
__global__ void nothing() {}
int main() {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  nothing<<<1, 1>>>();
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  nothing<<<1, 1, 0, stream>>>();
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) return 9;
  std::puts(MESSAGE);
  return ANSWER;
}
"""


class Samples(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="capturesan-samples-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.checkout = self.folder / "checkout"
        (self.checkout / "Common").mkdir(parents=True)
        (self.checkout / "Common/helper_of_the_checkout.h").write_text('#define MESSAGE "sample speaking"\n')

    def sample(self, name, program, more=""):
        folder = self.checkout / "Samples/group" / name
        folder.mkdir(parents=True)
        (folder / "CMakeLists.txt").write_text(CMAKE.format(name=name, more=more))
        (folder / f"{name}.cu").write_text(program)

    def call(self, *words):
        command = [ROOT / "scripts/cuda-samples", self.checkout, "--build", BUILD, "--work", self.folder / "work", "--nvcc", NVCC,
                   "--json", self.folder / "out.json", *words]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, check=False)
        stored = self.folder / "out.json"
        return done, json.loads(stored.read_text()) if stored.exists() else None

    def test_all_outcomes(self):
        self.sample("good", PROGRAM.replace("ANSWER", "0"))
        self.sample("waiving", PROGRAM.replace("ANSWER", "2"))
        self.sample("matrixMul", PROGRAM.replace("ANSWER", "1"))  # its stored reason wants "Result = FAIL" in the output
        self.sample("broken", "cudaStream_t stream = no_such_name;\n")
        self.sample("cublas_user", PROGRAM, "target_link_libraries(cublas_user PRIVATE CUDA::cudart CUDA::cublas)")
        self.sample("no_stream", "int main() {}\n")
        done, stored = self.call()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("4 samples: 3 build, 1 run to success, 1 waive themselves, 1 fail; 0 with findings; 3 without a known reason",
                      done.stdout.splitlines()[-1])
        self.assertIn("left out: cublas_user: needs CUDA::cublas", done.stdout)
        self.assertNotIn("no_stream", done.stdout)
        self.assertIn("UNEXPLAINED: matrixMul: its output does not show /Result = FAIL/", done.stdout)
        self.assertIn("UNEXPLAINED: waiving: no reason is known", done.stdout)
        self.assertRegex(done.stdout, r"UNEXPLAINED: broken: no reason is known\n.*no_such_name")
        good = next(result for result in stored["results"] if result["name"] == "good")
        self.assertEqual((good["exit"], good["captures"], good["findings"]), (0, 1, []))
        self.assertIn("sample speaking", good["output"])

        only, _ = self.call("--only", "good", "--no-build")
        self.assertEqual(only.returncode, 0, only.stdout)
        compared, _ = self.call("--only", "matrixMul", "--no-build", "--against", self.stored_with_other_outcome(stored))
        self.assertIn("differs: matrixMul: outcome: runs there, fails here", compared.stdout)

    def stored_with_other_outcome(self, stored):
        for result in stored["results"]:
            result["exit"] = 0
        other = self.folder / "other.json"
        other.write_text(json.dumps(stored))
        return other

    def test_usage(self):
        done, _ = self.call("--only", "none_of_them")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
