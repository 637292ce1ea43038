#include "sim/runtime/api.h"
#include "sim/runtime/driver.h"
#include "sim/runtime/thread.h"

namespace capturesan::runtime {
namespace {

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
unsigned char byte(int value) { return static_cast<unsigned char>(value); }

// A 3D set is one of rows where the slices follow each other, else one for each slice.
template <class Set>
cudaError_t set_slices(cudaPitchedPtr at, cudaExtent extent, const Set& set) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
  if (extent.width > at.pitch || (extent.depth > 1 && extent.height > at.ysize)) return cudaErrorInvalidValue;
  if (extent.height == at.ysize) return from_driver(set(address(at.ptr), extent.height * extent.depth));
  for (std::size_t z = 0; z < extent.depth; ++z)
    if (CUresult r = set(address(at.ptr) + z * at.pitch * at.ysize, extent.height)) return from_driver(r);
  return cudaSuccess;
}

} // namespace

namespace api {

cudaError_t cudaMemset(void* target, int value, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  return from_driver(CU_PTDS(cuMemsetD8_v2)(address(target), byte(value), bytes));
}

cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  return from_driver(CU_PTSZ(cuMemsetD8Async)(address(target), byte(value), bytes, stream));
}

cudaError_t cudaMemset2D(void* target, size_t pitch, int value, size_t width, size_t height) {
  if (width == 0 || height == 0) return cudaSuccess;
  return from_driver(CU_PTDS(cuMemsetD2D8_v2)(address(target), pitch, byte(value), width, height));
}

cudaError_t cudaMemset2DAsync(void* target, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  if (width == 0 || height == 0) return cudaSuccess;
  return from_driver(CU_PTSZ(cuMemsetD2D8Async)(address(target), pitch, byte(value), width, height, stream));
}

cudaError_t cudaMemset3D(cudaPitchedPtr target, int value, cudaExtent extent) {
  return set_slices(target, extent, [&](CUdeviceptr at, std::size_t rows) {
    return CU_PTDS(cuMemsetD2D8_v2)(at, target.pitch, byte(value), extent.width, rows);
  });
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr target, int value, cudaExtent extent, cudaStream_t stream) {
  return set_slices(target, extent, [&](CUdeviceptr at, std::size_t rows) {
    return CU_PTSZ(cuMemsetD2D8Async)(at, target.pitch, byte(value), extent.width, rows, stream);
  });
}

} // namespace api
} // namespace capturesan::runtime
