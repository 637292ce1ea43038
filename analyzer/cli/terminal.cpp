#include "analyzer/cli/terminal.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "analyzer/report.h"
#include "analyzer/rule_set.h"

namespace capturesan::cli {

void occupy_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // The lowest free number is taken, so each missing one is filled in turn.
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDWR | O_CLOEXEC);
  }
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

namespace {

std::string failed_output; // the first failure; one command runs in this process

void print_to(int fd, std::string_view name, std::string_view text) {
  if (write_all(fd, text) || !failed_output.empty()) return;
  failed_output = fmt::format("{} cannot be written: {}", name, std::strerror(errno));
}

} // namespace

void print(std::string_view text) { print_to(STDOUT_FILENO, "standard output", text); }
void print_error(std::string_view text) { print_to(STDERR_FILENO, "standard error", text); }
std::string output_failure() { return failed_output; }

void say(std::string_view text) { write_all(STDERR_FILENO, fmt::format("capturesan: {}\n", printable(text))); }

// Problems that have a place in a file look as those of compilers do, so that editors find it.
std::string shown(const problem& p) {
  const std::string text = to_text(p);
  std::string clean;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    clean += printable(std::string_view(text).substr(at, end - at));
    clean += '\n';
    at = end + 1;
  }
  return clean;
}

void complain(const std::vector<problem>& problems) {
  for (const problem& p : problems) {
    if (p.at.line > 0 && p.at.column > 0) {
      write_all(STDERR_FILENO, shown(p));
      continue;
    }
    std::string text = p.at.file.empty() ? p.message : fmt::format("{}: {}", p.at.file, p.message);
    if (!p.code.empty()) text += fmt::format(" [{}]", p.code);
    if (!p.hint.empty()) text += fmt::format("; {}", p.hint);
    say(text);
  }
}

bool colours(int fd) {
  const char* no = std::getenv("NO_COLOR");
  if (no && *no) return false;
  const char* kind = std::getenv("TERM");
  return ::isatty(fd) && kind && std::string_view(kind) != "dumb";
}

} // namespace capturesan::cli
