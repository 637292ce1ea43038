#include "kernels.h"
#include "partial.cuh"

namespace verify_mla {

template <int NT>
static kernel_entry entry(bool partial_bf16) {
  using config = wide_config<NT>;
  const void* function = partial_bf16 ? reinterpret_cast<const void*>(&partial_kernel<config, true>)
                                      : reinterpret_cast<const void*>(&partial_kernel<config, false>);
  return {function, config::SMEM_BYTES, config::BLOCK};
}

kernel_entry wide_kernel(int granules, bool partial_bf16) {
  switch (granules) {
  case 2:
    return entry<2>(partial_bf16);
  case 4:
    return entry<4>(partial_bf16);
  case 5:
    return entry<5>(partial_bf16);
  case 6:
    return entry<6>(partial_bf16);
  case 8:
    return entry<8>(partial_bf16);
  default:
    return {};
  }
}

} // namespace verify_mla
