#include "analyzer/cli/descendants.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <sys/stat.h>

#include "analyzer/byte_source.h"
#include "analyzer/cli/trace_folder.h"
#include "trace/format.h"

namespace capturesan::cli {

namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;

namespace {

std::string read_file_of(pid_t pid, std::string_view name) {
  std::ifstream file(fmt::format("/proc/{}/{}", pid, name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct process_stat {
  char state = 0; // 0 = no such process
  std::uint64_t started = 0;
};

// Fields 3 and 22 of /proc/<pid>/stat; the name before them may hold anything, so count from the last parenthesis.
process_stat stat_of(pid_t pid) {
  process_stat stat;
  const std::string text = read_file_of(pid, "stat");
  const auto close = text.rfind(')');
  if (close == std::string::npos || close + 2 >= text.size()) return stat;
  stat.state = text[close + 2];
  std::size_t at = close + 2;
  for (int field = 3; field < 22 && at != std::string::npos; ++field) {
    at = text.find(' ', at);
    if (at != std::string::npos) ++at;
  }
  if (at != std::string::npos) stat.started = std::strtoull(text.c_str() + at, nullptr, 10);
  return stat;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code error;
  for (fs::directory_iterator task(fmt::format("/proc/{}/task", pid), error), end; !error && task != end;
       task.increment(error)) {
    std::ifstream list(task->path() / "children");
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

// User and group as files see them. The owner of /proc/<pid> is another thing: root, once a process has changed its
// user.
std::optional<std::pair<uid_t, gid_t>> owner_of(pid_t pid) {
  const std::string text = read_file_of(pid, "status");
  const auto last_of = [&](std::string_view name) -> std::optional<unsigned> {
    const auto at = text.find(name);
    unsigned ids[4]; // real, effective, saved, of the file system
    if (at == std::string::npos ||
        std::sscanf(text.c_str() + at + name.size(), "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
      return std::nullopt;
    return ids[3];
  };
  const auto user = last_of("\nUid:"), group = last_of("\nGid:");
  if (!user || !group) return std::nullopt;
  return std::pair<uid_t, gid_t>(*user, *group);
}

// By owner and mode alone, which is what a folder made by this command has.
bool may_write(std::pair<uid_t, gid_t> owner, const std::string& folder) {
  struct stat place {};
  if (::stat(folder.c_str(), &place) != 0) return true; // another fault, told elsewhere
  if (owner.first == 0 || owner.first == place.st_uid) return true;
  const mode_t needed = owner.second == place.st_gid ? S_IWGRP | S_IXGRP : S_IWOTH | S_IXOTH;
  return (place.st_mode & needed) == needed;
}

std::string command_of(pid_t pid) {
  std::string text = read_file_of(pid, "cmdline");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

} // namespace

descendant_scan::descendant_scan(pid_t root, std::string folder) : folder_(std::move(folder)) {
  processes_[root].started = stat_of(root).started;
}

void descendant_scan::poll() {
  const clock::time_point begin = clock::now();
  if (begin < next_) return;
  scan();
  ++scans_;
  const clock::duration took = clock::now() - begin;
  // Often at first, when short-lived helpers come and go; never more than about 2 % of one core.
  const clock::duration pause = scans_ < 20 ? std::chrono::milliseconds(100) : std::chrono::seconds(1);
  next_ = clock::now() + std::max(pause, took * 50);
}

void descendant_scan::scan() {
  std::vector<pid_t> open;
  for (auto entry = processes_.begin(); entry != processes_.end();) {
    const process_stat now = stat_of(entry->first);
    const bool alive = now.state != 0 && now.started == entry->second.started;
    if (alive) open.push_back(entry->first);
    entry = alive ? std::next(entry) : processes_.erase(entry);
  }
  while (!open.empty()) {
    const pid_t pid = open.back();
    open.pop_back();
    judge(pid);
    for (const pid_t child : children_of(pid)) {
      if (processes_.count(child)) continue;
      processes_[child].started = stat_of(child).started;
      open.push_back(child);
    }
  }
}

void descendant_scan::judge(pid_t pid) {
  seen& process = processes_[pid];
  std::error_code error;
  const std::string image = fs::read_symlink(fmt::format("/proc/{}/exe", pid), error);
  const auto owner = owner_of(pid);
  if (error || !owner || (process.settled && process.image == image && process.owner == *owner)) return;
  process.image = image;
  process.owner = *owner;
  const std::string maps = read_file_of(pid, "maps");
  const bool covered = maps.find("/libcapturesan.so") != std::string::npos;
  const bool driver = maps.find("/libcuda.so.") != std::string::npos;
  const bool mute = covered && driver && !may_write(*owner, folder_);
  process.settled = driver || (covered && !mute);
  if ((covered && !mute) || !driver || !listed_.insert({pid, process.started}).second) return;
  uncovered_.push_back(
      {static_cast<std::uint32_t>(pid), command_of(pid) + (mute ? " (may not write into the trace folder)" : "")});
}

std::vector<pid_t> running_processes(const std::string& trace) {
  std::error_code error;
  const std::vector<std::string> files =
      fs::is_directory(trace, error) ? trace_files_in(trace) : std::vector<std::string>{trace};
  std::vector<pid_t> running;
  for (const std::string& path : files) {
    trace::file_header header{};
    const result<std::unique_ptr<byte_source>> file = open_file(path);
    if (!file || file.value()->read(0, &header, sizeof header) != sizeof header) continue;
    if (std::memcmp(header.magic, trace::file_magic, sizeof header.magic) != 0) continue;
    if (header.state.load() != trace::process_state::running) continue;
    const auto pid = static_cast<pid_t>(header.pid);
    const char state = stat_of(pid).state;
    if (state != 0 && state != 'Z' && state != 'X') running.push_back(pid);
  }
  return running;
}

} // namespace capturesan::cli
