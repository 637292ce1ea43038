// The bytes of a trace file, for the parts of the reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trace/event.h"
#include "trace/format.h"

namespace capturesan::file_bytes {

inline constexpr std::size_t slot = trace::slot_bytes;

template <class T>
T load(const std::byte* at) {
  T out;
  std::memcpy(&out, at, sizeof(T));
  return out;
}

inline std::uint64_t chunk_offset(std::uint32_t number) {
  return trace::header_bytes + std::uint64_t{number} * trace::chunk_bytes;
}

} // namespace capturesan::file_bytes
