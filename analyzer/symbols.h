// Names for return addresses: module + address -> function, source line, inlined frames. Built on libdw.
// Debug information may be absent: then a frame has what the symbol table gives, or only its module. Answers are
// cached. Not thread-safe; never throws; opens only the files it is asked about (and their separate debug files).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/finding.h"

namespace capturesan {

// One loaded object, as a module record describes it. Refers to the caller's strings.
struct module_view {
  std::string_view path;     // of the file, absolute
  std::string_view build_id; // raw bytes; empty = not known, then any file at `path` is believed
  std::uint64_t bias = 0;    // run-time address = bias + ELF virtual address
};

class symbols {
 public:
  symbols();
  ~symbols();
  symbols(const symbols&) = delete;
  symbols& operator=(const symbols&) = delete;

  // The frames behind one return address, innermost first: the functions inlined at that place, then the function
  // itself. Never empty. All carry `address`. A file whose build id differs from the recorded one is not used.
  std::vector<stack_frame> resolve(const module_view& module, std::uint64_t address);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

// A C++ or CUDA name as written in source; anything that is not a mangled name comes back unchanged.
std::string demangle(std::string_view name);

} // namespace capturesan
