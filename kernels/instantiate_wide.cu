#include "kernels.h"
#include "partial.cuh"

namespace verify_mla {

template <int NT> static kernel_entry entry() {
  using config = wide_config<NT>;
  return {reinterpret_cast<const void*>(&partial_kernel<config>), config::SMEM_BYTES, config::BLOCK};
}

kernel_entry wide_kernel(int granules) {
  switch (granules) {
  case 2: return entry<2>();
  case 4: return entry<4>();
  case 8: return entry<8>();
  case 9: return entry<9>();
  default: return {};
  }
}

} // namespace verify_mla
