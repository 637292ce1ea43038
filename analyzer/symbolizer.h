// How the analyzer names a return address. The audit is given one; without it frames keep module and offset only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/finding.h"

namespace capturesan {

class symbolizer {
 public:
  virtual ~symbolizer() = default;
  // The frames behind one return address, innermost first (inlined functions, then the function itself). Never empty;
  // all carry `address`. `path` is the file of the ELF object, `build_id` its raw bytes (empty = unknown), run-time
  // address = bias + ELF virtual address.
  virtual std::vector<stack_frame> frame(std::string_view path, std::string_view build_id, std::uint64_t bias,
                                         std::uint64_t address) = 0;
  // The name of a kernel or function as written in source.
  virtual std::string demangle(std::string_view name) { return std::string(name); }
};

} // namespace capturesan
