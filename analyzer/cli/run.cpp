#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "analyzer/cli/child.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/descendants.h"
#include "analyzer/cli/driver_choice.h"
#include "analyzer/cli/installation.h"
#include "analyzer/cli/judging.h"
#include "analyzer/cli/program.h"
#include "analyzer/cli/session.h"
#include "analyzer/cli/session_environment.h"
#include "analyzer/cli/session_id.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/cli/trace_folder.h"
#include "analyzer/reader.h"

namespace capturesan::cli {

namespace {

using clock = std::chrono::steady_clock;
constexpr int tick_ms = 100;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string current_folder() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

// As the shim asks for it.
bool switched_off() { return variable("CAPTURESAN") == "off"; }

// As short as it can be written from here.
std::string shown_path(const std::string& path) {
  const std::string here = current_folder() + "/";
  if (here == "/") return path; // at the root, or in a folder that is gone
  return path.starts_with(here) ? path.substr(here.size()) : path;
}

// One run from its preparation to its exit code.
class watched_run {
 public:
  explicit watched_run(const invocation& in) : in_(in) {}
  int go();

 private:
  bool prepare(); // all that can be refused before the program is started
  bool prepare_driver();
  bool prepare_environment(const program_file& program);
  bool refuse(const std::vector<problem>& problems) {
    std::vector<problem> named = problems;
    for (problem& p : named) {
      if (p.at.file.empty()) p.message = "run: " + p.message;
    }
    complain(named);
    return false;
  }
  void announce();
  void watch(child_process& child, signal_watch& signals);
  void wait_for_others(signal_watch& signals);
  void read_trace();
  void read_what_is_new();
  void note_unread_files();
  int report();
  bool write_reports(const report_data& data);
  void save_session();

