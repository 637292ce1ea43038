#include "analyzer/symbols.h"

#include <cstdlib>
#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <filesystem>
#include <map>
#include <unordered_map>

namespace capturesan {

namespace {

std::string base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string plain_name(std::string_view name) {
  std::string text(name);
  if (!text.starts_with("_Z")) return text;
  int status = 0;
  char* plain = abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status);
  if (status == 0 && plain) text = plain;
  std::free(plain);
  return text;
}

// Compilers write paths as they were given, relative to the folder they were started in.
std::string source_path(const char* file, const char* folder) {
  if (!file) return {};
  if (*file == '/' || !folder || *folder != '/') return file;
  return (std::filesystem::path(folder) / file).lexically_normal().string();
}

// Separate debug files are looked for on this machine only: a report must not wait for a server, whatever the
// environment says.
int find_local_debuginfo(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base, const char* file,
                         const char* debuglink, GElf_Word checksum, char** found) {
  constexpr const char* servers = "DEBUGINFOD_URLS";
  const char* value = std::getenv(servers);
  const std::string saved = value ? value : "";
  if (value) ::unsetenv(servers);
  const int fd = dwfl_standard_find_debuginfo(module, data, name, base, file, debuglink, checksum, found);
  if (value) ::setenv(servers, saved.c_str(), 1);
  return fd;
}

// One ELF file in a Dwfl session of its own, mapped at address 0, so that ELF virtual addresses can be asked for.
class object {
 public:
  object(const std::string& path, std::string_view build_id) {
    static const Dwfl_Callbacks callbacks = {dwfl_build_id_find_elf, find_local_debuginfo, dwfl_offline_section_address,
                                             nullptr};
    session_ = dwfl_begin(&callbacks);
    if (!session_) return;
    dwfl_report_begin(session_);
    module_ = dwfl_report_elf(session_, path.c_str(), path.c_str(), -1, 0, false);
    dwfl_report_end(session_, nullptr, nullptr);
    if (module_ && !matches(build_id)) module_ = nullptr;
    if (!module_) return;
    // The session places the file where it likes; this is what it added to the ELF's own addresses.
    dwfl_module_getelf(module_, &bias_);
  }
  ~object() {
    if (session_) dwfl_end(session_);
  }
  object(const object&) = delete;
  object& operator=(const object&) = delete;

  std::vector<stack_frame> frames(std::uint64_t elf_address) const;

 private:
  bool matches(std::string_view wanted) const {
    if (wanted.empty()) return true;
    GElf_Addr where = 0;
    const unsigned char* bits = nullptr;
    const int size = dwfl_module_build_id(module_, &bits, &where);
    return size > 0 && wanted == std::string_view(reinterpret_cast<const char*>(bits), static_cast<std::size_t>(size));
  }
  void add_inlined(std::uint64_t at, std::vector<stack_frame>& frames) const;

  Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  GElf_Addr bias_ = 0;
};

std::string die_name(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (const char* text = dwarf_formstring(dwarf_attr_integrate(die, name, &attribute))) return plain_name(text);
  }
  const char* text = dwarf_diename(die);
  return text ? text : "";
}

// Where `die`, an inlined function, was called: this is the source line of the frame around it.
void call_site(Dwarf_Die* unit, Dwarf_Die* die, std::string& file, int& line) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  Dwarf_Files* files = nullptr;
  file.clear();
  line = 0;
  if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &value) == 0 &&
      dwarf_getsrcfiles(unit, &files, nullptr) == 0) {
    Dwarf_Attribute folder;
    file = source_path(dwarf_filesrc(files, value, nullptr, nullptr),
                       dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &folder)));
  }
  if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &value) == 0) line = static_cast<int>(value);
}

