// Tensor maps: kernels from sm_90 on take most operands in opaque descriptors of 128 bytes. What each was encoded with
// is kept by a hash of its bytes, so that it can be told when it turns up in kernel parameters. The table is fixed; a
// newer descriptor may push out an older one, which then is not told any more.
#pragma once

#include "interpose/cuda_abi.h"
#include "interpose/state.h"

namespace capturesan::shim {

struct tensor_extent {
  u64 address; // 0 = not known
  u64 bytes;   // from there to the end of the tensor
};

// From the address of the first element on, by the arguments that all encoding calls share.
tensor_extent extent_of(CUtensorMapDataType type, u32 rank, const void* address, const cuuint64_t* dims,
                        const cuuint64_t* strides);

void keep_tensor_map(const CUtensorMap* map, tensor_extent e);
tensor_extent find_tensor_map(const void* bytes); // 128 of them
bool any_tensor_map();

// After a successful call of the class tensor_map, by its arguments.
template <class... Rest>
void tensor_map_made(tensor_extent, CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                     const cuuint64_t* dims, const cuuint64_t* strides, Rest...) {
  keep_tensor_map(map, extent_of(type, rank, address, dims, strides));
}
inline void tensor_map_made(tensor_extent before, CUtensorMap* map, void* address) {
  keep_tensor_map(map, {reinterpret_cast<u64>(address), before.bytes});
}

// Before it: what the descriptor was, if the call only changes its address.
template <class... Rest>
tensor_extent tensor_map_before(CUtensorMap*, CUtensorMapDataType, Rest...) {
  return {};
}
inline tensor_extent tensor_map_before(CUtensorMap* map, void*) {
  return map == nullptr ? tensor_extent{} : find_tensor_map(map);
}

} // namespace capturesan::shim
