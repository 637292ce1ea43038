#include "analyzer/cli/report_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/cli/terminal.h"
#include "analyzer/text_file.h"

namespace capturesan::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_source_bytes = 8 << 20;

problem failure(std::string message, std::string hint = {}) {
  problem p;
  p.message = std::move(message);
  p.hint = std::move(hint);
  return p;
}

result<const report_format*> format_named(const std::string& name) {
  if (const report_format* format = find_format(name)) return format;
  std::string known;
  std::vector<std::string_view> names;
  for (const report_format& format : report_formats) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", format.name);
    names.push_back(format.name);
  }
  const std::string near = did_you_mean(name, names);
  return failure(fmt::format("--report: unknown format '{}'", name),
                 near.empty() ? "there are " + known : fmt::format("did you mean {}?", near));
}

// What the name stands for, links followed; the last part need not exist.
std::string resolved(const std::string& file) {
  std::error_code error;
  fs::path path = fs::absolute(file, error);
  for (int links = 0; links < 16 && !fs::exists(path, error) && fs::is_symlink(path, error); ++links)
    path = path.parent_path() / fs::read_symlink(path, error);
  const fs::path real = fs::weakly_canonical(path, error);
  return error ? file : real.string();
}

bool is_regular_or_absent(const std::string& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) != 0 ? errno == ENOENT : S_ISREG(info.st_mode);
}

// A new file beside `file`, to take its place; its name goes to `name`.
int open_beside(const std::string& file, std::string& name) {
  name = fmt::format("{}.{}.tmp", file, ::getpid());
  ::unlink(name.c_str());
  return ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

// Opens the file as it will be opened in the end: better now than after hours of a run. Leaves nothing behind: there
// may be no report to write. Returns the file's identity, by which two names of one file are known; a device has none,
// it may be named twice.
result<std::optional<std::string>> try_file(const std::string& file, const std::string& folder) {
  const std::string target = resolved(file);
  std::error_code error;
  const bool in_new_folder = !folder.empty() && !fs::exists(folder, error) &&
                             fs::path(target).parent_path() == fs::path(resolved(folder)).lexically_normal();
  if (in_new_folder) return std::optional(target); // it is made, and tried, before the program starts
  std::string beside;
  struct stat there {};
  const bool absent = ::stat(target.c_str(), &there) != 0 && errno == ENOENT;
  // Opened and closed again, a pipe would be at its end for a reader that waits already.
  if (!absent && S_ISFIFO(there.st_mode) && ::access(target.c_str(), W_OK) == 0) {
    return std::optional(fmt::format("{}:{}", there.st_dev, there.st_ino));
  }
  const int fd =
      absent ? open_beside(target, beside) : ::open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 && errno == ENXIO) return std::optional<std::string>(); // a pipe nobody reads yet
  if (fd < 0) return failure(fmt::format("--report: {} cannot be written: {}", file, std::strerror(errno)));
  struct stat info {};
  const bool one_of_a_kind = ::fstat(fd, &info) == 0 && !S_ISCHR(info.st_mode);
  ::close(fd);
  if (absent) ::unlink(beside.c_str());
  if (!one_of_a_kind) return std::optional<std::string>();
  return std::optional(absent ? target : fmt::format("{}:{}", info.st_dev, info.st_ino));
}

// False, with errno, if the text did not get there; nothing of it then is.
bool replace_file(const std::string& file, const std::string& text) {
  std::string beside;
  const int fd = open_beside(file, beside);
  if (fd < 0) return false;
  struct stat old {};
  bool good = ::stat(file.c_str(), &old) != 0 || ::fchmod(fd, old.st_mode & 07777) == 0;
  good = write_all(fd, text) && good;
  int error = errno;
  if (::close(fd) != 0 && good) {
    good = false;
    error = errno;
  }
  if (good && ::rename(beside.c_str(), file.c_str()) == 0) return true;
  if (good) error = errno;
  ::unlink(beside.c_str());
  errno = error;
  return false;
}

