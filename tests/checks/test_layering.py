#!/usr/bin/env python3
"""The arrow check must catch a planted violation of every kind, and accept what is allowed."""
import pathlib
import sys
import tempfile
import unittest

import layering

ALLOWED = {
    "trace/event.h": "#include <cstdint>\n",
    "interpose/hook.cpp": '#include <cuda.h>\n#include "trace/event.h"\n#include <cupti.h>\n',
    "analyzer/model.h": '#include "trace/event.h"\n#include <sstream>\n',
    "analyzer/rule_reader.cpp": "#include <yaml-cpp/yaml.h>\n",
    "analyzer/cli/main.cpp": '#include "analyzer/model.h"\n#include <boost/program_options.hpp>\n',
    "examples/a.cpp": "#include <cuda.h>\n",
    "tests/unit/a.cpp": '#include "analyzer/model.h"\n#include "interpose/hook.h"\n',
}
PLANTED = {
    "trace/bad.h": '#include "analyzer/model.h"\n',
    "trace/cuda.h": "#include <cuda.h>\n",
    "interpose/bad.cpp": '#include "analyzer/model.h"\n',
    "interpose/stream.cpp": "#include <iostream>\n",
    "interpose/json.cpp": "#include <nlohmann/json.hpp>\n",
    "analyzer/bad.cpp": '#include "cli/main.cpp"\n',
    "analyzer/shim.cpp": '# include "interpose/hook.cpp"\n',
    "analyzer/angle.cpp": "#include <interpose/hook.cpp>\n",
    "analyzer/up.cpp": '#include "../interpose/hook.cpp"\n',
    "analyzer/yaml.cpp": "#include <yaml-cpp/yaml.h>\n",
    "analyzer/boost.cpp": "#include <boost/program_options.hpp>\n",
    "analyzer/cuda.cpp": "#include <cuda.h>\n",
    "sim/bad.cpp": '#include "interpose/hook.cpp"\n',
    "sim/csv.cpp": 'const char* truth = "capture_matrix_580.csv";\n',
    "sim/cupti.cpp": "#include <cupti.h>\n",
    "kernels/bad.cu": '#include "trace/event.h"\n',
    "examples/bad.cpp": '#include "trace/event.h"\n',
}


def check(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(layering.violations(root))


class Layering(unittest.TestCase):
    def test_allowed(self):
        self.assertEqual(check(ALLOWED), [])

    def test_planted(self):
        for name, text in PLANTED.items():
            with self.subTest(name):
                found = check({**ALLOWED, name: text})
                self.assertEqual([line.split(":")[0] for line in found], [name])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
