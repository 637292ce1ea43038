"""Right programs that look wrong: nothing above `suspected` is said of them, and their wrong neighbours are found."""
import json
import shutil
import unittest

from support import BUILD, REAL, CommandTest

PROGRAM = BUILD / "tests/cli/right_programs"

# case -> rule and confidence of all that is found; None where nothing may be, not even suspected
CASES = {
    "workspace": ("CS201", "suspected"),  # made anew by the line that made it
    "workspace-of-pool": ("CS201", "suspected"),
    "staging": ("CS207", "suspected"),
    "context-pool": None,
    "context-own": ("CS201", "proved"),
    "other-context": None,
    "reload": None,
    "reload-untold": ("CS215", "proved"),
    "switched-off": None,
    "left-on": ("CS201", "proved"),
    "later-free": ("CS201", "suspected"),
    "earlier-free": ("CS201", "proved"),
    "updatable-launch": None,
    "updatable-node": None,
    "not-updatable": ("CS201", "proved"),
    "conditional": None,
    "child": None,
    "child-freed": ("CS201", "proved"),
    "child-node-freed": ("CS201", "proved"),
    "pieces": ("CS201", "proved"),
    "rows": None,
    "set-back": None,
    "set-back-freed": ("CS201", "proved"),
}
# case -> what the report says it did not judge
UNJUDGED = {
    "updatable-launch": "1 kernel node whose parameters the device may change",
    "updatable-node": "1 kernel node whose parameters the device may change",
    "conditional": "1 conditional node, whose bodies are not recorded",
}


class RightPrograms(CommandTest):
    command = REAL

    def test_programs(self):
        if not PROGRAM.exists():
            self.skipTest("built without the simulated driver")
        for case, wanted in CASES.items():
            with self.subTest(case):
                shutil.rmtree(self.folder / "t", ignore_errors=True)
                done = self.call("run", "--driver", "sim", "-o", "t", "--show", "suspected", "--report", "json=a.json", "--", PROGRAM, case)
                report = json.loads((self.folder / "a.json").read_text())
                found = {(f["rule"], f["confidence"]) for f in report["findings"]}
                self.assertEqual(found, set() if wanted is None else {wanted}, done.stderr)
                sure = wanted is not None and wanted[1] != "suspected"
                self.assertEqual(done.returncode, 1 if sure else 0, done.stderr)
                self.assertGreater(report["summary"]["replays"], 0)
                notes = [n for n in report["summary"]["remarks"] if "not judged" in n]
                self.assertEqual(len(notes), 1 if case in UNJUDGED else 0, notes)
                if case in UNJUDGED:
                    self.assertIn(UNJUDGED[case], notes[0])
                    self.assertRegex(done.stderr, r"\(2 not evaluated\)")


if __name__ == "__main__":
    unittest.main()
