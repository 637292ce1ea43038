#include "analyzer/cli/program.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <gelf.h>
#include <initializer_list>
#include <sstream>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace capturesan::cli {

namespace {

constexpr int most_interpreters = 4; // as the kernel

bool regular_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

problem failure(const std::string& name, std::string message) {
  problem p;
  p.message = fmt::format("{}: {}", name, message);
  return p;
}

// The search of execvp: names with a slash are paths, others are looked up in PATH.
result<std::string> find_command(const std::string& name) {
  if (name.empty()) return failure("''", "command not found");
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), F_OK) != 0) return failure(name, std::strerror(errno));
    if (!regular_file(name)) return failure(name, "not a program");
    if (::access(name.c_str(), X_OK) != 0) return failure(name, std::strerror(errno));
    return name;
  }
  const char* variable = std::getenv("PATH");
  std::istringstream folders(variable ? variable : "/bin:/usr/bin");
  std::string denied;
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (!regular_file(path)) continue;
    if (::access(path.c_str(), X_OK) == 0) return path;
    denied = path;
  }
  if (!denied.empty()) return failure(denied, "permission denied");
  return failure(name, "command not found");
}

class elf_file {
 public:
  explicit elf_file(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    elf_version(EV_CURRENT);
    if (fd_ >= 0) elf_ = elf_begin(fd_, ELF_C_READ_MMAP, nullptr);
    if (elf_ && (elf_kind(elf_) != ELF_K_ELF || !gelf_getehdr(elf_, &header_))) {
      elf_end(elf_);
      elf_ = nullptr;
    }
  }
  ~elf_file() {
    if (elf_) elf_end(elf_);
    if (fd_ >= 0) ::close(fd_);
  }
  elf_file(const elf_file&) = delete;
  elf_file& operator=(const elf_file&) = delete;

  bool good() const { return elf_ != nullptr; }
  void describe(program_file& program) const;

 private:
  void look_for_runtime(program_file& program) const;
  void read_dynamic(std::uint64_t offset, std::vector<std::string>& needed) const;

  int fd_;
  Elf* elf_ = nullptr;
  GElf_Ehdr header_{};
};

std::string foreign_kind(const GElf_Ehdr& header) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "32-bit";
#if defined(__x86_64__)
  return header.e_machine == EM_X86_64 ? "" : "built for another architecture";
#elif defined(__aarch64__)
  return header.e_machine == EM_AARCH64 ? "" : "built for another architecture";
#else
  return "";
#endif
}

void elf_file::describe(program_file& program) const {
  program.elf = true;
  program.foreign = foreign_kind(header_);
  look_for_runtime(program);
  std::size_t count = 0;
  elf_getphdrnum(elf_, &count);
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (!gelf_getphdr(elf_, static_cast<int>(i), &segment)) continue;
    if (segment.p_type == PT_DYNAMIC) read_dynamic(segment.p_offset, program.needed);
    if (segment.p_type != PT_INTERP || segment.p_filesz == 0 || segment.p_filesz > PATH_MAX) continue;
    std::string text(segment.p_filesz, '\0');
    const ssize_t got = ::pread(fd_, text.data(), text.size(), static_cast<off_t>(segment.p_offset));
    if (got == static_cast<ssize_t>(text.size())) program.interpreter = text.c_str();
  }
}

bool holds(Elf_Scn* section, std::initializer_list<std::string_view> texts) {
  const Elf_Data* data = elf_rawdata(section, nullptr);
  if (!data || !data->d_buf) return false;
  return std::all_of(texts.begin(), texts.end(), [data](std::string_view text) {
    return ::memmem(data->d_buf, data->d_size, text.data(), text.size()) != nullptr;
  });
}

// nvcc keeps the code for the device in a section of its own; a runtime that is linked in brings the names of its
// errors and that of the driver, and ours a note (sim/runtime/thread.cpp).
void elf_file::look_for_runtime(program_file& program) const {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf_, &names) != 0) return;
  for (Elf_Scn* section = elf_nextscn(elf_, nullptr); section; section = elf_nextscn(elf_, section)) {
    GElf_Shdr header;
    if (!gelf_getshdr(section, &header)) continue;
    const char* text = elf_strptr(elf_, names, header.sh_name);
    const std::string_view name = text ? text : "";
    if (name == ".nv_fatbin") program.device_code = true;
    if (name == ".note.capturesan.runtime") program.own_runtime = true;
    if (name == ".rodata")
      program.runtime_text = holds(section, {"cudaErrorInitializationError", "cudaErrorNoDevice", "libcuda.so.1"});
  }
}

