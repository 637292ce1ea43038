#include "analyzer/byte_source.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace capturesan {

namespace {

class file_source final : public byte_source {
 public:
  explicit file_source(int fd) : fd_(fd) {}
  ~file_source() override { ::close(fd_); }
  file_source(const file_source&) = delete;
  file_source& operator=(const file_source&) = delete;

  std::uint64_t size() override {
    struct stat s {};
    return ::fstat(fd_, &s) == 0 && s.st_size > 0 ? static_cast<std::uint64_t>(s.st_size) : 0;
  }

  std::size_t read(std::uint64_t offset, void* to, std::size_t n) override {
    std::size_t done = 0;
    while (done < n) {
      const ssize_t got = ::pread(fd_, static_cast<char*>(to) + done, n - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  bool write(std::uint64_t offset, const void* from, std::size_t n) override {
    return ::pwrite(fd_, from, n, static_cast<off_t>(offset)) == static_cast<ssize_t>(n);
  }

 private:
  int fd_;
};

class memory_source final : public byte_source {
 public:
  explicit memory_source(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() override { return bytes_.size(); }
  std::size_t read(std::uint64_t offset, void* to, std::size_t n) override {
    if (offset >= bytes_.size()) return 0;
    const std::size_t there = std::min<std::uint64_t>(n, bytes_.size() - offset);
    std::memcpy(to, bytes_.data() + offset, there);
    return there;
  }
  bool write(std::uint64_t offset, const void* from, std::size_t n) override {
    if (offset + n > bytes_.size()) return false;
    std::memcpy(bytes_.data() + offset, from, n);
    return true;
  }

 private:
  std::vector<std::byte> bytes_;
};

} // namespace

result<std::unique_ptr<byte_source>> open_file(const std::string& path, bool writable) {
  // O_NONBLOCK: opening a pipe would wait for its other end; it means nothing for regular files.
  constexpr int how = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  int fd = writable ? ::open(path.c_str(), O_RDWR | how) : -1;
  if (fd < 0) fd = ::open(path.c_str(), O_RDONLY | how);
  if (fd < 0) {
    return problem{{path}, "TRC001", "cannot open the trace: " + std::string(std::strerror(errno)), "", ""};
  }
  struct stat s {};
  if (::fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
    ::close(fd);
    return problem{{path}, "TRC001", "not a regular file", "pass a trace file or the folder that holds it", ""};
  }
  return std::unique_ptr<byte_source>(new file_source(fd));
}

std::unique_ptr<byte_source> from_memory(std::vector<std::byte> bytes) {
  return std::make_unique<memory_source>(std::move(bytes));
}

} // namespace capturesan
