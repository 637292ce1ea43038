// Whether a kernel, launched with these parameters, uses a word of them as the address of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analyzer/sass_thread.h"

namespace capturesan::sass {

struct question {
  launch how;
  std::uint32_t offset = 0;         // of the word in the parameters
  std::uint64_t begin = 0, end = 0; // the memory that it points into
  bool inside_only = false;         // an address that is not known to lie there proves nothing
};

struct use {
  std::string instruction; // LDG.E
  std::uint32_t at = 0;    // where in the kernel
};

// The first access that a thread makes for certain: all that decides whether it gets there is known, and the address is
// the word with an offset. Nothing: not found, which does not say that there is none.
std::optional<use> find_use(const listing& code, const question& q);

} // namespace capturesan::sass