void elf_file::read_dynamic(std::uint64_t offset, std::vector<std::string>& needed) const {
  Elf_Scn* section = gelf_offscn(elf_, offset);
  GElf_Shdr header;
  if (!section || !gelf_getshdr(section, &header) || header.sh_type != SHT_DYNAMIC || header.sh_entsize == 0) return;
  Elf_Data* data = elf_getdata(section, nullptr);
  for (std::size_t i = 0; data && i < header.sh_size / header.sh_entsize; ++i) {
    GElf_Dyn entry;
    if (!gelf_getdyn(data, static_cast<int>(i), &entry) || entry.d_tag != DT_NEEDED) continue;
    if (const char* name = elf_strptr(elf_, header.sh_link, entry.d_un.d_val)) needed.emplace_back(name);
  }
}

// "#!/usr/bin/env python3" -> the words after the mark; empty if it is no script.
std::vector<std::string> script_line(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char text[256] = {};
  const ssize_t got = fd < 0 ? -1 : ::read(fd, text, sizeof text);
  if (fd >= 0) ::close(fd);
  std::vector<std::string> words;
  if (got < 3 || text[0] != '#' || text[1] != '!') return words;
  std::string line(text + 2, static_cast<std::size_t>(got - 2));
  line.erase(std::min(line.find('\n'), line.size()));
  std::istringstream stream(line);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// What runs the script; through `env`, the command that is named there.
std::string script_interpreter(const std::vector<std::string>& words) {
  const bool env = std::filesystem::path(words[0]).filename() == "env";
  for (std::size_t i = 1; env && i < words.size(); ++i) {
    if (words[i].starts_with('-') || words[i].find('=') != std::string::npos) continue;
    const result<std::string> found = find_command(words[i]);
    if (found) return found.value();
    break;
  }
  return words[0];
}

// What makes the kernel set AT_SECURE, upon which the loader ignores LD_PRELOAD.
std::string privilege(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  if ((info.st_mode & S_ISUID) && info.st_uid != ::getuid()) return "setuid";
  if ((info.st_mode & S_ISGID) && (info.st_mode & S_IXGRP) && info.st_gid != ::getgid()) return "setgid";
  if (::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) return "file capabilities";
  return {};
}

} // namespace

std::string program_file::sanitizer() const {
  for (const std::string& library : needed) {
    if (library.starts_with("libasan.so") || library.starts_with("libclang_rt.asan")) return library;
  }
  return {};
}

bool program_file::static_runtime() const {
  const auto shared = [](const std::string& library) { return library.starts_with("libcudart.so"); };
  return (device_code || runtime_text) && !own_runtime && std::none_of(needed.begin(), needed.end(), shared);
}

std::string program_file::other_runtime() const {
  for (const std::string& library : needed)
    if (library.starts_with("libcudart.so") && library != "libcudart.so.13") return library;
  return {};
}

std::string program_file::obstacle() const {
  if (!elf) return {};
  if (!foreign.empty()) return fmt::format("{} is {}, the shim is not", image, foreign);
  if (!privileged.empty()) return fmt::format("{} has {} rights, so the loader ignores LD_PRELOAD", image, privileged);
  if (interpreter.empty()) return fmt::format("{} is statically linked, so LD_PRELOAD does not reach it", image);
  if (musl()) return fmt::format("{} is linked against musl, the shim needs glibc", image);
  return {};
}

result<program_file> inspect_program(const std::string& name) {
  result<std::string> found = find_command(name);
  if (!found) return found.problems();
  program_file program;
  program.path = program.image = found.value();
  for (int i = 0; i < most_interpreters; ++i) {
    const std::vector<std::string> words = script_line(program.image);
    if (words.empty()) break;
    program.image = script_interpreter(words);
  }
  const elf_file file(program.image);
  if (file.good()) {
    file.describe(program);
    program.privileged = privilege(program.image);
  }
  return program;
}

} // namespace capturesan::cli
