#include "analyzer/cli/trace_folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <vector>

#include "trace/format.h"
#include "trace/sign.h"

namespace capturesan::cli {

namespace fs = std::filesystem;

namespace {

problem failure(std::string message, std::string hint) {
  problem p;
  p.message = std::move(message);
  p.hint = std::move(hint);
  return p;
}

bool holds_trace(const fs::path& folder) {
  std::error_code error;
  std::vector<uncovered_process> untraced;
  add_untraced(untraced, folder);
  return fs::exists(folder / "session.json", error) || !trace_files_in(folder).empty() || !untraced.empty();
}

result<std::string> use_wanted(const std::string& wanted) {
  std::error_code error;
  const fs::path folder = fs::absolute(wanted, error).lexically_normal();
  const bool existed = fs::exists(folder, error);
  if (!existed) fs::create_directories(folder, error);
  if (error) return failure(fmt::format("cannot make the trace folder {}: {}", wanted, error.message()), "");
  if (!fs::is_directory(folder, error)) return failure(fmt::format("{} is not a folder", wanted), "");
  if (!existed) ::chmod(folder.c_str(), 0700); // a trace names files, arguments and hosts
  const std::string why = unfit_for_trace(folder, trace_room);
  if (!why.empty()) {
    if (!existed) ::rmdir(folder.c_str());
    return failure(fmt::format("no trace can be kept in {}: {}", wanted, why), "choose another with -o");
  }
  if (existed && holds_trace(folder))
    return failure(fmt::format("{} holds a trace already", wanted), "choose a new folder with -o");
  return folder.string();
}

} // namespace

std::string_view network_file_system(std::uint64_t magic) {
  struct row {
    std::uint64_t magic;
    std::string_view name;
  };
  // From statfs(2) and linux/magic.h; Lustre, GPFS, BeeGFS and PanFS from their own headers.
  static constexpr row rows[] = {
      {0x6969, "NFS"},        {0x517b, "SMB"},       {0xff534d42, "CIFS"},   {0xfe534d42, "SMB2"},
      {0x00c36400, "Ceph"},   {0x5346414f, "AFS"},   {0x6b414653, "AFS"},    {0x73757245, "Coda"},
      {0x564c, "NCP"},        {0x01021997, "9P"},    {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},
      {0x19830326, "BeeGFS"}, {0xaad7aaea, "PanFS"}, {0x7461636f, "OCFS2"},  {0x01161970, "GFS2"},
  };
  for (const row& r : rows) {
    if (r.magic == magic) return r.name;
  }
  return {};
}

std::string unfit_for_trace(const std::string& folder, std::uint64_t room) {
  struct statfs system {};
  if (::statfs(folder.c_str(), &system) != 0) return std::strerror(errno);
  const std::string_view network = network_file_system(static_cast<std::uint32_t>(system.f_type));
  if (!network.empty()) return fmt::format("it is on a network file system ({})", network);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return std::strerror(errno);
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) == 0 && space.f_bavail * space.f_frsize < room) {
    return fmt::format("only {} KiB are free", space.f_bavail * space.f_frsize / 1024);
  }
  return {};
}

result<std::string> make_trace_folder(const std::string& wanted, const std::string& session) {
  if (!wanted.empty()) return use_wanted(wanted);
  std::error_code error;
  std::vector<std::string> places = {fs::current_path(error)};
  if (const char* tmp = std::getenv("TMPDIR"); tmp && *tmp) places.push_back(fs::absolute(tmp, error));
  places.emplace_back("/dev/shm");
  std::string reasons;
  for (const std::string& place : places) {
    std::string why = unfit_for_trace(place, trace_room);
    if (why.empty()) {
      const std::string folder = fmt::format("{}/capturesan-trace-{}", place, session);
      if (::mkdir(folder.c_str(), 0700) == 0) return folder;
      why = std::strerror(errno);
    }
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", place, why);
  }
  return failure("no place for the trace: " + reasons, "name a local folder with -o");
}

std::vector<std::string> trace_files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == trace::file_suffix) files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

namespace {

// Folders <prefix><pid>-<name>.
std::vector<std::string> add_signs(std::vector<uncovered_process>& list, const std::string& folder,
                                   std::string_view prefix, std::string_view what) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (const std::string name = at->path().filename(); name.starts_with(prefix)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    std::uint32_t pid = 0;
    const char* const last = name.data() + name.size();
    const auto number = std::from_chars(name.data() + prefix.size(), last, pid);
    if (number.ec != std::errc{} || number.ptr == last || *number.ptr != '-') continue;
    if (std::any_of(list.begin(), list.end(), [&](const uncovered_process& p) { return p.pid == pid; })) continue;
    list.push_back({pid, fmt::format("{} ({})", std::string(number.ptr + 1, last), what)});
  }
  return names;
}

} // namespace

void add_untraced(std::vector<uncovered_process>& list, const std::string& folder) {
  add_signs(list, folder, trace::untraced_prefix, "has it, but could not open its trace");
}

void take_signs_left(std::vector<uncovered_process>& list, const std::string& session) {
  const std::string folder = trace::sign_folder;
  const std::string prefix = fmt::format("{}{}-", trace::sign_prefix, session);
  for (const std::string& name : add_signs(list, folder, prefix, "has it, but may not write into the trace folder"))
    ::rmdir((folder + "/" + name).c_str());
}

} // namespace capturesan::cli
