#include "sim/runtime/api.h"
#include "sim/runtime/driver.h"
#include "sim/runtime/thread.h"

#include <cstring>

namespace capturesan::runtime {
namespace {

cudaError_t device_count(int* count) { return from_driver(CU(cuDeviceGetCount)(count)); }

cudaError_t check_device(int device) {
  int count = 0;
  if (cudaError_t e = device_count(&count)) return e;
  if (count == 0) return cudaErrorNoDevice;
  return device >= 0 && device < count ? cudaSuccess : cudaErrorInvalidDevice;
}

// For calls that name a device and mean its primary context.
cudaError_t context_of(int device, CUcontext* context) {
  if (cudaError_t e = check_device(device)) return e;
  return primary_context(device, context);
}

constexpr unsigned device_flags =
    cudaDeviceScheduleMask | cudaDeviceMapHost | cudaDeviceLmemResizeToMax | cudaDeviceSyncMemops;

} // namespace

namespace api {

cudaError_t cudaGetDeviceCount(int* count) {
  if (!count) return cudaErrorInvalidValue;
  return device_count(count);
}

// A context that the program made through the driver counts too.
cudaError_t cudaGetDevice(int* device) {
  if (!device) return cudaErrorInvalidValue;
  *device = this_thread().device;
  CUcontext current = nullptr;
  CUdevice ordinal = 0;
  if (CU(cuCtxGetCurrent)(&current) == CUDA_SUCCESS && current && CU(cuCtxGetDevice)(&ordinal) == CUDA_SUCCESS)
    *device = ordinal;
  return cudaSuccess;
}

// Documented since CUDA 12: makes the primary context at once.
cudaError_t cudaSetDevice(int device) {
  if (cudaError_t e = check_device(device)) return e;
  return bind(device);
}

cudaError_t cudaInitDevice(int device, unsigned flags, unsigned use_flags) {
  if (use_flags & ~static_cast<unsigned>(cudaInitDeviceFlagsAreValid)) return cudaErrorInvalidValue;
  if (cudaError_t e = check_device(device)) return e;
  if (use_flags)
    if (CUresult r = CU(cuDevicePrimaryCtxSetFlags_v2)(device, flags)) return from_driver(r);
  CUcontext context = nullptr;
  return context_of(device, &context);
}

// A preference among devices; the thread's device stays what cudaSetDevice said.
cudaError_t cudaSetValidDevices(int* devices, int count) {
  if (count > 0 && !devices) return cudaErrorInvalidValue;
  for (int i = 0; i < count; ++i)
    if (cudaError_t e = check_device(devices[i])) return e;
  return cudaSuccess;
}

// All devices here are alike.
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  if (!device || !wanted) return cudaErrorInvalidValue;
  *device = 0;
  return check_device(0);
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  if (!flags) return cudaErrorInvalidValue;
  unsigned set = 0;
  int active = 0;
  if (CUresult r = CU(cuDevicePrimaryCtxGetState)(this_thread().device, &set, &active)) return from_driver(r);
  *flags = set | cudaDeviceMapHost; // documented: always set by the runtime
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  if (flags & ~device_flags) return cudaErrorInvalidValue;
  // Host memory is always mapped; the driver's flags know no such bit for a primary context.
  return from_driver(
      CU(cuDevicePrimaryCtxSetFlags_v2)(this_thread().device, flags & ~static_cast<unsigned>(cudaDeviceMapHost)));
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* result, int device) {
  if (!result) return cudaErrorInvalidValue;
  if (cudaError_t e = check_device(device)) return e;
  std::memset(result, 0, sizeof *result);
  if (CUresult r = CU(cuDeviceGetName)(result->name, sizeof result->name, device)) return from_driver(r);
  CU(cuDeviceGetUuid_v2)(reinterpret_cast<CUuuid*>(&result->uuid), device);
  CU(cuDeviceTotalMem_v2)(&result->totalGlobalMem, device);
  int value = 0;
#define PROPERTY(field, attribute)                                                                                     \
  if (CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_##attribute, device) == CUDA_SUCCESS)                       \
    result->field = static_cast<std::remove_reference_t<decltype(result->field)>>(value);
#include "sim/runtime/properties.def"
  return cudaSuccess;
}

// Documented: destroys all that the process has on the device, and forgets its last error.
cudaError_t cudaDeviceReset() {
  int device = 0;
  api::cudaGetDevice(&device);
  if (CUresult r = CU(cuDevicePrimaryCtxReset_v2)(device)) return from_driver(r);
  forget_primary(device);
  CU(cuCtxSetCurrent)(nullptr);
  this_thread().last_error = cudaSuccess;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int device, unsigned flags) {
  CUcontext peer = nullptr;
  if (cudaError_t e = context_of(device, &peer)) return e;
  return from_driver(CU(cuCtxEnablePeerAccess)(peer, flags));
}

cudaError_t cudaDeviceDisablePeerAccess(int device) {
  CUcontext peer = nullptr;
  if (cudaError_t e = context_of(device, &peer)) return e;
  return from_driver(CU(cuCtxDisablePeerAccess)(peer));
}

} // namespace api
} // namespace capturesan::runtime
