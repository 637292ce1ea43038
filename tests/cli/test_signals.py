"""Signals: each reaches the program once, whoever sends it and to whom, and the report comes afterwards."""
import os
import pty
import re
import signal
import subprocess
import time
import unittest

from support import CHILD, CommandTest, clean_environment


class Signals(CommandTest):
    def start(self, *words, **more):
        """Starts `run` in a session of its own and waits until the child counts."""
        process = subprocess.Popen([self.command, "run", "--driver", "sim", *words, "--", CHILD, "count", "exit", "7"],
                                   cwd=self.folder, env=clean_environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **more)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def finish(self, process, letters):
        out, err = process.communicate(timeout=30)
        self.assertEqual(out, letters)
        self.last_line(err)
        self.assertEqual(process.returncode, 7)

    def test_sent_to_the_command_alone(self):
        for number, letter in ((signal.SIGINT, "I"), (signal.SIGTERM, "T"), (signal.SIGHUP, "H")):
            process = self.start()
            process.send_signal(number)
            self.finish(process, letter)

    def test_sent_to_the_process_group(self):
        for number, letter in ((signal.SIGINT, "I"), (signal.SIGTERM, "T")):
            process = self.start()
            os.killpg(process.pid, number)
            self.finish(process, letter)

    def test_sent_twice_to_the_group_then_once_to_the_command(self):
        process = self.start()
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        self.finish(process, "IIT")

    def test_hangup_ignored_by_nohup_stays_ignored(self):
        done = subprocess.run(["sh", "-c", 'trap "" HUP; exec "$@"', "sh", self.command, "run", "--driver", "sim", "--", CHILD, "ignored"],
                              cwd=self.folder, env=clean_environment(), capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, f"ignored {int(signal.SIGHUP)}\n")

    def test_the_program_finds_its_signals_as_without_the_command(self):
        # subprocess restores SIGPIPE and SIGXFSZ, which Python ignores, to their defaults.
        self.assertEqual(self.run_child("ignored").stdout, "")

    def test_ctrl_c_on_a_terminal(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(self.command, [self.command, "run", "--driver", "sim", "--", CHILD, "group", "count", "exit", "7"], clean_environment())
        output = b""
        pressed = False
        while True:
            try:
                got = os.read(terminal, 4096)
            except OSError:  # the other side is closed
                break
            if not got:
                break
            output += got
            if b"ready" in output and not pressed:
                pressed = True
                os.write(terminal, b"\x03")
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        text = re.sub(r"\x1b\[[0-9;]*m", "", output.decode()).replace("\r\n", "\n")
        self.assertEqual(os.waitstatus_to_exitcode(status), 7)
        self.assertIn("foreground 1\n", text)
        self.assertEqual(re.search(r"ready\n(?:\^C)?([ITH]*)", text)[1], "I")
        self.last_line(text)

    def test_no_helper_is_left_behind(self):
        process = self.start()
        os.killpg(process.pid, signal.SIGTERM)
        self.finish(process, "T")
        with self.assertRaises(ProcessLookupError):
            os.killpg(process.pid, 0)

    def test_killed_itself_it_leaves_no_helper(self):
        process = self.start()
        process.kill()
        process.wait(timeout=30)
        os.killpg(process.pid, signal.SIGTERM)
        for _ in range(40):
            time.sleep(0.1)
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                process.communicate()
                return
        self.fail("processes of the group are still there")


if __name__ == "__main__":
    unittest.main()
