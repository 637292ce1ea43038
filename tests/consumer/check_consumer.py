#!/usr/bin/env python3
"""usage: check_consumer.py BUILD PROJECT : installs the build, and lets PROJECT find it there, elsewhere, and in the build."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

BUILD, PROJECT = map(pathlib.Path, sys.argv[1:3])
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("CAPTURESAN")}
EXPECTED = {"good": "run", "bad": "fail", "empty": "fail", "suppressed": "run"}


def call(*words, code=0, cwd=None):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=cwd, env=ENVIRONMENT, check=False)
    assert code is None or done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


class Consumer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="capturesan-consumer-")
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.prefix = cls.folder / "a prefix"
        call("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", "capturesan")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def audit(self, name, *definitions):
        """Configures, builds and tests the project; the results by test."""
        build = self.folder / name
        call("cmake", "-S", PROJECT, "-B", build, *definitions)
        call("cmake", "--build", build)
        call("ctest", "--test-dir", build, "--output-junit", "result.xml", code=None)
        tests = xml.parse(build / "result.xml").getroot().findall("testcase")
        self.assertEqual({test.get("name"): test.get("status") for test in tests}, EXPECTED)
        outputs = {test.get("name"): test.findtext("system-out") for test in tests}
        self.assertIn("CS101 host-sync-in-capture", outputs["bad"])
        self.assertIn("nothing captured", outputs["empty"])
        self.assertIn("1 suppressed, clean", outputs["suppressed"])
        self.assertEqual(json.loads((build / "capturesan/good.json").read_text())["summary"]["captures"], 1)
        self.assertEqual(json.loads((build / "capturesan/good.sarif").read_text())["runs"][0]["results"], [])
        xml.parse(build / "capturesan/good.junit")
        # A second time, over what the first one left behind.
        call("ctest", "--test-dir", build, "-R", "good")
        return build

    def test_0_the_pages_that_are_named_are_there(self):
        place = self.prefix / "share/doc/capturesan"
        rules = [line.split()[0] for line in call(BUILD / "bin/capturesan", "rules", "list").stdout.splitlines() if line.startswith("CS")]
        self.assertGreater(len(rules), 20)
        for rule in rules:
            named = re.search(r"docs/[\w.-]+#[\w-]+", call(BUILD / "bin/capturesan", "rules", "show", rule).stdout)
            self.assertIsNotNone(named, rule)
            page, anchor = named[0].split("#")
            self.assertRegex((place / page).read_text(), rf'(?mi)^#+ {anchor}\b|id="{anchor}"', named[0])
        for page in ("rules", "writing-rules", "calls", "ci", "options"):
            for link in re.findall(r"\]\(([^)#:]+)[^)]*\)", (place / f"docs/{page}.md").read_text()):
                inside = (place / "docs" / link).resolve()
                self.assertTrue(inside.exists() or not link.endswith((".md", ".yml", ".json")), f"docs/{page}.md: {link}")

    def test_1_build_folder(self):
        self.audit("from build", f"-DCaptureSan_DIR={BUILD}/lib/cmake/CaptureSan")

    def test_2_installed(self):
        # LD_PRELOAD cannot hold a space: that is said, not suffered.
        done = call(self.prefix / "bin/capturesan", "run", "--driver", "sim", "--", "true", code=2)
        self.assertIn("LD_PRELOAD cannot hold", done.stderr)
        type(self).prefix = self.prefix.rename(self.folder / "prefix")
        self.audit("installed", f"-DCMAKE_PREFIX_PATH={self.prefix}")

    def test_3_moved(self):
        (self.folder / "elsewhere").mkdir()
        type(self).prefix = self.prefix.rename(self.folder / "elsewhere/p")
        build = self.audit("moved", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        # Nothing of the build folder is used any more.
        report = call(self.prefix / "bin/capturesan", "doctor", "--driver", "sim", cwd=build).stdout
        self.assertIn(f"shim: {self.prefix}/lib/libcapturesan.so", report)
        self.assertIn(f"rules: ", report)
        self.assertNotIn(str(BUILD), report)
        for path in self.prefix.rglob("*.cmake"):
            self.assertNotIn(str(BUILD), path.read_text())

    def test_4_an_incomplete_installation_is_not_found(self):
        (self.prefix / "lib/libcapturesan.so").rename(self.folder / "shim")
        done = call("cmake", "-S", PROJECT, "-B", self.folder / "incomplete", f"-DCMAKE_PREFIX_PATH={self.prefix}", code=1)
        self.assertIn("lib/libcapturesan.so is missing", " ".join(done.stderr.split()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
