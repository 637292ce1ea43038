#!/usr/bin/env python3
"""The shim check must fail for a library that asks for more than it may."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_shim

GOOD = (["libc.so.6"], {("memcpy", "2.14")}, 16, {"cuInit"}, {"cuInit"})


class ShimCheck(unittest.TestCase):
    def test_accepts(self):
        self.assertEqual(check_shim.problems(*GOOD), [])

    def test_catches(self):
        planted = {
            "another library": (["libc.so.6", "libstdc++.so.6"], *GOOD[1:]),
            "no library": ([], *GOOD[1:]),
            "new glibc": (GOOD[0], {("dlsym", "2.34")}, *GOOD[2:]),
            "two digits": (GOOD[0], {("f", "2.100")}, *GOOD[2:]),
            "much TLS": (*GOOD[:2], 72, *GOOD[3:]),
            "name not exported": (*GOOD[:4], {"cuInit", "cuMemAlloc_v2"}),
            "name not listed": (*GOOD[:3], {"cuInit", "cuExtra"}, GOOD[4]),
        }
        for name, found in planted.items():
            with self.subTest(name):
                self.assertEqual(len(check_shim.problems(*found)), 1)

    def test_reads_a_real_library(self):
        with tempfile.TemporaryDirectory() as folder:
            source, library = pathlib.Path(folder) / "a.c", pathlib.Path(folder) / "a.so"
            source.write_text("#include <math.h>\n__thread char big[100]; double cuOne(double x) { big[0] = 1; return pow(x, x); }\n")
            subprocess.run(["cc", "-shared", "-fPIC", "-ftls-model=initial-exec", source, "-o", library, "-Wl,--no-as-needed", "-lm", "-lc"], check=True)
            needed, versions, tls, exported = check_shim.facts(library)
        self.assertEqual(sorted(needed), ["libc.so.6", "libm.so.6"])
        self.assertTrue(any(name == "pow" for name, _ in versions))
        self.assertEqual(tls, 100)
        self.assertIn("cuOne", exported)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
