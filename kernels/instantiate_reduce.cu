#include "kernels.h"
#include "reduce.cuh"

namespace verify_mla {

kernel_entry reduce_entry(int value_tiles, bool partial_bf16) {
  if (value_tiles == 1)
    return {partial_bf16 ? reinterpret_cast<const void*>(&reduce_kernel<1, true>)
                         : reinterpret_cast<const void*>(&reduce_kernel<1, false>)};
  if (value_tiles == 2)
    return {partial_bf16 ? reinterpret_cast<const void*>(&reduce_kernel<2, true>)
                         : reinterpret_cast<const void*>(&reduce_kernel<2, false>)};
  if (value_tiles == 8)
    return {partial_bf16 ? reinterpret_cast<const void*>(&reduce_kernel<8, true>)
                         : reinterpret_cast<const void*>(&reduce_kernel<8, false>)};
  if (value_tiles == 4)
    return {partial_bf16 ? reinterpret_cast<const void*>(&reduce_kernel<4, true>)
                         : reinterpret_cast<const void*>(&reduce_kernel<4, false>)};
  return {};
}

} // namespace verify_mla
