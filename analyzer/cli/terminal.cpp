#include "analyzer/cli/terminal.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "analyzer/report.h"

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

void say(std::string_view text) { write_all(STDERR_FILENO, fmt::format("capturesan: {}\n", printable(text))); }

void complain(const std::vector<problem>& problems) {
  for (const problem& p : problems) {
    std::string where;
    if (!p.at.file.empty()) {
      where = p.at.file;
      if (p.at.line) where += fmt::format(":{}", p.at.line);
      if (p.at.line && p.at.column) where += fmt::format(":{}", p.at.column);
      where += ": ";
    }
    std::string text = fmt::format("capturesan: {}{}{}", printable(where), printable(p.message),
                                   p.code.empty() ? "" : fmt::format(" [{}]", printable(p.code)));
    if (!p.hint.empty()) text += fmt::format("; {}", printable(p.hint));
    text += '\n';
    if (!p.excerpt.empty()) {
      text += fmt::format("    {}\n", printable(p.excerpt));
      if (p.at.column > 0) text += fmt::format("    {:{}}^\n", "", p.at.column - 1);
    }
    write_all(STDERR_FILENO, text);
  }
}

bool colours(int fd) {
  const char* no = std::getenv("NO_COLOR");
  if (no && *no) return false;
  const char* kind = std::getenv("TERM");
  return ::isatty(fd) && kind && std::string_view(kind) != "dumb";
}

} // namespace capturesan::cli
