#!/usr/bin/env python3
"""Unusual programs and neighbours behave the same with and without the shim, and are traced where they can be.

usage: check_odd.py --build DIR
"""
import argparse
import glob
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_victim  # noqa: E402


class Odd:
    def __init__(self, build):
        self.build = build
        self.shim = os.path.join(build, "lib", "libcapturesan.so")
        self.plugin = os.path.join(build, "tests", "libplugin.so")
        self.failed = 0

    def run(self, arguments, environment, driver="fake"):
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(self.build, "lib", driver))
        env.update(environment)
        p = subprocess.run(arguments, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=120)
        return p.stdout, p.stderr, p.returncode

    def compare(self, title, arguments, files, preload="{shim}", plain_preload="", most=None, extra=None,
                program="odd_victim", driver="fake"):
        """`files`: traces there must be at least; `most`: and at most."""
        program = [os.path.join(self.build, "tests", program)] + arguments
        plain = self.run(program, {"LD_PRELOAD": plain_preload} if plain_preload else {}, driver)
        with tempfile.TemporaryDirectory() as place:
            out = os.path.join(place, "trace")
            shim = self.run(program, {"LD_PRELOAD": preload.format(shim=self.shim), "CAPTURESAN_OUTPUT": out, **(extra or {})}, driver)
            traces = check_victim.traces(out)
        problems = []
        if plain != shim:
            problems.append("differs:\n    without %s\n    with    %s" % (plain, shim))
        if not plain[0]:
            problems.append("the program printed nothing: %s" % (plain,))
        if len(traces) < files or (most is not None and len(traces) > most):
            problems.append("%d trace files, expected %d" % (len(traces), files))
        print("%s: %s" % (title, "FAILED" if problems else "ok"))
        for p in problems:
            print("  " + p)
        self.failed += bool(problems)


def jumps(odd):
    """What a thread does after it jumped out of the shim is recorded."""
    program = [os.path.join(odd.build, "tests", "odd_victim"), "jump"]
    plain = odd.run(program, {})
    with tempfile.TemporaryDirectory() as place:
        shim = odd.run(program, {"LD_PRELOAD": odd.shim, "CAPTURESAN_OUTPUT": os.path.join(place, "trace")})
        traces = check_victim.traces(os.path.join(place, "trace"))
    trace = traces[0] if traces else b""
    event_kind, freed = 1, set()
    for at in range(4096, len(trace) - 63, 64):
        kind, _, _, result = struct.unpack_from("<BBHi", trace, at)
        address = struct.unpack_from("<Q", trace, at + 32)[0]
        if kind == event_kind and result == 0 and 0x1000 <= address < 0x1000 + 50:
            freed.add(address)
    lost = check_victim.lost(trace) if traces else 0
    stepped = platform.machine() == "x86_64"
    good = plain == shim and bool(plain[0]) and len(freed) == 50 and (lost > 0 or not stepped)
    print("jumps out of the shim: %s (%d of 50 calls after them recorded, %d counted as lost)" % ("ok" if good else "FAILED", len(freed), lost))
    if plain != shim:
        print("  without %s\n  with    %s" % (plain, shim))
    odd.failed += not good


def full_disk(odd):
    """A disk of 8 MiB: the program ends as it would, the trace says what was lost."""
    place = tempfile.mkdtemp()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", place], stderr=subprocess.DEVNULL).returncode != 0:
        os.rmdir(place)
        print("full disk: not run, mounting a tmpfs needs rights that this user lacks")
        return
    try:
        with tempfile.TemporaryDirectory() as other:
            program = [os.path.join(odd.build, "tests", "storm"), os.path.join(other, "progress"), "8", "exit"]
            _, err, code = odd.run(program, {"LD_PRELOAD": odd.shim, "CAPTURESAN_OUTPUT": os.path.join(place, "trace")})
            traces = check_victim.traces(os.path.join(place, "trace"))
            lost = check_victim.lost(traces[0]) if traces else 0
        # 8 threads x 20,000 calls x 64 bytes are 9.8 MiB: some of it cannot be there, and the header must say so.
        good = code == 3 and not err and len(traces) == 1 and lost > 0
        stored = check_victim.slots(traces[0]) if traces else 0
        print("full disk: %s (%d records lost, %d slots stored)" % ("ok" if good else "FAILED %s" % err, lost, stored))
        odd.failed += not good
    finally:
        subprocess.run(["umount", place], check=False)
        os.rmdir(place)


