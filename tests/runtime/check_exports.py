#!/usr/bin/env python3
"""Compares what libcudart.so.13 exports with the runtime's header: every function that it declares, with the per-thread variants
that it names and the symbol version of the major release, once each in sim/runtime/runtime.def or by hand."""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
REGISTRATION = ["__cudaRegisterFatBinary", "__cudaRegisterFatBinaryEnd", "__cudaUnregisterFatBinary", "__cudaRegisterFunction",
                "__cudaRegisterVar", "__cudaRegisterManagedVar", "__cudaInitModule", "__cudaPushCallConfiguration",
                "__cudaPopCallConfiguration", "__cudaGetKernel", "__cudaLaunchKernel", "__cudaLaunchKernel_ptsz"]


def declared(include):
    """Names of the functions, and their variants, that cuda_runtime_api.h and cuda_profiler_api.h declare."""
    text = (include / "cuda_runtime_api.h").read_text()
    names = set(re.findall(r"CUDARTAPI(?:_CDECL)? (cuda\w+)\s*\(", text + (include / "cuda_profiler_api.h").read_text()))
    variants = {name + "_" + kind.lower() for kind, name in re.findall(r"__CUDART_API_(PTSZ|PTDS)\((cuda\w+)\)", text)}
    version = int(re.search(r"#define CUDART_VERSION\s+(\d+)", text)[1])
    return {name for name in names if not re.search(r"_pt[sd][zs]$", name)} | variants, version


def exported(library):
    text = subprocess.run(["readelf", "--dyn-syms", "-W", library], check=True, capture_output=True, text=True).stdout
    return dict(re.findall(r" FUNC +GLOBAL DEFAULT +\d+ (\w+)@@(\S+)", text))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("include", type=pathlib.Path)
    arguments = parser.parse_args()
    names, version = declared(arguments.include)
    found = exported(arguments.library)
    if len(names) < 300 or len(found) < 300:
        print(f"cannot be right: {len(names)} functions declared, {len(found)} exported")
        return 1
    wrong = []
    if version < 13010:  # a later header declares more than the list was made from
        wrong += [f"declared, but not exported: {name}" for name in sorted(names - set(found))]
    wrong += [f"not exported: {name}" for name in REGISTRATION if name not in found]
    wrong += [f"wrong version: {name}@{v}" for name, v in found.items() if v != "libcudart.so.13"]
    rows = re.findall(r"^(?:ONE|OWN|LACKS)(?:_PTSZ|_PTDS)?\((\w+)", (ROOT / "sim/runtime/runtime.def").read_text(), re.MULTILINE)
    wrong += [f"twice in runtime.def: {name}" for name in sorted({name for name in rows if rows.count(name) > 1})]
    print(*wrong, f"{len(found)} functions exported, {len(names)} declared by CUDA {version}", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
