#include "analyzer/text_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace capturesan {

namespace {

std::string kind_of_file(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

std::string size_in_words(std::size_t bytes) {
  return bytes % (1 << 20) == 0 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes >> 10) + " KiB";
}

} // namespace

result<std::string> read_text_file(const std::string& path, std::size_t most_bytes, const std::string& code) {
  const auto fail = [&](std::string why, std::string hint = {}) {
    return problem{{path}, code, "cannot read the file: " + std::move(why), std::move(hint), ""};
  };
  // Without O_NONBLOCK the open itself would wait for the writer of a pipe.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return fail(std::strerror(errno));
  struct stat s {};
  std::string text;
  std::string why, hint;
  if (::fstat(fd, &s) != 0) {
    why = std::strerror(errno);
  } else if (!S_ISREG(s.st_mode)) {
    why = "it is " + kind_of_file(s.st_mode);
    hint = "name a regular file";
  } else {
    char block[65536];
    ssize_t got = 0;
    // The size that fstat gives may be old by now, and is 0 for files of /proc.
    while (text.size() <= most_bytes && ((got = ::read(fd, block, sizeof block)) > 0 || (got < 0 && errno == EINTR)))
      if (got > 0) text.append(block, static_cast<std::size_t>(got));
    if (got < 0) why = std::strerror(errno);
    if (text.size() > most_bytes) why = "it is larger than " + size_in_words(most_bytes);
  }
  ::close(fd);
  if (!why.empty()) return fail(why, hint);
  return text;
}

} // namespace capturesan
