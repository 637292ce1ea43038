#include "kernels.h"
#include "partial.cuh"

namespace verify_mla {

template <int NT> static kernel_entry entry(bool bulk) {
  using config = narrow_config<NT>;
  if (bulk) return {reinterpret_cast<const void*>(&partial_kernel<config, loader_kind::bulk>), config::SMEM_BYTES};
  return {reinterpret_cast<const void*>(&partial_kernel<config, loader_kind::async_16>), config::SMEM_BYTES};
}

kernel_entry narrow_kernel(int granules, bool bulk) {
  switch (granules) {
  case 1: return entry<1>(bulk);
  case 2: return entry<2>(bulk);
  case 4: return entry<4>(bulk);
  case 8: return entry<8>(bulk);
  default: return {};
  }
}

} // namespace verify_mla
