// Cubins: ELF files whose `.nv.info.<kernel>` sections describe the parameters of each kernel.
#include "sim/image.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <map>

namespace capturesan::sim {
namespace {

// Attributes of .nv.info sections that matter here.
enum : std::uint8_t {
  attribute_max_threads = 0x05,
  attribute_parameter = 0x17,
  attribute_parameter_bytes = 0x19,
  attribute_register_count = 0x2f,
  attribute_parameter_large = 0x45
};
constexpr std::uint8_t format_sized = 0x04; // only this format has a payload behind its four bytes

class elf_reader {
 public:
  explicit elf_reader(std::span<const std::byte> file) : file_(file) {}

  std::shared_ptr<const image> read();

 private:
  template <class T>
  bool get(std::size_t offset, T& value) const {
    if (offset > file_.size() || file_.size() - offset < sizeof value) return false;
    std::memcpy(&value, file_.data() + offset, sizeof value);
    return true;
  }
  bool read_sections();
  void read_symbols();
  std::string_view text_at(const Elf64_Shdr& table, std::size_t offset) const;
  std::span<const std::byte> content(const Elf64_Shdr& section) const;
  const Elf64_Shdr* section(std::string_view name) const;
  template <class F>
  static void for_each_attribute(std::span<const std::byte> info, F&& act);
  void read_kernel(std::string name);
  void read_registers();
  void read_variable(const Elf64_Sym& symbol, std::string_view name);

