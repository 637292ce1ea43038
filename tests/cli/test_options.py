"""Options: where they come from, which source wins, and what is said about a wrong one."""
import unittest

from support import CHILD, CommandTest


class Sources(CommandTest):
    def level(self, *options, environment=None):
        done = self.call("run", "--driver", "sim", *options, "--", "sh", "-c", "echo $CAPTURESAN_LEVEL", environment=environment)
        return done.stdout.strip()

    def config(self, text):
        (self.folder / "capturesan.yaml").write_text(text)

    def test_flag_then_environment_then_file(self):
        self.assertEqual(self.level(), "lite")
        self.config("level: full\n")
        self.assertEqual(self.level(), "full")
        self.assertEqual(self.level(environment={"CAPTURESAN_LEVEL": "lite"}), "lite")
        self.assertEqual(self.level("--level", "full", environment={"CAPTURESAN_LEVEL": "lite"}), "full")

    def test_lists(self):
        self.config("report: [text, 'json=a.json']\nallow_empty: true\n")
        self.assertEqual(self.run_child("exit", "0").returncode, 0)
        self.assertTrue((self.folder / "a.json").exists())
        done = self.run_child("exit", "0", environment={"CAPTURESAN_REPORT": "json=b.json,json=c.json", "CAPTURESAN_ALLOW_EMPTY": "1"})
        self.assertEqual(done.returncode, 0)
        self.assertTrue((self.folder / "b.json").exists() and (self.folder / "c.json").exists())

    def test_unknown_variable_warns(self):
        done = self.run_child("exit", "7", environment={"CAPTURESAN_LEVLE": "full", "CAPTURESAN_SIM_STRICT": "1"})
        self.assertEqual(done.returncode, 7)
        self.assertIn("warning: CAPTURESAN_LEVLE is no variable of capturesan; did you mean CAPTURESAN_LEVEL?", done.stderr)
        self.assertNotIn("CAPTURESAN_SIM_STRICT", done.stderr)

    def test_wrong_variable(self):
        done = self.run_child("echo", "x", environment={"CAPTURESAN_STRICT": "maybe"})
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("CAPTURESAN_STRICT: 'maybe' is neither true nor false", done.stderr)

    def test_wrong_files(self):
        for text, message in (("levle: full\n", "capturesan.yaml:1:1: error: unknown option levle\n"),
                              ("strict: true\nlevel: medium\n", "capturesan.yaml:2:8: error: level: 'medium' is not one of lite, full"),
                              ("level: full\nlevel: lite\n", "capturesan.yaml:2:1: error: level is set twice"),
                              ("level: [lite]\n", "capturesan.yaml:1:8: error: level needs one value"),
                              ("- level\n", "capturesan.yaml:1:1: error: expected a list of `option: value` lines"),
                              ("level: full\n---\nlevel: lite\n", "a second document begins here"),
                              ("output: 'x\nlevel: full\n", "capturesan.yaml:"),
                              ("level: {\n", "capturesan.yaml:")):
            self.config(text)
            done = self.run_child("echo", "x")
            self.assertEqual((done.returncode, done.stdout), (2, ""), text)
            self.assertIn(message, done.stderr)

    def test_empty_file(self):
        self.config("# nothing\n")
        self.assertEqual(self.run_child("exit", "7").returncode, 7)


class Mistakes(CommandTest):
    def said(self, *words):
        done = self.call(*words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), words)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr.strip()

    def test_unknown_command(self):
        self.assertEqual(self.said("chekc"), "capturesan: unknown command 'chekc'; did you mean check?")
        self.assertEqual(self.said("frobnicate"), "capturesan: unknown command 'frobnicate'; see capturesan --help")

    def test_unknown_option(self):
        self.assertEqual(self.said("run", "--stric", "--", "true"), "capturesan: run: unknown option --stric; did you mean --strict?")
        self.assertEqual(self.said("check", "--wait", "3", "t"), "capturesan: check: unknown option --wait; it is an option of other commands")
        self.assertIn("unknown option -z", self.said("run", "-z", "--", "true"))

    def test_no_abbreviations(self):
        self.assertIn("unknown option --lev", self.said("run", "--lev", "full", "--", CHILD))

    def test_values(self):
        self.assertIn("--level", self.said("run", "--level"))
        self.assertIn("--strict", self.said("run", "--strict=yes", "--", "true"))
        self.assertIn("'fast' is not one of lite, full", self.said("run", "--level=fast", "--", "true"))
        self.assertIn("--max-trace: '12 MiB' is not a size such as 64MiB, 10G or 1000000", self.said("run", "--max-trace", "12 MiB", "--", "true"))
        self.assertIn("did you mean json?", self.said("run", "--report", "jsno", "--", "true"))

    def test_sizes(self):
        for text, number in (("10G", 10 << 30), ("64M", 64 << 20), ("3K", 3 << 10), ("2GiB", 2 << 30), ("5MB", 5000000), ("7", 7)):
            done = self.call("run", "--driver", "sim", "--max-trace", text, "--", "sh", "-c", "echo $CAPTURESAN_MAX_TRACE")
            self.assertEqual(done.stdout, f"{number}\n", text)
        for text in ("10g", "G", "1.5G", "-1", "10GG", "99999999999G"):
            self.assertIn("is not a size", self.said("run", "--max-trace", text, "--", "true"), text)

    def test_nothing_at_all(self):
        done = self.call()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("usage: capturesan COMMAND", done.stderr)


class Help(CommandTest):
    COMMANDS = ("run", "check", "report", "baseline", "dump", "redact", "env", "rules", "doctor", "version")

    def test_overview_names_every_command(self):
        for words in (["--help"], ["-h"], ["help"]):
            done = self.call(*words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for name in self.COMMANDS:
                self.assertIn(f"\n  {name} ", done.stdout)

    def test_each_command_teaches(self):
        for name in self.COMMANDS:
            for words in ([name, "--help"], [name, "-h"], ["help", name]):
                done = self.call(*words)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn(f"usage: capturesan {name}", done.stdout)
                self.assertIn(f"capturesan {name}", done.stdout.split("examples:")[1])

    def test_an_option_means_what_its_command_makes_of_it(self):
        def meaning(command, option):
            text = self.call(command, "--help").stdout
            return text.split(f"--{option} ")[1].split("\n")[1]

        self.assertIn("run writes", meaning("run", "report"))
        for command in ("check", "report"):
            self.assertIn("without FILE, to stdout", meaning(command, "report"))
            self.assertNotIn("run writes", meaning(command, "report"))
        self.assertIn("only new ones count", meaning("check", "baseline"))
        self.assertIn("the file to write", meaning("baseline", "baseline"))
        self.assertIn("one JSON array", meaning("diff", "format"))
        self.assertIn("one JSON object a line", meaning("dump", "format"))
        self.assertNotIn("default: a new folder", meaning("doctor", "output"))

    def test_help_after_the_dashes_is_the_programs(self):
        self.assertEqual(self.run_child("exit", "7", "--help").returncode, 7)

    def test_version(self):
        for words in (["version"], ["--version"]):
            self.assertRegex(self.call(*words).stdout, r"^capturesan \d+\.\d+\.\d+, trace format 3\.\d+, \d+ driver calls known\n$")


if __name__ == "__main__":
    unittest.main()
