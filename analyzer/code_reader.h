// Who looks into the code of a kernel for the model. The audit is given one; without it what only the code tells is not
// known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace capturesan {

// Does this launch use a word of its parameters as the address of memory?
struct code_question {
  std::string_view path, build_id; // ELF object that holds the image the kernel came from; raw bytes, may be empty
  std::uint64_t image = 0;         // where in it, as ELF virtual address
  std::uint64_t started_ns = 0;    // CLOCK_REALTIME: the object was mapped later
  std::string_view function;       // mangled
  std::uint32_t capability = 0;    // of the device: 90
  std::span<const std::byte> parameters; // as the device sees them
  std::uint64_t grid = 0, block = 0;     // as in a node record
  std::uint32_t offset = 0;              // of the word
  std::uint64_t begin = 0, end = 0;      // memory that it points into
  bool inside_only = false;              // an access counts only if it is known to lie in there
};

class code_reader {
 public:
  virtual ~code_reader() = default;
  // The access, in words: "LDG.E at 0x0110". Nothing: not known. May take seconds, but not much longer.
  virtual std::optional<std::string> use_of(const code_question& q) = 0;
};

} // namespace capturesan
