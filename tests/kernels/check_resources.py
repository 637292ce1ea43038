"""Compiles the kernels for sm_120 and sm_90 and reads what ptxas says of them. Fails on a spill, a local stack frame or too
much shared memory, except where ALLOWED_SPILLS says how much is known and accepted.

    check_resources.py NVCC KERNELS_FOLDER [--report]      --report: the table of docs/verify-kernel.md
"""

import os
import re
import subprocess
import sys
import tempfile

SM120_SMEM, SM90_SMEM = 101376, 232448
# Bytes of spill stores that are known and accepted, by (target, kernel). None today.
ALLOWED_SPILLS = {}


def compile_file(nvcc, folder, source, arch, work):
    number = arch[3:]
    command = [nvcc, "-std=c++20", "-O3", "-I", folder, f"-gencode=arch=compute_{number},code={arch}", "-Xptxas", "-v",
               "-cubin", "-o", os.path.join(work, "out.cubin"), os.path.join(folder, source)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stderr


def smem_of_configs(folder, work):
    """Dynamic shared memory is a constant in config.h: let the host compiler say it."""
    names = {f"{family}_config<{n}>" for family, counts in (("wide", (2, 4, 5, 6, 8)), ("narrow", (2, 4))) for n in counts}
    lines = "".join(f'std::printf("%d %d %zu\\n", {n}::NT, {n}::TOK, {n}::SMEM_BYTES);' for n in sorted(names))
    source = os.path.join(work, "smem.cpp")
    with open(source, "w") as f:
        f.write(f'#include "config.h"\n#include <cstdio>\nusing namespace verify_mla;\nint main() {{ {lines} }}\n')
    program = os.path.join(work, "smem")
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-I", folder, source, "-o", program], check=True)
    out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return {(int(a), int(b)): int(c) for a, b, c in (line.split() for line in out.splitlines())}


def kernels(log, arch, dynamic):
    """Yields (name, registers, spill bytes, stack bytes, shared bytes)."""
    for block in re.split(r"Compiling entry function", log)[1:]:
        mangled = block.split("'")[1]
        spill = int(re.search(r"(\d+) bytes spill stores", block).group(1))
        stack = int(re.search(r"(\d+) bytes stack frame", block).group(1))
        registers = int(re.search(r"Used (\d+) registers", block).group(1))
        static = re.search(r"(\d+) bytes smem", block)
        shared = int(static.group(1)) if static else 0
        tile = re.search(r"partial_kernelINS_11tile_configILi(\d+)ELi(\d+)ELi\d+EEELb([01])", mangled)
        reduce = re.search(r"reduce_kernelILi(\d+)ELb([01])", mangled)
        if tile:
            nt, tok, bf16 = map(int, tile.groups())
            if arch == "sm_120" and dynamic[(nt, tok)] > SM120_SMEM:
                continue  # an empty body: never launched there
            yield f"partial {8 * nt} rows, {tok} tokens", f"{'bf16' if bf16 else 'fp32'}", registers, spill, stack, shared + dynamic[(nt, tok)]
        elif reduce:
            yield f"reduce, {reduce.group(1)} tiles", "bf16" if reduce.group(2) == "1" else "fp32", registers, spill, stack, shared


def main():
    nvcc, folder = sys.argv[1], sys.argv[2]
    failures, seen = [], 0
    with tempfile.TemporaryDirectory() as work:
        dynamic = smem_of_configs(folder, work)
        if "--report" in sys.argv:
            print("| target | kernel | partials | registers | spill bytes | shared memory, bytes |\n|---|---|---|---|---|---|")
        for arch, limit, sources in (("sm_120", SM120_SMEM, ["instantiate_narrow.cu", "instantiate_reduce.cu"]),
                                     ("sm_90a", SM90_SMEM, ["instantiate_wide.cu"]),
                                     ("sm_90", SM90_SMEM, ["instantiate_reduce.cu"])):
            for source in sources:
                for name, partials, registers, spill, stack, shared in kernels(compile_file(nvcc, folder, source, arch, work), arch, dynamic):
                    seen += 1
                    if "--report" in sys.argv:
                        print(f"| {arch} | {name} | {partials} | {registers} | {spill} | {shared} |")
                    allowed = ALLOWED_SPILLS.get((arch, name), 0)
                    if spill > allowed or (stack and not allowed):
                        failures.append(f"{arch} {name} {partials}: {spill} bytes of spills, {stack} bytes of stack")
                    if shared > limit:
                        failures.append(f"{arch} {name}: {shared} bytes of shared memory, the limit is {limit}")
    if seen < 16:
        failures.append(f"only {seen} kernels were seen: the pattern of their names must have changed")
    print("\n".join(failures) if failures else f"{seen} kernels: no spill beyond what is listed, shared memory fits", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
