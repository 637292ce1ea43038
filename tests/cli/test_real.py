"""The command with its own audit and shim over the simulated driver: real traces, good, cut and foreign."""
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

from support import BUILD, CHILD, REAL, CommandTest, clean_environment

EXAMPLES = BUILD / "examples"
MISTAKE, FIXED = EXAMPLES / "cs101_host_sync", EXAMPLES / "cs101_host_sync_fixed"
HEADER = 4096  # trace/format.h


class RealTest(CommandTest):
    command = REAL

    def run_sim(self, *program, options=(), **more):
        return self.call("run", "--driver", "sim", "-o", "t", *options, "--", *program, **more)

    def traces(self):
        return sorted((self.folder / "t").glob("*.cstrace"))


class Run(RealTest):
    def test_a_mistake_and_its_fixed_twin(self):
        done = self.run_sim(MISTAKE, options=["--report", "json=a.json"])
        report = json.loads((self.folder / "a.json").read_text())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([f["rule"] for f in report["findings"]], ["CS101"])
        self.assertEqual(report["findings"][0]["api"], "cuStreamSynchronize")
        self.assertTrue(any(frame["file"].endswith("cs101_host_sync.cpp") for frame in report["findings"][0]["stack"]))
        self.assertEqual(report["driver"]["kind"], "simulated")
        self.assertEqual(report["exit_reason"], "findings")
        self.assertRegex(done.stderr, r"#\d+ .*cs101_host_sync\.cpp:\d+")
        self.assertTrue(self.last_line(done.stderr).endswith("driver: simulated"))
        shutil.rmtree(self.folder / "t")
        clean = self.run_sim(FIXED)
        self.assertEqual(clean.returncode, 0, clean.stderr)
        self.assertIn(", clean; ", self.last_line(clean.stderr))
        self.assertLessEqual(len(clean.stderr.splitlines()), 3)
        self.assertRegex(self.last_line(clean.stderr), r" 1 capture, [1-9]")

    def test_a_report_in_the_folder_that_is_made_later(self):
        done = self.run_sim(FIXED, options=["--report", "json=t/own.json"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "t/own.json").exists())
        self.assertEqual(self.run_sim(FIXED, options=["-o", "u", "--report", "json=u/no/own.json"]).returncode, 2)
        self.assertFalse((self.folder / "u").exists())

    def test_switched_off_is_said(self):
        done = self.run_sim(FIXED, environment={"CAPTURESAN": "off"})
        self.assertEqual(done.returncode, 4)
        self.assertIn("no driver call was seen: CAPTURESAN=off is in the environment", done.stderr)

    def test_a_working_directory_that_is_gone(self):
        script = 'mkdir gone; cd gone; rmdir ../gone; exec "$@"'
        done = self.call("-c", script, "sh", REAL, "run", "--driver", "sim", "--", FIXED, command="sh")
        self.assertRegex(done.stderr, r"trace in /\S+/capturesan-trace-")
        folder = re.search(r"trace in (/\S+)", done.stderr)[1]
        self.assertRegex(folder, r"^/dev/shm/|^/tmp/")
        shutil.rmtree(folder)

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_a_short_process_of_another_user_is_never_called_clean(self):
        (self.folder).chmod(0o755)
        other = ["setpriv", "--clear-groups", "--reuid=65534", "--regid=65534"]
        if subprocess.run([*other, FIXED, "--nothing"], capture_output=True, check=False,
                          env={**clean_environment(), "LD_LIBRARY_PATH": str(BUILD / "lib/sim")}).returncode != 0:
            self.skipTest("another user cannot run what was built here")
        done = self.run_sim(*other, FIXED)
        self.assertRegex(done.stderr, r"not covered: pid \d+ .*\(has it, but may not write into the trace folder\)")
        self.assertNotIn("doctor", done.stderr)
        shutil.rmtree(self.folder / "t")
        done = self.run_sim("sh", "-c", f'{FIXED}; exec {" ".join(other)} {FIXED}')
        self.assertIn(", incomplete; ", self.last_line(done.stderr))
        self.assertEqual(list(pathlib.Path("/dev/shm").glob("capturesan-untraced-*")), [])
        # A folder that the other user may write to is enough.
        (self.folder / "w").mkdir()
        (self.folder / "w").chmod(0o1777)
        done = self.call("run", "--driver", "sim", "-o", "w", "--", *other, FIXED)
        self.assertIn(", clean; ", self.last_line(done.stderr))

    def test_ranks_of_a_distributed_job_are_named(self):
        done = self.run_sim(MISTAKE, options=["--report", "json=a.json"],
                            environment={"RANK": "3", "LOCAL_RANK": "1", "OMPI_COMM_WORLD_RANK": "5", "SLURM_PROCID": "7", "PMI_RANK": "x"})
        ranks = json.loads((self.folder / "a.json").read_text())["ranks"]
        self.assertEqual([(r["variable"], r["rank"]) for r in ranks],
                         [("RANK", 3), ("LOCAL_RANK", 1), ("OMPI_COMM_WORLD_RANK", 5), ("SLURM_PROCID", 7)])
        self.assertRegex(done.stderr, r"(?m)^process \d+: RANK=3 LOCAL_RANK=1 OMPI_COMM_WORLD_RANK=5 SLURM_PROCID=7$")

    def test_a_trace_that_is_removed_meanwhile_is_never_called_clean(self):
        done = self.run_sim("sh", "-c", '"$0"; rm -r "$CAPTURESAN_OUTPUT"', FIXED)
        self.assertNotIn(", clean;", self.last_line(done.stderr))
        self.assertRegex(done.stderr, "not read: .*/t was removed while the program ran")

    def test_stdout_and_code_are_those_of_the_program_alone(self):
        environment = {**clean_environment(), "LD_LIBRARY_PATH": str(BUILD / "lib/sim")}
        plain = subprocess.run([FIXED], env=environment, capture_output=True, check=False)
        for limit in ("unlimited", "64"):
            done = subprocess.run(["sh", "-c", f'ulimit -f {limit}; exec "$@"', "sh", REAL, "run", "--driver", "sim", "--", FIXED],
                                  cwd=self.folder, env=clean_environment(), capture_output=True, check=False)
            self.assertEqual((done.stdout, done.returncode), (plain.stdout, plain.returncode), done.stderr)

    def test_a_context_set_anew_is_recorded(self):
        # Which context is current decides which device memory and code belong to. Setting it again is no news; setting it after it was
        # popped, or after another one was created, is.
        program = """
import ctypes
cu = ctypes.CDLL("libcuda.so.1")
a, b, out = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
cu.cuInit(0)
cu.cuDevicePrimaryCtxRetain(ctypes.byref(a), 0)
cu.cuCtxSetCurrent(a)
cu.cuCtxSetCurrent(a)
cu.cuCtxPopCurrent_v2(ctypes.byref(out))
cu.cuCtxSetCurrent(a)
cu.cuCtxCreate_v2(ctypes.byref(b), 0, 0)
cu.cuCtxSetCurrent(a)
cu.cuCtxSetCurrent(a)
"""
        self.run_sim("python3", "-c", program, options=["--allow-empty"])
        calls = re.findall(r"call=(cuCtx\w+)", self.call("dump", "t").stdout)
        self.assertEqual(calls, ["cuCtxSetCurrent", "cuCtxPopCurrent_v2", "cuCtxSetCurrent", "cuCtxCreate_v2", "cuCtxSetCurrent"])

    def test_programs_with_a_sanitizer_in_them(self):
        # It looks up every function that it stands in front of, and calls none of them before.
        environment = {**clean_environment(), "LD_LIBRARY_PATH": str(BUILD / "lib/sim")}
        ran = 0
        for program in (BUILD / "tests/cli/sanitized_address", BUILD / "tests/cli/sanitized_thread"):
            if not program.exists():
                continue
            plain = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60, check=False)
            if "captured: no" not in plain.stdout:
                continue  # a kernel that lays out memory in a way this sanitizer cannot have
            ran += 1
            shutil.rmtree(self.folder / "t", ignore_errors=True)
            done = self.run_sim(program)
            self.assertEqual(done.stdout, plain.stdout, done.stderr)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("== CS101 host-sync-in-capture", done.stderr)
        if not ran:
            self.skipTest("no sanitizer works here")

    def test_check_finds_what_run_found(self):
        self.run_sim(MISTAKE, options=["--report", "json=a.json"])
        done = self.call("check", "--report", "json", "t")
        self.assertEqual(done.returncode, 1)
        during, after = json.loads((self.folder / "a.json").read_text()), json.loads(done.stdout)
        for key in ("findings", "captures", "graphs", "driver"):
            self.assertEqual(during[key], after[key])
        text = self.call("report", "t")
        self.assertEqual((text.returncode, text.stderr), (1, ""))
        self.assertIn("== CS101 host-sync-in-capture", text.stdout)

    def test_nothing_captured(self):
        done = self.run_sim(CHILD, "exit", "0")
        self.assertEqual(done.returncode, 4)
        self.assertEqual(self.call("check", "t").returncode, 4)
        self.assertEqual(self.call("check", "--allow-empty", "t").returncode, 0)

    def test_driver_calls_without_captures_are_nothing_to_judge(self):
        done = self.run_sim(CHILD, "cuda", "exit", "0")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("no capture and no graph was seen", done.stderr)
        self.assertRegex(self.last_line(done.stderr), r", nothing captured; .* 0 captures, 0 replays, [1-9]\d* events?,")
        self.assertEqual(self.call("check", "t").returncode, 4)
        done = self.call("run", "--driver", "sim", "--allow-empty", "-o", "u", "--", CHILD, "cuda", "exit", "0")
        self.assertEqual(done.returncode, 0, done.stderr)

    def host_memory(self, case, **environment):
        program = BUILD / "tests/cli/host_memory"
        if not program.exists():
            self.skipTest("built without the simulated driver")
        shutil.rmtree(self.folder / "t", ignore_errors=True)
        done = self.run_sim(program, case, options=["--report", "json=a.json", "--show", "suspected"], environment=environment)
        found = [(f["rule"], "munmap" in f["message"], "realloc" in f["message"]) for f in json.loads((self.folder / "a.json").read_text())["findings"]]
        return done, [f for f in found if f[0] == "CS207"]

    def test_memory_that_a_failed_call_leaves_is_still_there(self):
        for case in ("unaligned", "nothing", "too-much"):
            with self.subTest(case):
                done, found = self.host_memory(case)
                self.assertEqual((done.stdout, found), ("munmap -1\n", []), done.stderr)
        done, found = self.host_memory("unmapped")
        self.assertEqual((done.stdout, found), ("munmap 0\n", [("CS207", True, False)]), done.stderr)

    def test_realloc_takes_a_block_away_only_if_it_moves(self):
        for case in ("realloc-stays", "realloc-fails"):
            with self.subTest(case):
                done, found = self.host_memory(case)
                self.assertEqual((done.returncode, found), (0, []), done.stderr)
        done, found = self.host_memory("realloc-moves")
        self.assertEqual(found, [("CS207", False, True)], done.stderr)

    def test_a_block_got_from_a_realloc_under_way_is_not_gone(self):
        done, found = self.host_memory("race", LD_PRELOAD=str(BUILD / "tests/cli/slow_realloc.so"))
        if done.stdout == "other block\n":
            self.skipTest("this allocator gave another block")
        self.assertEqual((done.stdout, found), ("same block\n", []), done.stderr)

    def test_killed_program(self):
        done = self.run_sim(CHILD, "cuda", "kill", "9")
        self.assertEqual(done.returncode, 137)
        self.assertRegex(self.last_line(done.stderr), r" [1-9]\d* events?, 0 dropped")

    def test_children(self):
        script = f"{FIXED} >&2; exec {FIXED}"
        self.run_sim("sh", "-c", script)
        self.assertEqual(len(self.traces()), 2)
        shutil.rmtree(self.folder / "t")
        self.run_sim("sh", "-c", f'{CHILD} cuda; echo "<$LD_PRELOAD$CAPTURESAN_OUTPUT>"', options=["--children", "none"])
        self.assertEqual(self.traces(), [])

    def test_children_of_bash(self):
        # Bash has a getenv, setenv and unsetenv of its own, and every library that asks for these gets them.
        bash = shutil.which("bash")
        if not bash:
            self.skipTest("no bash")
        other = str(BUILD / "tests/cli/slow_realloc.so")  # the user's own: stays
        script = f'{CHILD} cuda; echo "<$LD_PRELOAD|$CAPTURESAN_OUTPUT>"; env | grep -c CAPTURESAN'
        done = self.run_sim(bash, "-c", script, options=["--children", "none"], environment={"LD_PRELOAD": other})
        self.assertIn(f"<{other}|>\n0\n", done.stdout, done.stderr)
        self.assertEqual(self.traces(), [])

    def test_waits_for_traced_processes_that_outlive_the_program(self):
        begin = time.monotonic()
        done = self.run_sim("sh", "-c", f"({CHILD} cuda sleep 1500 cuda >/dev/null 2>&1 &) ; sleep 0.5; exec {CHILD} cuda", options=["--wait", "20", "--allow-empty"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.traces()), 2)
        self.assertNotIn(", incomplete; ", self.last_line(done.stderr))
        self.assertLess(time.monotonic() - begin, 15)

    def test_still_running_after_the_wait(self):
        done = self.run_sim("sh", "-c", f"({CHILD} cuda sleep 4000 >/dev/null 2>&1 &) ; sleep 0.5", options=["--wait", "0.5"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("still running", done.stderr)
        self.assertNotIn(", clean; ", self.last_line(done.stderr))

    def test_report_of_a_running_session(self):
        process = subprocess.Popen([REAL, "run", "--driver", "sim", "-o", "t", "--", CHILD, "cuda", "count", "exit", "7"], cwd=self.folder,
                                   env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        time.sleep(0.5)
        done = self.call("report", "t")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 7, err)
        self.assertIn("still running", done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(self.last_line(done.stdout), r" [1-9]\d* rules")

    def test_a_process_that_cannot_open_its_trace_is_not_covered(self):
        # No descriptor left while the driver is called for the first time (setrlimit(2)): nothing can be recorded.
        program = """
import ctypes, resource, sys
cu = ctypes.CDLL("libcuda.so.1")
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
if sys.argv[1] == "none":
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
cu.cuInit(0)
"""
        script = f'{sys.executable} -c "$1" "$2" && exec {FIXED}'
        done = self.run_sim("sh", "-c", script, "sh", program, "some", options=["--strict"])
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.rmtree(self.folder / "t")
        done = self.run_sim("sh", "-c", script, "sh", program, "none", options=["--strict"])
        for again in (done, self.call("check", "--strict", "t")):
            self.assertEqual(again.returncode, 3, again.stderr)
            self.assertRegex(done.stderr + again.stdout, r"not covered: pid \d+ .*python.* could not open its trace")
            self.assertIn(", incomplete; ", self.last_line(again.stderr or again.stdout))
            self.assertIn(", 1 process not covered; ", self.last_line(again.stderr or again.stdout))
        done = self.call("run", "--driver", "sim", "-o", "t", "--", FIXED)
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_garbage_in_the_folder(self):
        done = self.run_sim("sh", "-c", f'echo rubbish >"$CAPTURESAN_OUTPUT/process-1-1.cstrace"; exec {CHILD} cuda', options=["--strict"])
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(", incomplete; ", self.last_line(done.stderr))


class Installed(RealTest):
    def test_finds_its_parts_elsewhere(self):
        subprocess.run(["cmake", "--install", BUILD, "--prefix", self.folder / "prefix", "--component", "capturesan"], check=True,
                       stdout=subprocess.DEVNULL)
        command = self.folder / "prefix/bin/capturesan"
        done = self.call("run", "--driver", "sim", "--", MISTAKE, command=command)
        self.assertEqual(done.returncode, 1, done.stderr)
        listed = self.call("rules", "show", "CS101", command=command)
        self.assertIn(f"{self.folder.resolve()}/prefix/share/capturesan/rules/", listed.stdout)


class Traces(RealTest):
    def setUp(self):
        super().setUp()
        self.assertEqual(self.run_sim(FIXED).returncode, 0)
        self.file = self.traces()[0]
        self.bytes = self.file.read_bytes()

    def test_cut_off(self):
        # Slots of 64 bytes; the second word of a chunk counts those in use, its own head included (trace/format.h).
        used = struct.unpack_from("<I", self.bytes, HEADER + 4)[0]
        self.assertGreater(used, 10)
        for size in (HEADER + 64 * (used - 1), HEADER + 64 * 5 + 7, HEADER + 100, HEADER):
            self.file.write_bytes(self.bytes[:size])
            for command in ("check", "report"):
                done = self.call(command, self.file)
                self.assertIn(done.returncode, (0, 4), done.stderr)  # 4: nothing is left
                self.assertIn(", incomplete; ", self.last_line(done.stdout))
                self.assertEqual(self.call(command, "--strict", self.file).returncode, 3)
            self.assertEqual(self.call("dump", self.file).returncode, 0)

    def refused(self, *messages):
        for command in ("check", "report", "dump"):
            done = self.call(command, self.file)
            self.assertEqual((done.returncode, done.stdout), (2, ""), command)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            for message in messages:
                self.assertIn(message, done.stderr)

    def test_none(self):
        for content in (b"", b"short", b"no trace " * 1000, self.bytes[:50]):
            self.file.write_bytes(content)
            self.refused(self.file.name)

    def test_other_version(self):
        # Major version: two bytes after the magic (trace/format.h).
        self.file.write_bytes(self.bytes[:8] + struct.pack("<H", 4) + self.bytes[10:])
        self.refused(self.file.name, "4.")

    def test_dump(self):
        done = self.call("dump", "t")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith("process pid="))
        self.assertIn("driver=simulated", lines[0])
        begins = [line for line in lines if "call=cuStreamBeginCapture" in line]
        self.assertEqual(len(begins), 1)
        self.assertRegex(begins[0], r"^event time=\+\d+\.\d{9} pid=\d+ thread=1 call=cuStreamBeginCapture_v2 result=0 stream=0x[0-9a-f]+ mode=0x")
        self.assertTrue(any(line.startswith("node index=0 type=") for line in lines))
        self.assertTrue(any(re.match(r"stack pid=\d+ stack=\d+ frames=.*cs101_host_sync_fixed\+0x", line) for line in lines))
        objects = [json.loads(line) for line in self.call("dump", "--format", "json", "t").stdout.splitlines()]
        self.assertEqual([o["kind"] for o in objects], [line.split()[0] for line in lines])
        # One line a record: nothing may break a line or the terminal.
        self.assertNotRegex(done.stdout, "[\x00-\x09\x0b-\x1f\x7f]")

    def test_dump_of_quotes(self):
        words = ['say "yes" to=all', 'back\\slash', 'end\\"', "plain"]
        self.call("run", "--driver", "sim", "-o", "quotes", "--", FIXED, *words)
        values = {}
        for line in self.call("dump", "quotes").stdout.splitlines():
            if line.startswith("text ") and "role=argv" in line:
                # The whole line again from its parts: name=value, or name="value" with backslashes before " and \.
                parts = re.fullmatch(r'text((?: \w+=(?:"(?:[^"\\]|\\.)*"|[^ "=]+))+)', line)
                self.assertIsNotNone(parts, line)
                fields = dict(re.findall(r' (\w+)=("(?:[^"\\]|\\.)*"|[^ "=]+)', parts[1]))
                text = fields["text"]
                values[int(fields["key"], 16)] = re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] == '"' else text
        self.assertEqual([values[place] for place in range(1, 5)], words)

    def test_dump_into_a_closed_pipe(self):
        done = self.call("-c", f"{REAL} dump t | head -1", command="sh")
        self.assertEqual((len(done.stdout.splitlines()), done.stderr), (1, ""))


class Redact(RealTest):
    SECRETS = (b"secret-place", b"secret-word", b"secret option", b"SECRET_IN_ENVIRONMENT")

    def setUp(self):
        super().setUp()
        place = self.folder / "secret-place"
        place.mkdir()
        self.program = place / MISTAKE.name
        shutil.copy(MISTAKE, self.program)
        self.call("run", "--driver", "sim", "-o", "t", "--", self.program, "secret-word", "--key=secret option",
                  environment={"SECRET_IN_ENVIRONMENT": "SECRET_IN_ENVIRONMENT"})

    def judged(self, folder):
        report = json.loads(self.call("check", "--report", "json", folder).stdout)
        keys = ("rule", "severity", "confidence", "message", "api", "result", "count")
        return [{key: f[key] for key in keys} for f in report["findings"]], report["summary"]

    def test_the_copy_says_the_same_and_names_no_place(self):
        before = b"".join(path.read_bytes() for path in (self.folder / "t").iterdir() if path.is_file())
        for word in self.SECRETS[:3]:
            self.assertIn(word, before)
        done = self.call("redact", "-o", "copy", "t")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        names = sorted(path.name for path in (self.folder / "copy").iterdir())
        self.assertEqual(names, sorted(["session.json", *(path.name for path in self.traces())]))
        after = b"".join((self.folder / "copy" / name).read_bytes() for name in names)
        for word in (*self.SECRETS, str(self.folder).encode(), str(BUILD).encode(), b"/lib/"):
            self.assertNotIn(word, after)
        self.assertIn(MISTAKE.name.encode(), after)
        found, summary = self.judged("copy")
        self.assertEqual([f["rule"] for f in found], ["CS101"])
        self.assertEqual((found, summary["last_line"]), (self.judged("t")[0], self.judged("t")[1]["last_line"]))
        again = self.call("redact", "-o", "copy", "t")
        self.assertEqual(again.returncode, 2)
        self.assertIn("is there already", again.stderr)

    def test_what_is_left_of_earlier_records_goes(self):
        trace = self.traces()[0]
        data = bytearray(trace.read_bytes())
        at = next(at for at in range(HEADER, len(data), 16384) if struct.unpack_from("<I", data, at)[0] == 0x4B4E4843)
        used = struct.unpack_from("<I", data, at + 4)[0]
        self.assertLess(used, 250)
        data[at + used * 64:at + used * 64 + 12] = b"a secret was"
        data[3000:3012] = b"a secret was"  # behind the fields of the header
        trace.write_bytes(data)
        self.assertEqual(self.call("redact", "-o", "copy", "t").returncode, 0)
        copy = (self.folder / "copy" / trace.name).read_bytes()
        self.assertEqual(len(copy), len(data))
        self.assertNotIn(b"a secret was", copy)
        self.assertEqual(self.judged("copy")[0], self.judged("t")[0])

    def test_what_it_does_not_know_is_not_copied(self):
        trace = self.traces()[0]
        data = trace.read_bytes()
        for content, says in ((data[:10] + struct.pack("<H", 99) + data[12:], "newer version"), (b"no trace", "not a trace")):
            trace.write_bytes(content)
            done = self.call("redact", "-o", "copy", "t")
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)
            self.assertFalse((self.folder / "copy").exists())
        for words in (["redact", "t"], ["redact", "-o", "copy"]):
            self.assertEqual(self.call(*words).returncode, 2)


