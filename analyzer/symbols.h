// Names for return addresses: module + address -> function, source line, inlined frames. Built on libdw.
// Debug information may be absent: then a frame has what the symbol table gives, or only its module. Answers are
// cached. Not thread-safe; never throws; opens only the files it is asked about (and their separate debug files).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/symbolizer.h"

namespace capturesan {

class symbols : public symbolizer {
 public:
  symbols();
  ~symbols() override;
  symbols(const symbols&) = delete;
  symbols& operator=(const symbols&) = delete;

  // A file whose build id differs from the recorded one is not used.
  std::vector<stack_frame> frame(std::string_view path, std::string_view build_id, std::uint64_t bias,
                                 std::uint64_t address) override;
  // Anything that is not a mangled name comes back unchanged.
  std::string demangle(std::string_view name) override;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace capturesan
