// Tensor maps: descriptors of 128 bytes that kernels take by value. The arguments are checked as documented; the
// content is the simulation's own, but for the address of the tensor in its first eight bytes.
#include "sim/api.h"

#include <cstring>

namespace capturesan::sim {
namespace {

struct tensor {
  CUtensorMapDataType type;
  cuuint32_t rank;
  const void* address;
  const cuuint64_t* dims;
  const cuuint64_t* strides;
  const cuuint32_t* element_strides;
  CUtensorMapInterleave interleave;
};

constexpr cuuint64_t largest_dim = cuuint64_t{1} << 32, largest_stride = cuuint64_t{1} << 40;

bool multiple_of(const void* pointer, std::size_t unit) { return reinterpret_cast<std::size_t>(pointer) % unit == 0; }

bool valid(const CUtensorMap* map, const tensor& t, cuuint32_t least_rank) {
  if (!map || !multiple_of(map, 64) || t.type > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B) return false;
  if (t.rank < least_rank || t.rank > 5 || !t.dims || !t.element_strides || (t.rank > 1 && !t.strides)) return false;
  const std::size_t alignment = t.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
  if (!t.address || !multiple_of(t.address, alignment)) return false;
  for (cuuint32_t i = 0; i < t.rank; ++i) {
    if (t.dims[i] == 0 || t.dims[i] > largest_dim || t.element_strides[i] == 0 || t.element_strides[i] > 8)
      return false;
    if (i + 1 < t.rank && (t.strides[i] % alignment != 0 || t.strides[i] >= largest_stride)) return false;
  }
  return true;
}

// Different tensors give different descriptors.
void write(CUtensorMap* map, const tensor& t, cuuint64_t more) {
  std::memset(map, 0, sizeof *map);
  map->opaque[0] = reinterpret_cast<cuuint64_t>(t.address);
  map->opaque[1] =
      static_cast<cuuint64_t>(t.type) | cuuint64_t{t.rank} << 8 | static_cast<cuuint64_t>(t.interleave) << 16;
  map->opaque[2] = more;
  for (cuuint32_t i = 0; i < t.rank; ++i) {
    map->opaque[3 + i] = t.dims[i];
    if (i + 1 < t.rank) map->opaque[8 + i] = t.strides[i];
    map->opaque[12] |= cuuint64_t{t.element_strides[i]} << (8 * i);
  }
}

} // namespace

namespace api {

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  const tensor t{type, rank, address, dims, strides, element_strides, interleave};
  if (!valid(map, t, 1) || !box) return CUDA_ERROR_INVALID_VALUE;
  cuuint64_t boxes = static_cast<cuuint64_t>(swizzle) << 48;
  for (cuuint32_t i = 0; i < rank; ++i) {
    if (box[i] == 0 || box[i] > 256) return CUDA_ERROR_INVALID_VALUE;
    boxes += cuuint64_t{box[i]} << (9 * i);
  }
  write(map, t, boxes);
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                 const cuuint64_t* dims, const cuuint64_t* strides, const int* lower, const int* upper,
                                 cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill) {
  const tensor t{type, rank, address, dims, strides, element_strides, interleave};
  if (!valid(map, t, 3) || !lower || !upper || channels > 256 || pixels > 1024) return CUDA_ERROR_INVALID_VALUE;
  write(map, t, cuuint64_t{channels} << 32 | pixels);
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                     const cuuint64_t* dims, const cuuint64_t* strides, int, int, cuuint32_t channels,
                                     cuuint32_t pixels, const cuuint32_t* element_strides,
                                     CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode, CUtensorMapSwizzle,
                                     CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  const tensor t{type, rank, address, dims, strides, element_strides, interleave};
  if (!valid(map, t, 3) || channels > 256 || pixels > 1024) return CUDA_ERROR_INVALID_VALUE;
  write(map, t, cuuint64_t{channels} << 32 | pixels);
  return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  if (!map || !multiple_of(map, 64) || !address || !multiple_of(address, 16)) return CUDA_ERROR_INVALID_VALUE;
  map->opaque[0] = reinterpret_cast<cuuint64_t>(address);
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace capturesan::sim
