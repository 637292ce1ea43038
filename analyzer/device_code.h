// Device code inside an ELF file of the host, as it was when the file was mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace capturesan {

struct code_place {
  std::string path;
  std::string_view build_id;    // raw bytes; empty: the file must be older than the process
  std::uint64_t started_ns = 0; // of the process, CLOCK_REALTIME
  std::uint64_t image = 0;      // ELF virtual address of a fatbin
};

// A fatbin with only the machine code that a device of that capability runs; empty if there is none, so that the driver
// compiled text, or the file is not the one that was mapped.
std::vector<std::byte> code_for(const code_place& where, std::uint32_t capability);

// The same of a fatbin in memory.
std::vector<std::byte> narrow_fatbin(const std::vector<std::byte>& fatbin, std::uint32_t capability);

} // namespace capturesan
