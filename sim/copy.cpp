// Copies and sets as loops over rows.
#include "sim/work.h"

#include <algorithm>
#include <cstring>

namespace capturesan::sim {
namespace {

// One side of a copy.
struct side {
  CUdeviceptr start; // of the first row
  std::size_t pitch;
  std::size_t slice; // bytes from one depth to the next
};

side make_side(CUdeviceptr base, std::size_t x, std::size_t y, std::size_t z, std::size_t pitch, std::size_t height,
               const CUDA_MEMCPY3D& shape) {
  if (pitch == 0) pitch = shape.WidthInBytes;
  if (height == 0) height = shape.Height;
  const std::size_t slice = pitch * height;
  return {base + x + y * pitch + z * slice, pitch, slice};
}

CUdeviceptr address(CUmemorytype type, const void* host, CUdeviceptr dev) {
  return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : dev;
}

side source_side(const CUDA_MEMCPY3D& s) {
  return make_side(address(s.srcMemoryType, s.srcHost, s.srcDevice), s.srcXInBytes, s.srcY, s.srcZ, s.srcPitch,
                   s.srcHeight, s);
}

side target_side(const CUDA_MEMCPY3D& s) {
  return make_side(address(s.dstMemoryType, s.dstHost, s.dstDevice), s.dstXInBytes, s.dstY, s.dstZ, s.dstPitch,
                   s.dstHeight, s);
}

copy_range range_of(const side& one, const CUDA_MEMCPY3D& shape) {
  if (shape.WidthInBytes == 0 || shape.Height == 0 || shape.Depth == 0) return {one.start, 0};
  return {one.start, (shape.Depth - 1) * one.slice + (shape.Height - 1) * one.pitch + shape.WidthInBytes};
}

} // namespace

copy_range source_of(const CUDA_MEMCPY3D& shape) { return range_of(source_side(shape), shape); }
copy_range target_of(const CUDA_MEMCPY3D& shape) { return range_of(target_side(shape), shape); }

void run_copy(const CUDA_MEMCPY3D& shape) {
  const side from = source_side(shape), to = target_side(shape);
  for (std::size_t z = 0; z < shape.Depth; ++z)
    for (std::size_t y = 0; y < shape.Height; ++y)
      std::memmove(reinterpret_cast<void*>(to.start + z * to.slice + y * to.pitch),
                   reinterpret_cast<const void*>(from.start + z * from.slice + y * from.pitch), shape.WidthInBytes);
}

copy_range target_of(const CUDA_MEMSET_NODE_PARAMS& s) {
  if (s.width == 0 || s.height == 0) return {s.dst, 0};
  return {s.dst, (s.height - 1) * s.pitch + s.width * s.elementSize};
}

void run_fill(const CUDA_MEMSET_NODE_PARAMS& s) {
  for (std::size_t y = 0; y < s.height; ++y) {
    auto* row = reinterpret_cast<unsigned char*>(s.dst + y * s.pitch);
    if (s.elementSize == 1)
      std::memset(row, static_cast<int>(s.value & 0xff), s.width);
    else if (s.elementSize == 2)
      std::fill_n(reinterpret_cast<std::uint16_t*>(row), s.width, static_cast<std::uint16_t>(s.value));
    else
      std::fill_n(reinterpret_cast<std::uint32_t*>(row), s.width, static_cast<std::uint32_t>(s.value));
  }
}

} // namespace capturesan::sim
