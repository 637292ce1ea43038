#include "sim/image.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>

namespace capturesan::sim {
namespace {

constexpr std::uint32_t wrapper_magic = 0x466243B1;
constexpr std::uint32_t fatbin_magic = 0xBA55ED50;

// The bytes an ELF file takes: up to the end of its section table, its last section or segment.
std::size_t elf_bytes(const std::byte* data) {
  Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof header);
  std::size_t end = header.e_shoff + std::size_t{header.e_shentsize} * header.e_shnum;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, data + header.e_shoff + std::size_t{i} * header.e_shentsize, sizeof section);
    if (section.sh_type != SHT_NOBITS) end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

image_result result_of(std::shared_ptr<const image> loaded, CUresult if_bad) {
  const bool good = loaded != nullptr;
  return {std::move(loaded), good ? CUDA_SUCCESS : if_bad};
}

} // namespace

std::shared_ptr<const kernel_info> image::find_kernel(std::string_view name) const {
  for (const auto& k : kernels)
    if (k->name == name) return k;
  return nullptr;
}

image_result load_image(const void* data) {
  const auto* bytes = static_cast<const std::byte*>(data);
  std::uint32_t magic = 0;
  for (std::size_t i = 0; i < sizeof magic; ++i) { // a text may be shorter
    magic |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
    if (bytes[i] == std::byte{0}) break;
  }
  if (magic == wrapper_magic) {
    const std::byte* inner = nullptr;
    std::memcpy(&inner, bytes + 8, sizeof inner);
    return parse_fatbin(inner);
  }
  if (magic == fatbin_magic) return parse_fatbin(bytes);
  if (std::memcmp(bytes, ELFMAG, 1) == 0 && std::memcmp(bytes, ELFMAG, SELFMAG) == 0)
    return result_of(parse_elf({bytes, elf_bytes(bytes)}), CUDA_ERROR_INVALID_IMAGE);
  return result_of(parse_ptx(reinterpret_cast<const char*>(bytes)), CUDA_ERROR_INVALID_IMAGE);
}

image_result load_image_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {nullptr, CUDA_ERROR_FILE_NOT_FOUND};
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (content.size() < 16) content.resize(16);
  return load_image(content.c_str());
}

} // namespace capturesan::sim
