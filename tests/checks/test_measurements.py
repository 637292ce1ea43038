#!/usr/bin/env python3
"""The judgement and the arithmetic behind docs/measurements.md, on made-up samples: every wrong outcome must be called wrong."""
import copy
import json
import pathlib
import runpy
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/gpu"))
import parts  # noqa: E402

FINDING = {"rule": "CS101", "api": "cuStreamSynchronize", "severity": "error", "suppressed": False,
           "stack": [{"module": "libtorch_cuda.so"}]}
REPORT = {"findings": [FINDING], "captures": [{}], "child_exit": 0,
          "summary": {"replays": 0, "complete": True, "dropped": 0}}
WANTED = ("CS101", "cuStreamSynchronize")


def judge(change=lambda report: None, wanted=WANTED, code=1, out=""):
    report = copy.deepcopy(REPORT)
    change(report)
    return parts.judge_program(wanted, 0, 0, code, out, report)


class Judgement(unittest.TestCase):
    def test_accepts(self):
        self.assertEqual(judge(), [])
        self.assertEqual(judge(lambda r: r["findings"].clear(), wanted=None, code=0, out='{"matches": true}'), [])

    def test_catches(self):
        changes = {
            "no finding": lambda r: r["findings"].clear(),
            "the later 901": lambda r: r["findings"][0].update(api="cuStreamEndCapture"),
            "a second finding": lambda r: r["findings"].append(FINDING),
            "other exit code": lambda r: r.update(child_exit=134),
            "replays": lambda r: r["summary"].update(replays=1),
            "no capture": lambda r: r["captures"].clear(),
            "incomplete": lambda r: r["summary"].update(complete=False),
            "no frame of PyTorch": lambda r: r["findings"][0].update(stack=[{"module": "libcapturesan.so"}]),
        }
        for name, change in changes.items():
            with self.subTest(name):
                self.assertEqual(len(judge(change)), 1)
        self.assertEqual(judge(code=0), ["exit code 0"])
        self.assertEqual(parts.judge_program(WANTED, 0, 0, 2, "", None), ["no report was written"])

    def test_wrong_numbers_in_a_clean_run(self):
        self.assertEqual(len(judge(lambda r: r["findings"].clear(), wanted=None, code=0, out='{"matches": false}')), 1)

    def test_ratios_pair_processes_of_one_round(self):
        def sample(bare, lite):
            return {"ns": {"bare": {"eager": [bare, bare * 9, bare]}, "lite": {"eager": [lite, lite, lite * 9]}}}
        self.assertEqual(parts.ratios([sample(100, 103), sample(200, 220), {"ns": {"lite": {"eager": [1]}}}]),
                         {("eager", "lite"): [1.03, 1.1]})


class Page(unittest.TestCase):
    def test_page_from_samples(self):
        head = {"claim": "c", "gpu": "GPU", "driver": "1.2", "date": "d", "commit": "0123456789abcdef", "command": "x",
                "complete": False}
        samples = {
            "examples": [{"name": "good", "ok": True, "wrong": [], "findings": [FINDING], "summary": {"replays": 3, "events": 9}},
                         {"name": "bad", "ok": False, "wrong": ["not found: CS101"]}],
            "coverage": [{"name": "mlp", "ok": True, "wrong": [], "names": 1, "counts": {"cuInit": {"shim": 2, "cupti": 2}}}],
            "matrix": [{"name": "a.csv", "ok": True, "wrong": [], "cells": "9/9"},
                       {"name": "b.csv", "ok": False, "wrong": ["8/9 cells are equal"], "cells": "8/9"},
                       {"name": "c.csv", "ok": True, "wrong": [], "cells": "one GPU only", "skipped": True}],
            "overhead": [{"name": "round 1", "ok": True, "wrong": [],
                          "ns": {"bare": {"eager": [4000]}, "lite": {"eager": [4100]}, "full": {"eager": [4400]}}}],
        }
        module = runpy.run_path(str(ROOT / "scripts/gen-measurements"))
        with tempfile.TemporaryDirectory() as folder:
            for name, rows in samples.items():
                (pathlib.Path(folder) / f"{name}.json").write_text(json.dumps({**head, "part": name, "samples": rows}))
            module["load"].__globals__["SAMPLES"] = pathlib.Path(folder)
            text = module["page"](vars(parts))
        self.assertIn("| good | as expected | CS101 cuStreamSynchronize | 3 | 9 |", text)
        self.assertIn("| bad | **wrong**: not found: CS101 | none | - | - |", text)
        self.assertIn("- `a.csv`: equal (9/9)\n- `b.csv`: **not equal** (8/9)\n- `c.csv`: not measured (one GPU only)\n", text)
        self.assertIn("1 entry points, 2 calls: the two counts are equal", text)
        self.assertIn("| eager | lite | 4.00 us | 1.025 (1.025 - 1.025) | 1 | 1.03 |", text)
        self.assertIn("| eager | full | 4.00 us | 1.100 (1.100 - 1.100) | 1 | 1.15 |", text)
        self.assertIn("This part was cut short.", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
