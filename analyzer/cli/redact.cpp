// `redact`: copies traces without folders and command lines.
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

#include "analyzer/cli/command.h"
#include "analyzer/cli/exit_code.h"
#include "analyzer/cli/session.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/cli/trace_folder.h"
#include "analyzer/reader.h"
#include "analyzer/redact.h"
#include "analyzer/report.h"

namespace capturesan::cli {

namespace {

namespace fs = std::filesystem;

problem failure(const std::string& path, std::string message, std::string hint = {}) {
  problem p;
  p.at.file = path;
  p.message = std::move(message);
  p.hint = std::move(hint);
  return p;
}

// What must hold before a single byte is copied: it is a trace, and every record in it is known here.
problem unfit(const std::string& path) {
  auto bytes = open_file(path);
  if (!bytes) return bytes.problems().front();
  std::uint16_t version[2] = {};
  const auto at = offsetof(trace::file_header, major);
  const bool there = bytes.value()->read(at, version, sizeof(version)) == sizeof(version);
  const auto file = trace_file::open(std::move(bytes.value()), path);
  if (!file) return file.problems().front();
  if (there && version[0] == trace::format_major && version[1] > trace::format_minor)
    return failure(path, "a newer version recorded it", "redact it with that version: it knows what is in it");
  return {};
}

bool copy_redacted(const std::string& from, const fs::path& to) {
  auto bytes = open_file(from);
  if (!bytes) return false;
  std::ofstream out(to, std::ios::binary);
  std::error_code error;
  fs::permissions(to, fs::perms::owner_read | fs::perms::owner_write, error);
  std::vector<std::byte> part(trace::header_bytes);
  for (std::uint64_t at = 0; out;) {
    const std::size_t got = bytes.value()->read(at, part.data(), part.size());
    if (got == 0) break;
    const std::span<std::byte> read(part.data(), got);
    at == 0 ? redact_header(read) : redact_chunk(read);
    out.write(reinterpret_cast<const char*>(read.data()), static_cast<std::streamsize>(got));
    at += got;
    part.resize(trace::chunk_bytes);
  }
  out.close();
  return !out.fail();
}

// Processes that could not open their trace: that they were there matters, their names do not.
void copy_marks(const std::string& from, const fs::path& to) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(from, error)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view prefix = trace::untraced_prefix;
    if (name.starts_with(prefix))
      fs::create_directory(to / (name.substr(0, name.find('-', prefix.size())) + "-program"), error);
  }
}

// What `run` knew: the folder, the command and the options go, of a process that was not covered its first word stays.
bool copy_session(const std::vector<std::string>& traces, const std::string& to) {
  session_record all;
  int sessions = 0;
  for (const std::string& trace : traces) {
    const std::optional<session_record> one = read_session(trace);
    if (!one) continue;
    ++sessions;
    all.simulated = all.simulated || one->simulated;
    all.child_exit = one->child_exit;
    all.child_signal = one->child_signal;
    for (const uncovered_process& process : one->uncovered) {
      const std::string program = process.command.substr(0, process.command.find(' '));
      all.uncovered.push_back({process.pid, program.substr(program.rfind('/') + 1)});
    }
  }
  if (sessions > 1) all.child_exit.reset();
  return sessions == 0 || write_session(to, all);
}

result<std::vector<std::string>> sources(const std::vector<std::string>& traces) {
  std::vector<std::string> files;
  std::error_code error;
  for (const std::string& trace : traces) {
    const std::vector<std::string> inside =
        fs::is_directory(trace, error) ? trace_files_in(trace) : std::vector<std::string>{trace};
    if (inside.empty()) return failure(trace, "no trace file in this folder");
    files.insert(files.end(), inside.begin(), inside.end());
  }
  for (const std::string& file : files)
    if (problem p = unfit(file); !p.message.empty()) return p;
  return files;
}

} // namespace

int redact_command(const invocation& in) {
  const std::string folder = in.options.text("output");
  std::vector<problem> wrong;
  if (in.arguments.empty()) wrong.push_back(failure("", "redact: no trace named"));
  if (!in.options.given("output")) wrong.push_back(failure("", "redact: no folder named", "-o FOLDER"));
  std::error_code error;
  if (wrong.empty() && fs::exists(folder, error))
    wrong.push_back(failure(folder, "is there already", "name a folder that is not: nothing is overwritten"));
  const result<std::vector<std::string>> files =
      wrong.empty() ? sources(in.arguments) : result<std::vector<std::string>>(wrong);
  if (!files) {
    complain(files.problems());
    return exit_usage;
  }
  if (!fs::create_directories(folder, error)) {
    complain({failure(folder, "cannot be made: " + error.message())});
    return exit_usage;
  }
  fs::permissions(folder, fs::perms::owner_all, error);
  for (const std::string& file : files.value()) {
    const fs::path to = fs::path(folder) / fs::path(file).filename();
    if (fs::exists(to, error) || !copy_redacted(file, to)) {
      complain({failure(to.string(), fs::exists(to, error) ? "could not be written, or two traces have this name"
                                                           : "could not be written")});
      return exit_internal;
    }
  }
  for (const std::string& trace : in.arguments)
    if (fs::is_directory(trace, error)) copy_marks(trace, folder);
  if (!copy_session(in.arguments, folder)) {
    complain({failure(folder + "/session.json", "could not be written")});
    return exit_internal;
  }
  print(fmt::format("{} traces in {}; names of files, functions and threads are still in them, and numbers that were "
                    "passed to kernels\n",
                    files.value().size(), printable(folder)));
  return exit_ok;
}

} // namespace capturesan::cli
