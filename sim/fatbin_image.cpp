// Fatbins: a header, then entries for several architectures, PTX or cubins, each perhaps compressed.
#include "sim/image.h"

#include <cstring>
#include <lz4.h>
#include <zstd.h>

namespace capturesan::sim {
namespace {

constexpr std::uint32_t simulated_sm = 90;

struct entry_info {
  bool is_elf = false;
  std::uint32_t sm = 0;
  std::uint64_t flags = 0;
  std::span<const std::byte> stored;
  std::size_t raw_bytes = 0;
};

enum : std::uint64_t { flag_lz4 = 0x2000, flag_zstd = 0x8000 };

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::vector<entry_info> entries_of(const std::byte* header) {
  std::vector<entry_info> all;
  const std::byte* at = header + read<std::uint16_t>(header + 6);
  const std::byte* const end = at + read<std::uint64_t>(header + 8);
  while (at + 64 <= end) {
    entry_info e;
    const auto header_bytes = read<std::uint32_t>(at + 4);
    const auto padded = read<std::uint64_t>(at + 8);
    const auto compressed = read<std::uint32_t>(at + 16);
    if (header_bytes < 64 || padded > static_cast<std::uint64_t>(end - at) - header_bytes) break;
    e.is_elf = read<std::uint16_t>(at) == 2;
    e.sm = read<std::uint32_t>(at + 28);
    e.flags = read<std::uint64_t>(at + 40);
    e.raw_bytes = read<std::uint64_t>(at + 56);
    const bool packed = e.flags & (flag_lz4 | flag_zstd);
    e.stored = {at + header_bytes, packed && compressed ? compressed : static_cast<std::size_t>(padded)};
    all.push_back(e);
    at += header_bytes + padded;
  }
  return all;
}

// Empty: damaged.
std::vector<std::byte> unpack(const entry_info& e) {
  if (!(e.flags & (flag_lz4 | flag_zstd))) return {e.stored.begin(), e.stored.end()};
  std::vector<std::byte> raw(e.raw_bytes);
  if (e.flags & flag_zstd) {
    const auto n = ZSTD_decompress(raw.data(), raw.size(), e.stored.data(), e.stored.size());
    if (ZSTD_isError(n))
      raw.clear();
    else
      raw.resize(n);
  } else {
    const int n =
        LZ4_decompress_safe(reinterpret_cast<const char*>(e.stored.data()), reinterpret_cast<char*>(raw.data()),
                            static_cast<int>(e.stored.size()), static_cast<int>(raw.size()));
    if (n < 0)
      raw.clear();
    else
      raw.resize(static_cast<std::size_t>(n));
  }
  return raw;
}

// A real device takes code of its own architecture, else PTX. The layouts are the same in any of them, so what is left
// is better than nothing: a simulation should run what was built for another device.
int preference(const entry_info& e) {
  if (e.is_elf && e.sm == simulated_sm) return 3;
  if (!e.is_elf && e.sm <= simulated_sm) return 2;
  return e.is_elf ? 1 : 0;
}

} // namespace

image_result parse_fatbin(const std::byte* header) {
  const auto all = entries_of(header);
  const entry_info* best = nullptr;
  for (const auto& e : all)
    if (!best || preference(e) > preference(*best)) best = &e;
  if (!best) return {nullptr, CUDA_ERROR_NO_BINARY_FOR_GPU};
  const auto raw = unpack(*best);
  const auto* text = reinterpret_cast<const char*>(raw.data());
  auto loaded = raw.empty() ? nullptr : best->is_elf ? parse_elf(raw) : parse_ptx({text, strnlen(text, raw.size())});
  const bool good = loaded != nullptr;
  return {std::move(loaded), good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE};
}

} // namespace capturesan::sim