class Rules(RealTest):
    def test_list_show_test(self):
        listed = self.call("rules", "list")
        self.assertEqual((listed.returncode, listed.stderr), (0, ""))
        for rule in ("CS101", "CS102", "CS104", "CS105", "CS108", "CS110", "CS201", "CS901", "CS902"):
            self.assertRegex(listed.stdout, rf"(?m)^{rule} +[a-z-]+ ")
        shown = self.call("rules", "show", "CS101")
        self.assertIn("CS101 host-sync-in-capture: error", shown.stdout)
        self.assertIn("did you mean CS101?", self.call("rules", "show", "CS10l").stderr)
        tested = self.call("rules", "test")
        self.assertEqual(tested.returncode, 0, tested.stdout)
        self.assertRegex(tested.stdout, r"[1-9]\d* passed, 0 failed")

    def test_a_typo_is_shown_where_it_is(self):
        (self.folder / "mine.yaml").write_text("schema: 1\nrules:\n  - id: MY101\n    nmae: x\n")
        for words in (["rules", "test", "mine.yaml"], ["rules", "list", "--rules", "mine.yaml"],
                      ["run", "--driver", "sim", "--rules", "mine.yaml", "--", CHILD]):
            done = self.call(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("mine.yaml:4:5: ", done.stderr)

    def test_no_such_file(self):
        done = self.call("rules", "test", "none.yaml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("none.yaml", done.stderr)


if __name__ == "__main__":
    if not os.path.exists(REAL):
        raise SystemExit("bin/capturesan is not built")
    unittest.main()
