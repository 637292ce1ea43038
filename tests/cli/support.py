"""What the tests of the command share: where it is, a place to run in, and ways to start it."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["CAPTURESAN_TEST_BUILD"])
FAKE = BUILD / "tests/cli/fake/bin/capturesan"  # behind an audit that believes *.fake files, see fake_audit.cpp
REAL = BUILD / "bin/capturesan"
CHILD = BUILD / "tests/cli/child"

LAST = (r"^capturesan: [\d,.]+(?: [MG])? errors?, [\d,]+ warnings?(?:, \d+ notes?)?(?:, \d+ suspected)?, \d+ suppressed"
        r"(?:, (?:clean|incomplete|nothing captured))?; \d+ rules?(?: \(\d+ not evaluated\))?; [\d,]+ captures?, "
        r"[\d,.]+(?: [MG])? replays?, [\d,.]+(?: [MG])? events?, [\d,]+ dropped(?:, \d+ process(?:es)? not covered)?; "
        r"driver.*$")


def clean_environment():
    return {k: v for k, v in os.environ.items()
            if not k.startswith("CAPTURESAN") and k not in ("LD_PRELOAD", "NO_COLOR", "TMPDIR")}


class CommandTest(unittest.TestCase):
    command = FAKE

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="capturesan-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def call(self, *words, environment=None, stdin="", command=None, **more):
        """Runs the command in the test's folder and returns what subprocess.run returns."""
        return subprocess.run([command or self.command, *words], cwd=self.folder,
                              env={**clean_environment(), **(environment or {})}, input=stdin, capture_output=True,
                              text=True, timeout=60, check=False, **more)

    def run_child(self, *words, options=(), **more):
        return self.call("run", "--driver", "sim", *options, "--", CHILD, *words, **more)

    def run_finding(self, what, then="exit 0", options=(), **more):
        """Runs a shell that leaves `what` for the fake audit behind."""
        text = json.dumps(what) if isinstance(what, dict) else what
        script = 'printf %s "$1" >"$CAPTURESAN_OUTPUT/one.fake"; ' + then
        return self.call("run", "--driver", "sim", *options, "--", "sh", "-c", script, "sh", text, **more)

    def last_line(self, text):
        lines = text.splitlines()
        self.assertTrue(lines, "nothing was written")
        self.assertRegex(lines[-1], LAST)
        return lines[-1]


ERROR = {"events": 5, "captures": 1, "findings": [{"rule": "CS101", "severity": "error", "message": "a wait"}]}
WARNING = {"events": 5, "findings": [{"rule": "CS202", "severity": "warning"}]}
NOTE = {"events": 5, "findings": [{"rule": "CS106", "severity": "note"}]}
SUSPECTED = {"events": 5, "findings": [{"rule": "CS101", "severity": "error", "confidence": "suspected", "message": "perhaps"}]}
SUPPRESSED = {"events": 5, "findings": [{"rule": "CS101", "severity": "error", "suppressed": True}]}
CLEAN = {"events": 1234567, "captures": 2, "replays": 9031}
INCOMPLETE = {"events": 5, "complete": False, "dropped": 3}
