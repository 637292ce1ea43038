// Where the bytes of a trace come from: a file that may still grow, or memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/result.h"

namespace capturesan {

class byte_source {
 public:
  virtual ~byte_source() = default;
  // Bytes there are now.
  virtual std::uint64_t size() = 0;
  // Copies up to n bytes from `offset` on; returns how many there were.
  virtual std::size_t read(std::uint64_t offset, void* to, std::size_t n) = 0;
  // Stores n bytes at `offset`, inside what there is. False if the source cannot be written.
  virtual bool write(std::uint64_t offset, const void* from, std::size_t n) = 0;
};

// Reads with pread, never by mapping: a file that shrinks under a reader must not raise SIGBUS.
// `writable`: try to open it for writing too, so that a followed process learns what has been read.
result<std::unique_ptr<byte_source>> open_file(const std::string& path, bool writable = false);
std::unique_ptr<byte_source> from_memory(std::vector<std::byte> bytes);

} // namespace capturesan
