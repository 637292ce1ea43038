// Physical memory of virtual memory management: a file without a name, so that two mappings of one handle are the same
// memory.
#pragma once

#include "sim/cuda_api.h"

#include <cstddef>
#include <unordered_map>

namespace capturesan::sim {

struct physical_memory {
  int file = -1;
  std::size_t bytes = 0;
  CUmemAllocationProp properties{};
  unsigned references = 1; // of the program
  unsigned mappings = 0;
};

} // namespace capturesan::sim
