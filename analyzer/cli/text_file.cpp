#include "analyzer/cli/text_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace capturesan::cli {

namespace {

problem failure(const std::string& path, std::string message) {
  problem p;
  p.at.file = path;
  p.message = std::move(message);
  return p;
}

class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

} // namespace

result<std::string> read_text_file(const std::string& path, std::size_t most) {
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) return failure(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return failure(path, "not a regular file");
  if (static_cast<std::uint64_t>(info.st_size) > most) {
    return failure(path, fmt::format("larger than {} MiB", most >> 20));
  }
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

} // namespace capturesan::cli
