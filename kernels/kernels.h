// Kernel entry points by configuration. Each instantiate_*.cu defines one, so that they compile side by side.
#pragma once

#include "kernel_args.h"

#include <cstddef>

namespace verify_mla {

struct kernel_entry {
  const void* function = nullptr;
  size_t smem_bytes = 0; // dynamic
  int threads = 0;
};

// granules: 2, 4, and if wide 6, 8. No such kernel: function is null.
kernel_entry wide_kernel(int granules, bool partial_bf16);
kernel_entry narrow_kernel(int granules, bool partial_bf16);
kernel_entry reduce_entry(int value_tiles, bool partial_bf16);

} // namespace verify_mla
