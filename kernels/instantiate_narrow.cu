#include "kernels.h"
#include "partial.cuh"

namespace verify_mla {

template <int NT> static kernel_entry entry() {
  using config = narrow_config<NT>;
  return {reinterpret_cast<const void*>(&partial_kernel<config>), config::SMEM_BYTES, config::BLOCK};
}

kernel_entry narrow_kernel(int granules) {
  switch (granules) {
  case 2: return entry<2>();
  case 4: return entry<4>();
  default: return {};
  }
}

} // namespace verify_mla
