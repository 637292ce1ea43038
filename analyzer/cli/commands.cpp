#include "analyzer/cli/command.h"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <unistd.h>

#include "analyzer/cli/exit_code.h"
#include "analyzer/cli/terminal.h"

namespace capturesan::cli {

namespace {

const std::vector<command>& table() {
  static const std::vector<command> list = {
      {"run",
       "-- PROGRAM [ARGUMENT]...",
       "watch a program and report what breaks its graph captures",
       run_command,
       {{"output", "driver", "level", "rules", "report", "suppress", "baseline", "fail-on", "show", "cupti", "children",
         "max-trace", "keep-trace", "poison", "strict", "allow-empty", "wait", "disassembler", "strip-deepbind"},
        0,
        true},
       "The program keeps its terminal, input, output and signals; everything capturesan says goes to stderr.\n"
       "Exit code, the first that applies: 2 wrong usage or rules, 5 internal error, 1 findings, 3 incomplete trace "
       "with\n"
       "--strict, the program's own (128 + signal), 4 nothing captured, 0.\n",
       "  capturesan run -- python serve.py --port 8000\n"
       "  capturesan run --driver sim --report json=findings.json -- ./test_capture\n"
       "  capturesan run -o trace --fail-on warning --strict -- ctest\n"},
      {"check",
       "TRACE...",
       "judge recorded traces by the rules, as run does",
       check_command,
       {{"rules", "report", "suppress", "baseline", "fail-on", "show", "strict", "allow-empty", "disassembler"},
        64,
        false},
       "TRACE is a trace file or the folder of a run; several are judged together.\n",
       "  capturesan check capturesan-trace-20261129-101500-4711\n"
       "  capturesan check --rules mine.yaml --report json trace > findings.json\n"},
      {"report",
       "TRACE...",
       "write the report of a trace, also while its program is running",
       report_command,
       {{"rules", "report", "suppress", "baseline", "fail-on", "show", "strict", "allow-empty", "disassembler"},
        64,
        false},
       "As check; but nothing is concluded from the end of the trace while its program is alive.\n",
       "  capturesan report trace\n"
       "  capturesan report --show suspected --report text --report json=findings.json trace\n"},
      {"baseline",
       "TRACE...",
       "write down the findings of a trace, so that later runs fail on new ones only",
       baseline_command,
       {{"rules", "suppress", "baseline", "show", "strict", "allow-empty", "disassembler"}, 64, false},
       "Writes to the file of --baseline, else to stdout. Findings are known again by rule, callers and what the rule\n"
       "groups by: never by lines or addresses.\n",
       "  capturesan baseline --baseline capturesan-baseline.json trace\n"
       "  capturesan run --baseline capturesan-baseline.json -- ./test_capture\n"},
      {"dump",
       "TRACE...",
       "print what was recorded, one line a record",
       dump_command,
       {{"format"}, 64, false},
       "",
       "  capturesan dump trace | grep cuStreamBeginCapture\n"
       "  capturesan dump --format json trace/process-4711-1.cstrace\n"},
      {"redact",
       "TRACE...",
       "copy traces without folders and command lines, to give them away",
       redact_command,
       {{"output"}, 64, false},
       "The copy is judged as the original is. What stays: names of files, functions, kernels and threads, build ids, "
       "addresses,\n"
       "times, and the numbers that were passed to kernels. Files of symbols are found by name beside it no more.\n",
       "  capturesan redact -o to-share capturesan-trace-20261129-101500-4711\n"},
      {"diff",
       "TRACE[#GRAPH] TRACE[#GRAPH]",
       "compare two recorded graphs: which pointers, numbers and geometries differ",
       diff_command,
       {{"format"}, 2, false},
       "GRAPH is the number of an executable graph, as reports have it; without it, the last one. Capture the same "
       "work twice\n"
       "with other inputs: what differs is what each replay has frozen. Exit code: 0 nothing differs, 1 something "
       "does.\n",
       "  capturesan diff trace#1 trace#2\n"
       "  capturesan diff --format json monday tuesday\n"},
      {"env",
       "",
       "print what to export where there is no wrapper",
       env_command,
       {{"output", "driver", "level", "cupti", "children", "max-trace", "keep-trace", "poison", "strip-deepbind"},
        0,
        false},
       "For containers, Ray, torchrun, Slurm and debuggers: evaluate its output in a shell, start the program, then "
       "use\n"
       "`capturesan check` on the folder.\n",
       "  eval \"$(capturesan env -o /tmp/trace)\"\n"
       "  srun --export=ALL bash -c 'eval \"$(capturesan env -o /tmp/trace-$SLURM_PROCID)\"; exec ./train'\n"},
      {"rules",
       "list | show ID | lint [FILE]... | test [FILE | ID]... | fields [PREFIX] | schema | new ID NAME",
       "list and explain rules, check and test those you write",
       rules_command,
       {{"rules", "json"}, 64, false},
       "lint says what is wrong in rule files, at its line and column. test does that first, then runs the tests "
       "inside\n"
       "them. fields lists what a rule may ask for; schema prints a JSON Schema for editors; new prints a rule to "
       "start "
       "from.\n"
       "Exit code: 0, 1 if a test failed, 2 if a file is wrong.\n",
       "  capturesan rules show CS101\n"
       "  capturesan rules new MY101 wait-after-free >mine.yaml\n"
       "  capturesan rules test mine.yaml\n"},
      {"doctor",
       "[-- PROGRAM]",
       "say why the shim did not load, and what to do",
       doctor_command,
       {{"output", "driver", "pid", "disassembler"}, 0, true},
       "Exit code: 0 if nothing stands in the way, 1 otherwise.\n",
       "  capturesan doctor\n"
       "  capturesan doctor -- ./my_program\n"
       "  capturesan doctor --pid 4711\n"},
      {"version",
       "",
       "print the version, the trace format and the number of driver calls known",
       version_command,
       {{}, 0, false},
       "",
       "  capturesan version\n"},
  };
  return list;
}

std::string overview() {
  std::string text = "usage: capturesan COMMAND [OPTION]... [ARGUMENT]...\n\n"
                     "Finds what breaks CUDA graph captures, and what makes their replays silently wrong.\n\n";
  for (const command& c : table()) text += fmt::format("  {:<9}{}\n", c.name, c.summary);
  return text + "\nEach has --help with its options and examples. Start with:\n  capturesan run -- PROGRAM\n";
}

std::string help_of(const command& c) {
  std::string text =
      fmt::format("usage: capturesan {}{}{}{}\n\n{}.\n", c.name, c.accepts.names.empty() ? "" : " [OPTION]...",
                  c.arguments.empty() ? "" : " ", c.arguments, c.summary);
  if (!c.details.empty()) text += fmt::format("\n{}", c.details);
  if (!c.accepts.names.empty()) text += "\noptions:\n";
  for (const std::string_view name : c.accepts.names) {
    if (const option_info* option = find_option(name)) text += option_help(*option, c.name);
  }
  if (!c.accepts.names.empty()) {
    text += "\nEach option is also a variable (--max-trace: CAPTURESAN_MAX_TRACE; lists with commas) and a key of\n"
            "capturesan.yaml in the working directory (max_trace). The command line wins, then the variable.\n";
  }
  return text + fmt::format("\nexamples:\n{}", c.examples);
}

int unknown_command(const std::string& name) {
  std::vector<std::string_view> names;
  for (const command& c : table()) names.push_back(c.name);
  const std::string near = did_you_mean(name, names);
  say(fmt::format("unknown command '{}'; {}", name,
                  near.empty() ? "see capturesan --help" : "did you mean " + near + "?"));
  return exit_usage;
}

int refuse(const command& c, const std::vector<problem>& problems) {
  std::vector<problem> named = problems;
  for (problem& p : named) {
    if (p.at.file.empty()) p.message = fmt::format("{}: {}", c.name, p.message);
  }
  complain(named);
  return exit_usage;
}

int run_one(const command& c, const std::vector<std::string>& words) {
  const result<invocation> read = read_options(c.accepts, words);
  if (!read) return refuse(c, read.problems());
  const invocation& in = read.value();
  if (in.help) {
    print(help_of(c));
    return exit_ok;
  }
  for (const std::string& warning : in.warnings) say("warning: " + warning);
  return c.run(in);
}

} // namespace

std::span<const command> commands() { return table(); }

const command* find_command(std::string_view name) {
  for (const command& c : table()) {
    if (c.name == name) return &c;
  }
  return nullptr;
}

namespace {

int dispatch_words(const std::vector<std::string>& words) {
  try {
    if (words.empty()) {
      print_error(overview());
      return exit_usage;
    }
    std::string name = words[0];
    std::vector<std::string> rest(words.begin() + 1, words.end());
    if (name == "--version") name = "version";
    if (name == "help" && !rest.empty()) {
      name = rest[0];
      rest = {"--help"};
    }
    if (name == "help" || name == "--help" || name == "-h") {
      print(overview());
      return exit_ok;
    }
    const command* c = find_command(name);
    return c ? run_one(*c, rest) : unknown_command(name);
  } catch (const std::exception& error) {
    say(fmt::format("internal error: {}", error.what()));
    return exit_internal;
  }
}

} // namespace

int dispatch(const std::vector<std::string>& words) {
  occupy_standard_streams();
  const int code = dispatch_words(words);
  const std::string failure = output_failure();
  if (failure.empty()) return code;
  say(failure); // an answer that did not arrive is no answer
  return exit_internal;
}

} // namespace capturesan::cli