// Puts the functions inlined at `at` before the physical frame, and moves source lines outwards accordingly.
void object::add_inlined(std::uint64_t at, std::vector<stack_frame>& frames) const {
  Dwarf_Addr unit_bias = 0;
  Dwarf_Die* unit = dwfl_module_addrdie(module_, at, &unit_bias);
  if (!unit) return;
  Dwarf_Die* found = nullptr;
  if (dwarf_getscopes(unit, at - unit_bias, &found) <= 0) return;
  // The scopes of a program counter follow the source after an inlined function; those of its entry follow the calls.
  Dwarf_Die innermost = found[0];
  std::free(found);
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes_die(&innermost, &scopes);

  stack_frame& physical = frames.front();
  std::string file = physical.file;
  int line = physical.line;
  std::vector<stack_frame> inlined;
  for (int i = 0; i < count; ++i) {
    const int tag = dwarf_tag(&scopes[i]);
    if (tag == DW_TAG_subprogram) {
      if (physical.symbol.empty()) physical.symbol = die_name(&scopes[i]);
      break;
    }
    if (tag != DW_TAG_inlined_subroutine) continue;
    stack_frame frame;
    frame.module = physical.module;
    frame.symbol = die_name(&scopes[i]);
    frame.file = file;
    frame.line = line;
    inlined.push_back(std::move(frame));
    call_site(unit, &scopes[i], file, line);
  }
  std::free(scopes);
  physical.file = file;
  physical.line = line;
  frames.insert(frames.begin(), std::make_move_iterator(inlined.begin()), std::make_move_iterator(inlined.end()));
}

std::vector<stack_frame> object::frames(std::uint64_t elf_address) const {
  std::vector<stack_frame> frames(1);
  stack_frame& frame = frames.front();
  frame.offset = elf_address;
  if (!module_ || elf_address == 0) return frames;
  // A return address is the place after the call and may belong to the next line, even to the next function.
  const Dwarf_Addr at = elf_address - 1 + bias_;
  GElf_Off offset = 0;
  GElf_Sym symbol;
  if (const char* name = dwfl_module_addrinfo(module_, at, &offset, &symbol, nullptr, nullptr, nullptr)) {
    // Without the symbol version, which says nothing about the place.
    const std::string_view full(name);
    frame.symbol = plain_name(full.substr(0, full.find('@')));
    frame.offset = offset + 1;
  }
  if (Dwfl_Line* source = dwfl_module_getsrc(module_, at)) {
    int line = 0;
    if (const char* file = dwfl_lineinfo(source, nullptr, &line, nullptr, nullptr, nullptr)) {
      frame.file = source_path(file, dwfl_line_comp_dir(source));
      frame.line = line;
    }
  }
  add_inlined(at, frames);
  return frames;
}

} // namespace

struct symbols::state {
  struct entry {
    entry(const std::string& path, std::string_view build_id) : file(path, build_id) {}
    object file;
    std::unordered_map<std::uint64_t, std::vector<stack_frame>> cache; // by ELF address
  };
  std::map<std::pair<std::string, std::string>, std::unique_ptr<entry>> entries; // by path and build id
};

symbols::symbols() : state_(std::make_unique<state>()) {}
symbols::~symbols() = default;

std::vector<stack_frame> symbols::frame(std::string_view path, std::string_view build_id, std::uint64_t bias,
                                        std::uint64_t address) {
  auto& entry = state_->entries[{std::string(path), std::string(build_id)}];
  if (!entry) entry = std::make_unique<state::entry>(std::string(path), build_id);
  const std::uint64_t elf_address = address - bias;
  auto [cached, is_new] = entry->cache.try_emplace(elf_address);
  if (is_new) {
    cached->second = entry->file.frames(elf_address);
    for (stack_frame& frame : cached->second) frame.module = base_name(path);
  }
  std::vector<stack_frame> frames = cached->second;
  for (stack_frame& frame : frames) frame.address = address;
  return frames;
}

std::string symbols::demangle(std::string_view name) { return plain_name(name); }

} // namespace capturesan