def removed_folder(odd):
    """Somebody removes the trace while it is written: the program goes on."""
    with tempfile.TemporaryDirectory() as place:
        out, progress = os.path.join(place, "trace"), os.path.join(place, "progress")
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(odd.build, "lib", "fake"), LD_PRELOAD=odd.shim, CAPTURESAN_OUTPUT=out)
        p = subprocess.Popen([os.path.join(odd.build, "tests", "storm"), progress, "2"], env=env, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)  # never ends by itself

        def calls():
            with open(progress, "rb") as f:
                return sum(struct.unpack("<QQ", f.read(16)))

        while p.poll() is None and not check_victim.traces(out):
            time.sleep(0.01)
        shutil.rmtree(out, ignore_errors=True)
        before, until = calls(), time.monotonic() + 60
        # Far more than what is mapped at that moment (64 chunks of 254 records) can hold.
        while p.poll() is None and calls() < before + 200000 and time.monotonic() < until:
            time.sleep(0.01)
        more, running = calls() - before, p.poll() is None
        p.kill()
        err = p.communicate()[1]
    good = running and more >= 200000 and not err
    print("folder removed meanwhile: %s (%d more calls)" % ("ok" if good else "FAILED %s" % err, more))
    odd.failed += not good


def jemalloc():
    """An allocator that replaces malloc, where there is one."""
    for pattern in ("/usr/lib/*/libjemalloc.so.2", "/usr/lib64/libjemalloc.so.2"):
        for path in glob.glob(pattern):
            return path
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    odd = Odd(os.path.abspath(parser.parse_args().build))
    noshim = os.path.join(odd.build, "lib", "libnoshim.so")
    odd.compare("a call before every constructor", ["preinit"], 1)
    odd.compare("calls in exit handlers and destructors", ["at_exit"], 1)
    odd.compare("calls in signal handlers", ["signal"], 1)
    jumps(odd)
    for kind in ("pie", "fixed"):
        for driver in ("fake", "sim"):
            if os.path.isdir(os.path.join(odd.build, "lib", driver)):
                odd.compare("addresses of the driver's functions, %s, %s" % (kind, driver), [], 0, program="same_address_" + kind, driver=driver)
    odd.compare("a plugin bound with RTLD_DEEPBIND", ["deepbind", odd.plugin], 1)
    odd.compare("a plugin in a namespace of its own", ["dlmopen", odd.plugin], 1)
    odd.compare("a plugin loaded 1,000 times", ["reload", odd.plugin], 1)
    odd.compare("a plugin that needs static TLS", ["tls", odd.plugin], 1)
    odd.compare("200 forks", ["forks"], 201, most=201)
    odd.compare("a daemon that closes every descriptor", ["daemon"], 2, most=2)
    if os.path.exists(noshim):
        odd.compare("another interposer before us", ["reload", odd.plugin], 1, preload=noshim + ":{shim}", plain_preload=noshim)
        odd.compare("another interposer behind us", ["reload", odd.plugin], 1, preload="{shim}:" + noshim, plain_preload=noshim)
    none = {"CAPTURESAN_CHILDREN": "none"}
    odd.compare("50 forks from among four busy threads", ["fork_storm"], 51, most=51)
    odd.compare("the same, children not followed", ["fork_storm"], 1, most=1, extra=none)
    odd.compare("posix_spawn", ["spawn"], 11, most=11)
    odd.compare("posix_spawn, children not followed", ["spawn"], 1, most=1, extra=none)
    odd.compare("children not followed find the environment as without us", ["spawn_environment"], 1, most=1, extra=none)
    allocator = jemalloc()
    if allocator:
        for order in (allocator + ":{shim}", "{shim}:" + allocator):
            odd.compare("jemalloc, preloaded %s us" % ("before" if order.endswith("}") else "behind"), ["fork_storm"], 51, most=51,
                        preload=order, plain_preload=allocator)
    else:
        print("jemalloc: not run, libjemalloc2 is not installed")
    removed_folder(odd)
    full_disk(odd)
    return 1 if odd.failed else 0


if __name__ == "__main__":
    sys.exit(main())
