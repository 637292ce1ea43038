#include "analyzer/disassembler.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyzer/device_code.h"
#include "analyzer/sass_follow.h"
#include "analyzer/tool_output.h"

namespace capturesan {

namespace {

constexpr const char* tool_name = "cuobjdump";

bool runs(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

// The tool takes a list with commas; what is no name of a function is not passed to it.
bool is_name(std::string_view text) {
  return !text.empty() && text[0] != '-' && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '$' || c == '.';
  });
}

// The tool reads files only.
class file_in_memory {
 public:
  explicit file_in_memory(const std::vector<std::byte>& bytes) : fd_(::memfd_create("fatbin", MFD_CLOEXEC)) {
    std::size_t at = 0;
    while (fd_ >= 0 && at < bytes.size()) {
      const ssize_t n = ::write(fd_, bytes.data() + at, bytes.size() - at);
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
    complete_ = fd_ >= 0 && at == bytes.size();
  }
  ~file_in_memory() {
    if (fd_ >= 0) ::close(fd_);
  }
  file_in_memory(const file_in_memory&) = delete;
  file_in_memory& operator=(const file_in_memory&) = delete;
  int fd() const { return fd_; }
  bool complete() const { return complete_; }

 private:
  int fd_;
  bool complete_ = false;
};

} // namespace

std::string find_disassembler(const std::string& setting) {
  if (setting == "off") return {};
  if (!setting.empty()) {
    const std::string inside = setting + "/" + tool_name;
    return runs(inside) ? inside : runs(setting) ? setting : std::string();
  }
  std::vector<std::string> folders;
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const auto colon = rest.find(':');
    if (colon != 0) folders.emplace_back(rest.substr(0, colon));
    rest = colon == rest.npos ? std::string_view() : rest.substr(colon + 1);
  }
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(name); value != nullptr && *value != 0)
      folders.push_back(std::string(value) + "/bin");
  folders.emplace_back("/usr/local/cuda/bin");
  for (const std::string& folder : folders)
    if (std::string one = folder + "/" + tool_name; runs(one)) return one;
  return {};
}

const std::vector<sass::listing>& disassembler::listings(const code_question& q) {
  const std::string key = fmt::format("{}\n{}\n{:x}\n{}\n{}", q.path, q.build_id, q.image, q.function, q.capability);
  const auto [it, fresh] = known_.try_emplace(key);
  if (!fresh || !is_name(q.function) || left_.count() <= 0) return it->second;
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::byte> fatbin =
      code_for({std::string(q.path), q.build_id, q.started_ns, q.image}, q.capability);
  if (const file_in_memory file(fatbin); !fatbin.empty() && file.complete()) {
    const auto most = std::min<std::chrono::nanoseconds>(limits_.one, left_);
    const auto text = tool_output(
        {tool_, "-sass", "-fun", std::string(q.function), fmt::format("/proc/self/fd/{}", file.fd())}, file.fd(), most);
    if (text) it->second = sass::parse(*text, q.function);
  }
  left_ -= std::chrono::steady_clock::now() - begin;
  return it->second;
}

std::optional<std::string> disassembler::use_of(const code_question& q) {
  sass::question asked;
  asked.how.parameters = q.parameters;
  for (std::size_t k = 0; k < 3; ++k) {
    asked.how.block[k] = static_cast<std::uint32_t>(q.block >> (16 * k) & 0xffff);
    asked.how.grid[k] = static_cast<std::uint32_t>(k == 0 ? q.grid & 0xffffffff : q.grid >> (16 * (k + 1)) & 0xffff);
  }
  asked.offset = q.offset;
  asked.begin = q.begin;
  asked.end = q.end;
  asked.inside_only = q.inside_only;
  // Where several would run on such a device, which one does is not known.
  std::optional<std::string> words;
  for (const sass::listing& code : listings(q)) {
    asked.how.sm = code.sm;
    const auto found = sass::find_use(code, asked);
    if (!found) return std::nullopt;
    words = fmt::format("{} at {:#06x}", found->instruction, found->at);
  }
  return words;
}

} // namespace capturesan