// A pipe waits for its reader, but not for ever.
int open_to_write(const std::string& file) {
  constexpr int tries = 50;
  for (int n = 0;; ++n) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (fd >= 0) {
      ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
      return fd;
    }
    if (errno != ENXIO || n == tries) return fd;
    ::usleep(100'000);
  }
}

bool write_in_place(const std::string& file, const std::string& text) {
  const int fd = open_to_write(file);
  const bool written = fd >= 0 && write_all(fd, text);
  const int error = errno;
  const bool closed = fd < 0 || ::close(fd) == 0;
  if (!written) errno = error;
  return written && closed;
}

} // namespace

result<std::vector<report_target>> report_targets(const option_values& options) {
  std::vector<report_target> targets;
  std::set<std::string> files;
  std::set<std::string_view> unnamed;
  for (const std::string& text : options.list("report")) {
    const auto equals = text.find('=');
    const result<const report_format*> format = format_named(text.substr(0, equals));
    if (!format) return format.problems();
    report_target target{format.value(), {}};
    if (equals == std::string::npos) {
      if (!unnamed.insert(target.format->name).second) {
        return failure(fmt::format("--report {} is given twice", target.format->name));
      }
      targets.push_back(target);
      continue;
    }
    target.file = text.substr(equals + 1);
    if (target.file.empty()) return failure(fmt::format("--report {}: no file after the =", text));
    const result<std::optional<std::string>> id = try_file(target.file, options.text("output"));
    if (!id) return id.problems();
    if (id.value() && !files.insert(*id.value()).second) {
      return failure(fmt::format("two reports would be written to {}", target.file));
    }
    targets.push_back(target);
  }
  return targets;
}

bool write_file(const std::string& file, const std::string& text) {
  const std::string target = resolved(file);
  bool in_place = !is_regular_or_absent(target);
  bool written = !in_place && replace_file(target, text);
  // A folder that takes no new file, or a file that is a mount of its own.
  if (!written && !in_place && (errno == EACCES || errno == EPERM || errno == EBUSY || errno == EXDEV)) in_place = true;
  if (in_place) written = write_in_place(target, text);
  if (!written)
    say(fmt::format("{} could not be written: {}", file,
                    errno == ENXIO ? "nobody reads the pipe" : std::strerror(errno)));
  return written;
}

bool write_report_file(const report_target& target, const report_data& data) {
  return write_file(target.file, target.format->write(data, {}));
}

bool write_companions(const std::vector<report_target>& targets, const report_data& data) {
  const char* page = std::getenv("GITHUB_STEP_SUMMARY");
  const bool wanted = std::any_of(targets.begin(), targets.end(),
                                  [](const report_target& t) { return t.format->write == write_github; });
  if (!wanted || !page || !*page) return true;
  const int fd = ::open(page, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const bool written = fd >= 0 && write_all(fd, github_summary(data));
  const int error = errno;
  const bool closed = fd < 0 || ::close(fd) == 0;
  if (!written || !closed) say(fmt::format("the step summary {} could not be written: {}", page, std::strerror(error)));
  return written && closed;
}

std::function<std::string(const std::string&, int)> source_reader() {
  using lines = std::vector<std::string>;
  auto files = std::make_shared<std::map<std::string, lines>>();
  return [files](const std::string& path, int line) -> std::string {
    const auto [at, fresh] = files->try_emplace(path);
    if (fresh) {
      const result<std::string> text = read_text_file(path, most_source_bytes);
      for (std::size_t begin = 0; text && begin < text.value().size();) {
        const std::size_t end = std::min(text.value().find('\n', begin), text.value().size());
        at->second.push_back(text.value().substr(begin, end - begin));
        begin = end + 1;
      }
    }
    const auto index = static_cast<std::size_t>(line) - 1;
    return line > 0 && index < at->second.size() ? at->second[index] : std::string();
  };
}

} // namespace capturesan::cli
