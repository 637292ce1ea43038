// `check` and `report`: recorded traces, judged as `run` judges them.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "analyzer/cli/command.h"
#include "analyzer/cli/descendants.h"
#include "analyzer/cli/judging.h"
#include "analyzer/cli/known_findings.h"
#include "analyzer/cli/session.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/cli/trace_folder.h"

namespace capturesan::cli {

namespace {

int refuse(std::string_view command, const std::vector<problem>& problems) {
  std::vector<problem> named = problems;
  for (problem& p : named) {
    if (p.at.file.empty()) p.message = fmt::format("{}: {}", command, p.message);
  }
  complain(named);
  return exit_usage;
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// A run whose program made no driver call leaves a folder without traces: that is an answer, not a mistake of the
// caller.
bool recorded_nothing(const std::string& path) {
  return is_folder(path) && read_session(path) && trace_files_in(path).empty();
}

// What the sessions of the traces knew beyond the trace files.
void add_sessions(report_data& data, const std::vector<std::string>& traces) {
  for (const std::string& trace : traces) {
    std::vector<uncovered_process> uncovered;
    const std::optional<session_record> session = is_folder(trace) ? read_session(trace) : std::nullopt;
    if (session) uncovered = session->uncovered;
    if (is_folder(trace)) add_untraced(uncovered, trace); // those of a run that is not over, or had no `run`
    data.uncovered.insert(data.uncovered.end(), uncovered.begin(), uncovered.end());
    if (!session) continue;
    data.simulated = data.simulated || session->simulated;
    if (traces.size() == 1) data.command = session->command;
  }
  if (traces.size() == 1) data.trace = traces[0];
}

std::optional<int> child_exit_of(const std::string& trace) {
  const std::optional<session_record> session = is_folder(trace) ? read_session(trace) : std::nullopt;
  return session ? session->child_exit : std::nullopt;
}

// The reports, and the last line on stderr if it is not part of what stdout got.
bool write_reports(const report_data& data, const std::vector<report_target>& targets) {
  bool written = true, said = false;
  for (const report_target& target : targets) {
    if (!target.file.empty()) {
      written = write_report_file(target, data) && written;
      continue;
    }
    said = said || target.format->write == write_text;
    print(target.format->write(data, {colours(STDOUT_FILENO), false}));
  }
  if (!said) print_error(last_line(data) + "\n");
  return write_companions(targets, data) && written;
}

result<std::unique_ptr<audit>> audit_of(const invocation& in, reading way, bool with_baseline = true) {
  result<std::unique_ptr<audit>> made = make_audit(in.options, way, {}, with_baseline);
  if (!made) return made;
  for (const std::string& trace : in.arguments) {
    if (recorded_nothing(trace)) continue;
    const result<std::size_t> added = made.value()->add(trace);
    if (!added) return added.problems();
  }
  while (made.value()->poll() > 0) {
  }
  return made;
}

problem no_trace() {
  problem p;
  p.message = "no trace named";
  p.hint = "see --help";
  return p;
}

int judge(std::string_view command, const invocation& in, bool may_be_running) {
  if (in.arguments.empty()) return refuse(command, {no_trace()});
  const result<std::vector<report_target>> targets = report_targets(in.options);
  if (!targets) return refuse(command, targets.problems());
  problem p;
  p.message = "two reports cannot share stdout";
  p.hint = "write FORMAT=FILE for one of them";
  const auto on_stdout = [](const report_target& t) { return t.file.empty(); };
  if (std::count_if(targets.value().begin(), targets.value().end(), on_stdout) > 1) return refuse(command, {p});

  bool running = false;
  for (const std::string& trace : in.arguments) running = running || !running_processes(trace).empty();
  const bool follow = may_be_running && running;
  result<std::unique_ptr<audit>> made = audit_of(in, follow ? reading::beside : reading::saved);
  if (!made) return refuse(command, made.problems());
  audit& judged = *made.value();
  if (!follow) judged.finish();

  report_data data = describe(judged, in.options);
  add_sessions(data, in.arguments);
  data.running = running;
  conclude(data, in.options);
  // To be told, not to be judged: the exit code of a check is about the trace.
  if (in.arguments.size() == 1) data.child_exit = child_exit_of(in.arguments[0]);
  return write_reports(data, targets.value()) ? data.exit_code : exit_internal;
}

} // namespace

int check_command(const invocation& in) { return judge("check", in, false); }
int report_command(const invocation& in) { return judge("report", in, true); }

int baseline_command(const invocation& in) {
  constexpr std::string_view name = "baseline";
  if (in.arguments.empty()) return refuse(name, {no_trace()});
  result<std::unique_ptr<audit>> made = audit_of(in, reading::saved, false);
  if (!made) return refuse(name, made.problems());
  made.value()->finish();
  report_data data = describe(*made.value(), in.options);
  add_sessions(data, in.arguments);
  if (data.summary.nothing_captured() && !in.options.flag("allow-empty")) {
    say("baseline: nothing was captured, so nothing was written down");
    return exit_nothing;
  }
  const bool incomplete = verdict_of(data) == verdict::incomplete;
  if (incomplete)
    say("baseline: the trace is incomplete, so findings may be missing; `run --keep-trace` keeps all of it");
  if (incomplete && in.options.flag("strict")) return exit_incomplete;
  const std::string text = baseline_text(data);
  if (!in.options.given("baseline")) {
    print(text);
    return exit_ok;
  }
  return write_file(in.options.text("baseline"), text) ? exit_ok : exit_internal;
}

} // namespace capturesan::cli