  std::span<const std::byte> file_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::string_view> names_;
  std::vector<Elf64_Sym> symbols_;
  std::vector<std::string_view> symbol_names_;
  std::map<std::string, std::shared_ptr<kernel_info>, std::less<>> kernels_;
  image result_;
};

std::string_view elf_reader::text_at(const Elf64_Shdr& table, std::size_t offset) const {
  if (offset >= table.sh_size || table.sh_offset + table.sh_size > file_.size()) return {};
  const auto* start = reinterpret_cast<const char*>(file_.data() + table.sh_offset + offset);
  return {start, strnlen(start, table.sh_size - offset)};
}

std::span<const std::byte> elf_reader::content(const Elf64_Shdr& s) const {
  if (s.sh_type == SHT_NOBITS || s.sh_offset > file_.size() || s.sh_size > file_.size() - s.sh_offset) return {};
  return file_.subspan(s.sh_offset, s.sh_size);
}

const Elf64_Shdr* elf_reader::section(std::string_view name) const {
  auto found = std::find(names_.begin(), names_.end(), name);
  return found == names_.end() ? nullptr : &sections_[static_cast<std::size_t>(found - names_.begin())];
}

bool elf_reader::read_sections() {
  if (!get(0, header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 || header_.e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  for (unsigned i = 0; i < header_.e_shnum; ++i) {
    Elf64_Shdr s;
    if (!get(header_.e_shoff + std::size_t{i} * header_.e_shentsize, s)) return false;
    sections_.push_back(s);
  }
  if (header_.e_shstrndx >= sections_.size()) return false;
  for (const auto& s : sections_) names_.push_back(text_at(sections_[header_.e_shstrndx], s.sh_name));
  return true;
}

void elf_reader::read_symbols() {
  for (const auto& s : sections_) {
    if (s.sh_type != SHT_SYMTAB || s.sh_link >= sections_.size()) continue;
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= s.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      if (!get(s.sh_offset + at, symbol)) return;
      symbols_.push_back(symbol);
      symbol_names_.push_back(text_at(sections_[s.sh_link], symbol.st_name));
    }
    return;
  }
}

template <class F>
void elf_reader::for_each_attribute(std::span<const std::byte> info, F&& act) {
  for (std::size_t at = 0; at + 4 <= info.size();) {
    const auto format = std::to_integer<std::uint8_t>(info[at]), which = std::to_integer<std::uint8_t>(info[at + 1]);
    std::uint16_t value;
    std::memcpy(&value, info.data() + at + 2, sizeof value);
    at += 4;
    if (format != format_sized) {
      act(which, value, std::span<const std::byte>{});
      continue;
    }
    if (value > info.size() - at) return;
    act(which, value, info.subspan(at, value));
    at += value;
  }
}

std::uint32_t word(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::uint16_t half(std::span<const std::byte> bytes, std::size_t at) {
  std::uint16_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void elf_reader::read_kernel(std::string name) {
  auto kernel = std::make_shared<kernel_info>();
  kernel->name = name;
  std::map<unsigned, parameter> by_ordinal; // entries are not in order
  if (const auto* info = section(".nv.info." + name)) {
    for_each_attribute(
        content(*info), [&](std::uint8_t which, std::uint16_t value, std::span<const std::byte> payload) {
          if (which == attribute_parameter && payload.size() >= 12)
            by_ordinal[half(payload, 4)] = {half(payload, 6), word(payload, 8) >> 18};
          else if (which == attribute_parameter_large && payload.size() >= 12)
            by_ordinal[half(payload, 4)] = {half(payload, 6), word(payload, 8) & 0xffffff}; // the top byte has flags
          else if (which == attribute_parameter_bytes)
            kernel->parameter_bytes = value;
          else if (which == attribute_max_threads && payload.size() >= 12)
            kernel->max_threads = static_cast<int>(word(payload, 0) * word(payload, 4) * word(payload, 8));
        });
  }
  for (const auto& [ordinal, p] : by_ordinal) kernel->parameters.push_back(p);
  for (const auto& p : kernel->parameters)
    kernel->parameter_bytes = std::max(kernel->parameter_bytes, p.offset + p.size);
  if (const auto* shared = section(".nv.shared." + name)) kernel->shared_bytes = static_cast<int>(shared->sh_size);
  kernels_.emplace(std::move(name), std::move(kernel));
}

void elf_reader::read_registers() {
  const auto* info = section(".nv.info");
  if (!info) return;
  for_each_attribute(content(*info), [&](std::uint8_t which, std::uint16_t, std::span<const std::byte> payload) {
    if (which != attribute_register_count || payload.size() < 8 || word(payload, 0) >= symbol_names_.size()) return;
    auto found = kernels_.find(symbol_names_[word(payload, 0)]);
    if (found != kernels_.end()) found->second->registers = static_cast<int>(word(payload, 4));
  });
}

void elf_reader::read_variable(const Elf64_Sym& symbol, std::string_view name) {
  if (symbol.st_shndx >= sections_.size()) return;
  const auto where = names_[symbol.st_shndx];
  if (!where.starts_with(".nv.global") && where != ".nv.constant3") return;
  variable_info variable;
  variable.name = name;
  variable.bytes = symbol.st_size;
  const auto bytes = content(sections_[symbol.st_shndx]);
  if (symbol.st_value <= bytes.size() && symbol.st_size <= bytes.size() - symbol.st_value) {
    const auto initial = bytes.subspan(symbol.st_value, symbol.st_size);
    variable.initial.assign(initial.begin(), initial.end());
  }
  result_.variables.push_back(std::move(variable));
}

std::shared_ptr<const image> elf_reader::read() {
  if (!read_sections()) return nullptr;
  read_symbols();
  constexpr std::string_view code = ".text.";
  for (const auto name : names_)
    if (name.starts_with(code) && section(".nv.info." + std::string(name.substr(code.size()))))
      read_kernel(std::string(name.substr(code.size())));
  read_registers();
  for (std::size_t i = 0; i < symbols_.size(); ++i)
    if (ELF64_ST_TYPE(symbols_[i].st_info) == STT_OBJECT) read_variable(symbols_[i], symbol_names_[i]);
  for (auto& [name, kernel] : kernels_) result_.kernels.push_back(std::move(kernel));
  return std::make_shared<const image>(std::move(result_));
}

} // namespace

std::shared_ptr<const image> parse_elf(std::span<const std::byte> elf) { return elf_reader(elf).read(); }

} // namespace capturesan::sim
