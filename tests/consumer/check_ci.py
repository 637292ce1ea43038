#!/usr/bin/env python3
"""usage: check_ci.py BUILD SOURCE : the files of examples/ci are what their readers expect, and their shell steps work.

The steps that fetch and build CaptureSan itself are replaced by an installation of BUILD; every later `run:` and `script:` line is run
verbatim over the consumer project, whose ctest makes one finding."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

try:
    import yaml
except ImportError:
    print("python3 has no yaml here")
    sys.exit(77)

BUILD, SOURCE = map(pathlib.Path, sys.argv[1:3])


class Recipe(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="capturesan-ci-")
        self.addCleanup(temporary.cleanup)
        self.project = pathlib.Path(temporary.name) / "project"
        shutil.copytree(SOURCE / "tests/consumer/project", self.project)
        # A project that knows nothing of CaptureSan: ctest runs its programs plainly.
        (self.project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES C)\nenable_testing()\n"
            "add_executable(waits waits_in_capture.c)\ntarget_link_libraries(waits PRIVATE ${CMAKE_DL_LIBS})\nadd_test(NAME waits COMMAND waits)\n")
        self.prefix = self.project / "capturesan"
        subprocess.run(["cmake", "--install", BUILD, "--component", "capturesan", "--prefix", self.prefix], check=True, capture_output=True)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("CAPTURESAN", "GITHUB", "CI_"))}
        self.environment |= {"CAPTURESAN": str(self.prefix), "CI_PROJECT_DIR": str(self.project),
                             "GITHUB_STEP_SUMMARY": str(self.project / "summary.md")}

    def shell(self, script, code=0):
        done = subprocess.run(["bash", "-e", "-c", script], cwd=self.project, env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_github(self):
        workflow = yaml.safe_load((SOURCE / "examples/ci/github-workflow.yml").read_text())
        self.assertIn(True, workflow, "YAML 1.1 reads the key `on` as true; GitHub does not")
        steps = workflow["jobs"]["audit"]["steps"]
        self.assertTrue(all(("uses" in step) != ("run" in step) for step in steps))
        scripts = {step["name"]: step["run"] for step in steps if "run" in step}
        self.assertEqual(list(scripts), ["Install CaptureSan", "Build the project", "Audit"])
        install = ["./scripts/set-up", "./scripts/build ci", 'cmake --install build/ci --component capturesan --prefix "$CAPTURESAN"']
        self.assertEqual(scripts["Install CaptureSan"].splitlines()[1:], install)
        self.shell(scripts["Build the project"])
        output = self.shell(scripts["Audit"], code=1)
        self.assertIn("::error file=waits_in_capture.c,line=7,title=CS101", output)
        upload = next(step for step in steps if step.get("name") == "Upload SARIF")
        sarif = json.loads((self.project / upload["with"]["sarif_file"]).read_text())
        place = sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
        self.assertEqual(place["artifactLocation"]["uri"], "waits_in_capture.c")
        self.assertIn("waits_in_capture.c:7", (self.project / "summary.md").read_text().replace("&#95;", "_"))
        # Reports are kept although the audit failed.
        self.assertTrue(all(step["if"] == "always()" for step in steps[steps.index(upload):]))

    def test_gitlab(self):
        job = yaml.safe_load((SOURCE / "examples/ci/gitlab-ci.yml").read_text())["capturesan"]
        self.assertTrue(all(isinstance(line, str) for line in job["script"]))
        self.assertEqual(job["artifacts"]["when"], "always")
        first = next(i for i, line in enumerate(job["script"]) if line.startswith("cmake -S"))
        for line in job["script"][first:-1]:
            self.shell(line)
        self.shell(job["script"][-1], code=1)
        issues = json.loads((self.project / job["artifacts"]["reports"]["codequality"]).read_text())
        self.assertEqual([(i["check_name"], i["location"]["path"]) for i in issues], [("CS101", "waits_in_capture.c")])
        self.assertEqual(xml.parse(self.project / job["artifacts"]["reports"]["junit"]).getroot().get("failures"), "1")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
