#include "analyzer/device_code.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace capturesan {

namespace {

// A fatbin: a header, then entries for several architectures, machine code or text, each perhaps compressed.
constexpr std::uint32_t fatbin_magic = 0xba55ed50;
constexpr std::size_t header_bytes = 16, entry_bytes = 64;
constexpr std::uint16_t machine_code = 2;
constexpr std::uint64_t most_bytes = std::uint64_t{256} << 20;

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

class open_file {
 public:
  explicit open_file(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~open_file() {
    if (fd_ >= 0) ::close(fd_);
  }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  int fd() const { return fd_; }
  bool read(std::uint64_t at, void* to, std::size_t bytes) const {
    for (auto* p = static_cast<std::byte*>(to); bytes > 0;) {
      const ssize_t n = ::pread(fd_, p, bytes, static_cast<off_t>(at));
      if (n <= 0) return false;
      p += n;
      at += static_cast<std::uint64_t>(n);
      bytes -= static_cast<std::size_t>(n);
    }
    return true;
  }

 private:
  int fd_;
};

std::vector<Elf64_Phdr> program_headers(const open_file& file) {
  Elf64_Ehdr h{};
  if (!file.read(0, &h, sizeof h) || std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
      h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_phentsize != sizeof(Elf64_Phdr))
    return {};
  std::vector<Elf64_Phdr> all(h.e_phnum);
  if (!file.read(h.e_phoff, all.data(), all.size() * sizeof(Elf64_Phdr))) all.clear();
  return all;
}

bool has_build_id(const open_file& file, const std::vector<Elf64_Phdr>& headers, std::string_view wanted) {
  for (const Elf64_Phdr& ph : headers) {
    if (ph.p_type != PT_NOTE || ph.p_filesz > (1u << 20)) continue;
    std::vector<char> notes(ph.p_filesz);
    if (!file.read(ph.p_offset, notes.data(), notes.size())) continue;
    for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
      Elf64_Nhdr n{};
      std::memcpy(&n, notes.data() + at, sizeof n);
      const std::size_t name = at + sizeof n, body = name + ((n.n_namesz + 3u) & ~3u);
      const std::size_t next = body + ((n.n_descsz + 3u) & ~3u);
      if (next > notes.size() || next <= at) break;
      if (n.n_type == NT_GNU_BUILD_ID && std::string_view(notes.data() + body, n.n_descsz) == wanted) return true;
      at = next;
    }
  }
  return false;
}

bool older_than(const open_file& file, std::uint64_t ns) {
  struct stat s {};
  if (::fstat(file.fd(), &s) != 0) return false;
  const auto changed =
      static_cast<std::uint64_t>(s.st_mtim.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(s.st_mtim.tv_nsec);
  return changed < ns;
}

struct entry {
  std::size_t at = 0, bytes = 0;
  std::uint32_t sm = 0;
};

// Machine code of the same generation as the device, and not of a later member of it.
std::vector<entry> usable_entries(const std::vector<std::byte>& fatbin, std::uint32_t capability) {
  std::vector<entry> all;
  if (fatbin.size() < header_bytes) return all;
  std::size_t at = read<std::uint16_t>(fatbin.data() + 6);
  while (at + entry_bytes <= fatbin.size()) {
    const std::byte* e = fatbin.data() + at;
    const auto head = read<std::uint32_t>(e + 4);
    const auto body = read<std::uint64_t>(e + 8);
    if (head < entry_bytes || head > fatbin.size() - at || body > fatbin.size() - at - head) break;
    const auto sm = read<std::uint32_t>(e + 28);
    const auto bytes = static_cast<std::size_t>(head + body);
    if (read<std::uint16_t>(e) == machine_code && sm / 10 == capability / 10 && sm <= capability)
      all.push_back({at, bytes, sm});
    at += bytes;
  }
  return all;
}

} // namespace

std::vector<std::byte> narrow_fatbin(const std::vector<std::byte>& fatbin, std::uint32_t capability) {
  const std::vector<entry> all = usable_entries(fatbin, capability);
  std::uint32_t best = 0;
  for (const entry& e : all) best = std::max(best, e.sm);
  if (best == 0) return {};
  const auto head = read<std::uint16_t>(fatbin.data() + 6);
  if (head < header_bytes) return {};
  std::vector<std::byte> out(fatbin.begin(), fatbin.begin() + head);
  for (const entry& e : all) {
    if (e.sm != best) continue;
    const auto from = fatbin.begin() + static_cast<std::ptrdiff_t>(e.at);
    out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(e.bytes));
  }
  const std::uint64_t bytes = out.size() - head;
  std::memcpy(out.data() + 8, &bytes, sizeof bytes);
  return out;
}

std::vector<std::byte> code_for(const code_place& where, std::uint32_t capability) {
  const open_file file(where.path);
  if (file.fd() < 0) return {};
  const std::vector<Elf64_Phdr> headers = program_headers(file);
  const bool same =
      where.build_id.empty() ? older_than(file, where.started_ns) : has_build_id(file, headers, where.build_id);
  if (!same) return {};
  for (const Elf64_Phdr& ph : headers) {
    const std::uint64_t in = where.image - ph.p_vaddr;
    if (ph.p_type != PT_LOAD || in >= ph.p_filesz || ph.p_filesz - in < header_bytes) continue;
    std::byte head[header_bytes];
    if (!file.read(ph.p_offset + in, head, sizeof head) || read<std::uint32_t>(head) != fatbin_magic) return {};
    const std::uint64_t bytes = read<std::uint16_t>(head + 6) + read<std::uint64_t>(head + 8);
    if (bytes < header_bytes || bytes > most_bytes || bytes > ph.p_filesz - in) return {};
    std::vector<std::byte> fatbin(static_cast<std::size_t>(bytes));
    if (!file.read(ph.p_offset + in, fatbin.data(), fatbin.size())) return {};
    return narrow_fatbin(fatbin, capability);
  }
  return {};
}

} // namespace capturesan