  const invocation& in_;
  std::vector<report_target> targets_;
  std::unique_ptr<audit> audit_;
  std::string program_path_;
  std::vector<std::string> warnings_;
  driver_choice driver_;
  session_record session_;
  std::string folder_;
  std::vector<std::string> environment_;
  std::vector<std::string> unreadable_;
  bool still_running_ = false;
  bool broken_ = false;          // the audit failed
  bool foreign_runtime_ = false; // the program will not get along with the simulated driver
};

bool watched_run::prepare_driver() {
  const std::string wanted = in_.options.text("driver");
  const driver_probe probe = wanted == "sim" ? driver_probe{} : probe_driver();
  result<driver_choice> choice = choose_driver(wanted, probe, installed().has_sim());
  if (!choice) return refuse(choice.problems());
  driver_ = choice.value();
  return true;
}

bool watched_run::prepare_environment(const program_file& program) {
  session_request request;
  request.session = session_.session;
  request.folder = folder_;
  request.simulated = driver_.simulated;
  request.sanitizer = program.sanitizer();
  request.preload = variable("LD_PRELOAD");
  request.libraries = variable("LD_LIBRARY_PATH");
  result<variables> set = session_environment(request, in_.options);
  if (!set) return refuse(set.problems());
  if (foreign_runtime_)
    set.value().emplace_back("CAPTURESAN_SIM_RUNTIME_NOTED", "1"); // the driver need not say it again
  environment_ = with_variables(environ, set.value());
  return true;
}

bool watched_run::prepare() {
  problem p;
  p.message = "no program to run";
  p.hint = "write it after --, as in capturesan run -- ./program";
  if (in_.program.empty()) return refuse({p});
  result<program_file> program = inspect_program(in_.program[0]);
  if (!program) return refuse(program.problems());
  program_path_ = program.value().path;
  if (const std::string why = program.value().obstacle(); !why.empty()) {
    warnings_.push_back(why + "; only other programs it starts can be watched");
  }
  if (switched_off()) warnings_.push_back("CAPTURESAN=off is in the environment: nothing will be watched");
  result<std::vector<report_target>> targets = report_targets(in_.options);
  if (!targets) return refuse(targets.problems());
  targets_ = std::move(targets.value());
  const report_style style{colours(STDERR_FILENO), true};
  result<std::unique_ptr<audit>> made = make_audit(in_.options, reading::watched, [style](const finding& found) {
    write_all(STDERR_FILENO, headline(found, style) + "\n");
  });
  if (!made) return refuse(made.problems());
  audit_ = std::move(made.value());
  if (!prepare_driver()) return false;
  foreign_runtime_ = driver_.simulated && program.value().static_runtime();
  if (foreign_runtime_) {
    warnings_.push_back(
        fmt::format("{} has NVIDIA's runtime linked in, which refuses the simulated driver; link it with -cudart "
                    "shared or with -cudart static -L{}, or run it on a GPU",
                    program.value().image, installed().sim_folder));
  }
  if (const std::string other = program.value().other_runtime(); driver_.simulated && !other.empty()) {
    warnings_.push_back(fmt::format("{} needs {}, and the simulated driver comes with libcudart.so.13; build it with "
                                    "CUDA 13 or run it on a GPU",
                                    program.value().image, other));
  }

  session_.session = new_session_id();
  session_.directory = current_folder();
  session_.command = in_.program;
  session_.simulated = driver_.simulated;
  for (const option_info& option : all_options()) {
    if (in_.options.given(option.name)) session_.options.emplace_back(option.name, in_.options.text(option.name));
  }
  // Before the folder is made, so that what is refused leaves nothing behind.
  folder_ = "/";
  if (!prepare_environment(program.value())) return false;
  result<std::string> folder = make_trace_folder(in_.options.text("output"), session_.session);
  if (!folder) return refuse(folder.problems());
  folder_ = std::move(folder.value());
  return prepare_environment(program.value());
}

void watched_run::announce() {
  say(fmt::format("{}{}trace in {}", driver_.remark, driver_.remark.empty() ? "" : "; ", shown_path(folder_)));
  for (const std::string& warning : warnings_) say("warning: " + warning);
}

void watched_run::read_trace() {
  if (broken_) return;
  try {
    read_what_is_new();
  } catch (const std::exception& error) { // no memory, say; the program must end in peace all the same
    say(fmt::format("internal error: {}; the program goes on unwatched", error.what()));
    broken_ = true;
  }
}

void watched_run::read_what_is_new() {
  unreadable_.clear();
  const result<std::size_t> added = audit_->add(folder_);
  if (!added) {
    for (const problem& p : added.problems()) unreadable_.push_back(p.at.file + ": " + p.message);
  }
  audit_->poll();
}

void watched_run::watch(child_process& child, signal_watch& signals) {
  descendant_scan scan(child.pid(), folder_);
  const bool look_around = in_.options.text("children") == "all";
  while (!child.poll()) {
    bool to_group = false;
    const int signal = signals.wait(tick_ms, &to_group);
    if (signal && !to_group) child.send(signal);
    if (look_around) scan.poll();
    read_trace();
  }
  session_.child_exit = child.poll();
  session_.child_signal = child.signal();
  session_.uncovered = scan.uncovered();
}

void watched_run::wait_for_others(signal_watch& signals) {
  const auto wait = std::chrono::duration<double>(in_.options.number("wait"));
  const clock::time_point until = clock::now() + std::chrono::duration_cast<clock::duration>(wait);
  bool to_group = false;
  while (true) {
    still_running_ = !running_processes(folder_).empty();
    if (!still_running_ || clock::now() >= until) return;
    if (signals.wait(tick_ms, &to_group)) return; // whoever presses Ctrl-C again wants the report now
    read_trace();
  }
}

void watched_run::save_session() {
  if (!write_session(folder_, session_)) say(fmt::format("warning: {}/session.json could not be written", folder_));
}

// While files grow the audit is patient with those it cannot read yet; in the end they are gaps.
void watched_run::note_unread_files() {
  if (!std::filesystem::exists(folder_)) {
    unreadable_.push_back(fmt::format("{} was removed while the program ran", folder_));
    return;
  }
  const std::vector<std::string> files = trace_files_in(folder_);
  if (files.size() <= audit_->summary().processes) return;
  for (const std::string& file : files) {
    result<std::unique_ptr<byte_source>> bytes = open_file(file);
    const auto opened = bytes ? trace_file::open(std::move(bytes.value()), file)
                              : result<std::unique_ptr<trace_file>>(bytes.problems());
    if (!opened) unreadable_.push_back(fmt::format("{}: {}", file, opened.problems()[0].message));
  }
}

// Text goes to stderr anyway; a runner reads annotations from there as well as from stdout, which is the program's.
bool watched_run::write_reports(const report_data& data) {
  bool written = true;
  for (report_target target : targets_) {
    if (target.file.empty() && target.format->file.empty()) {
      if (target.format->write != write_text) print_error(target.format->write(data, {}));
      continue;
    }
    if (target.file.empty()) {
      target.file = fmt::format("{}/{}", folder_, target.format->file);
      say(fmt::format("{} report in {}", target.format->name, shown_path(target.file)));
    }
    written = write_report_file(target, data) && written;
  }
  return write_companions(targets_, data) && written;
}

int watched_run::report() {
  read_trace();
  // What a living process has left open is not yet a mistake.
  if (!still_running_ && !broken_) audit_->finish();
  note_unread_files();
  std::error_code error;
  const bool removed = !std::filesystem::is_directory(folder_, error);
  report_data data = describe(*audit_, in_.options);
  data.uncovered = session_.uncovered;
  data.command = in_.program;
  data.child_exit = session_.child_exit;
  data.trace = folder_;
  data.simulated = driver_.simulated;
  data.running = still_running_;
  data.unreadable = unreadable_;
  conclude(data, in_.options);

  const bool written = write_reports(data);
  if (const int signal = session_.child_signal) {
    say(fmt::format("the program was ended by signal {} ({})", signal, strsignal(signal)));
  }
  if (data.summary.events == 0 && !removed && !in_.options.flag("allow-empty")) {
    say(switched_off() ? "no driver call was seen: CAPTURESAN=off is in the environment"
        : !data.uncovered.empty()
            ? "no driver call was seen, because of what is not covered"
            : fmt::format("no driver call was seen; `capturesan doctor -- {}` looks for the reason", in_.program[0]));
  } else if (verdict_of(data) == verdict::nothing_captured && !removed && !in_.options.flag("allow-empty")) {
    say("no capture and no graph was seen, so nothing was judged; --allow-empty accepts that");
  } else if (verdict_of(data) == verdict::clean && !data.summary.notes.empty()) {
    say(fmt::format("{} note{}: capturesan report {}", data.summary.notes.size(),
                    data.summary.notes.size() == 1 ? "" : "s", shown_path(folder_)));
  }
  print_error(write_text(data, {colours(STDERR_FILENO), true}));
  return written && !broken_ ? data.exit_code : exit_internal;
}

int watched_run::go() {
  if (!prepare()) return exit_usage;
  signal_watch signals;
  announce();
  save_session();
  result<child_process> child = child_process::start(program_path_, in_.program, environment_, signals);
  if (!child) {
    refuse(child.problems());
    return exit_usage;
  }
  watch(child.value(), signals);
  wait_for_others(signals);
  add_untraced(session_.uncovered, folder_);
  take_signs_left(session_.uncovered, session_.session);
  save_session();
  return report();
}

} // namespace

int run_command(const invocation& in) { return watched_run(in).go(); }

} // namespace capturesan::cli
