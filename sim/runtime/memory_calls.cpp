// Memory, and streams and events whose functions have no flags.
#include "sim/runtime/api.h"
#include "sim/runtime/driver.h"
#include "sim/runtime/thread.h"

namespace capturesan::runtime {
namespace {

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// What a row must be aligned to for 2D copies and sets of any element size.
constexpr unsigned widest_element = 16;

cudaError_t allocate_rows(void** result, std::size_t* pitch, std::size_t width, std::size_t rows) {
  if (!result || !pitch) return cudaErrorInvalidValue;
  *result = nullptr;
  if (width == 0 || rows == 0) {
    *pitch = 0;
    return cudaSuccess;
  }
  CUdeviceptr at = 0;
  if (CUresult r = CU(cuMemAllocPitch_v2)(&at, pitch, width, rows, widest_element)) return from_driver(r);
  *result = reinterpret_cast<void*>(at);
  return cudaSuccess;
}

} // namespace

namespace api {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return from_driver(CU(cuStreamCreate)(stream, CU_STREAM_DEFAULT));
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return from_driver(CU(cuEventCreate)(event, CU_EVENT_DEFAULT)); }

// Documented: nothing is allocated for 0 bytes, and the pointer is null.
cudaError_t cudaMalloc(void** result, size_t bytes) {
  if (!result) return cudaErrorInvalidValue;
  *result = nullptr;
  if (bytes == 0) return cudaSuccess;
  CUdeviceptr at = 0;
  if (CUresult r = CU(cuMemAlloc_v2)(&at, bytes)) return from_driver(r);
  *result = reinterpret_cast<void*>(at);
  return cudaSuccess;
}

cudaError_t cudaMallocPitch(void** result, size_t* pitch, size_t width, size_t height) {
  return allocate_rows(result, pitch, width, height);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* result, cudaExtent extent) {
  if (!result) return cudaErrorInvalidValue;
  result->xsize = extent.width;
  result->ysize = extent.height;
  return allocate_rows(&result->ptr, &result->pitch, extent.width, extent.height * extent.depth);
}

cudaError_t cudaFree(void* pointer) {
  if (!pointer) return cudaSuccess;
  return from_driver(CU(cuMemFree_v2)(address(pointer)));
}

cudaError_t cudaFreeHost(void* pointer) {
  if (!pointer) return cudaSuccess;
  return from_driver(CU(cuMemFreeHost)(pointer));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* result, const void* pointer) {
  if (!result) return cudaErrorInvalidValue;
  *result = cudaPointerAttributes{};
  unsigned type = 0, managed = 0;
  int device = 0;
  CUdeviceptr on_device = 0;
  void* on_host = nullptr;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* values[] = {&type, &managed, &device, &on_device, &on_host};
  const CUresult r = CU(cuPointerGetAttributes)(5, which, values, address(pointer));
  if (r != CUDA_SUCCESS && r != CUDA_ERROR_INVALID_VALUE) return from_driver(r);
  if (r != CUDA_SUCCESS || type == 0) { // documented: memory the driver does not know is no error
    result->type = cudaMemoryTypeUnregistered;
    result->device = cudaInvalidDeviceId;
    result->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  }
  result->type = managed                      ? cudaMemoryTypeManaged
                 : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                              : cudaMemoryTypeDevice;
  result->device = device;
  result->devicePointer = reinterpret_cast<void*>(on_device);
  result->hostPointer = on_host;
  return cudaSuccess;
}

} // namespace api
} // namespace capturesan::runtime
