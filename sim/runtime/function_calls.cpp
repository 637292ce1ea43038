#include "sim/runtime/api.h"
#include "sim/runtime/driver.h"
#include "sim/runtime/registry.h"
#include "sim/runtime/thread.h"

#include <vector>

namespace capturesan::runtime {
namespace {

cudaError_t current_device(CUdevice* device) { return from_driver(CU(cuCtxGetDevice)(device)); }

// The attributes that cudaFuncAttributes has too, each in its member.
struct attribute_reader {
  CUkernel kernel;
  CUdevice device;
  CUresult result = CUDA_SUCCESS;

  template <class T>
  void read(T* member, CUfunction_attribute which) {
    int value = 0;
    const CUresult r = CU(cuKernelGetAttribute)(&value, which, kernel, device);
    if (r)
      result = r;
    else
      *member = static_cast<T>(value);
  }
};

} // namespace

namespace api {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* result, const void* function) {
  if (!result) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  CUdevice device = 0;
  if (cudaError_t e = kernel_of(function, &kernel)) return e;
  if (cudaError_t e = current_device(&device)) return e;
  *result = cudaFuncAttributes{};
  attribute_reader of{kernel, device};
  of.read(&result->sharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  of.read(&result->constSizeBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  of.read(&result->localSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  of.read(&result->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  of.read(&result->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS);
  of.read(&result->ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION);
  of.read(&result->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  of.read(&result->cacheModeCA, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
  of.read(&result->maxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  of.read(&result->preferredShmemCarveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  of.read(&result->clusterDimMustBeSet, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
  of.read(&result->requiredClusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
  of.read(&result->requiredClusterHeight, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
  of.read(&result->requiredClusterDepth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
  of.read(&result->clusterSchedulingPolicyPreference, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
  of.read(&result->nonPortableClusterSizeAllowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  return from_driver(of.result);
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute which, int value) {
  CUkernel kernel = nullptr;
  CUdevice device = 0;
  if (cudaError_t e = kernel_of(function, &kernel)) return e;
  if (cudaError_t e = current_device(&device)) return e;
  return from_driver(CU(cuKernelSetAttribute)(static_cast<CUfunction_attribute>(which), value, kernel, device));
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute which, int value, int device) {
  return from_driver(CU(cuKernelSetAttribute)(static_cast<CUfunction_attribute>(which), value, kernel, device));
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache config) {
  CUkernel kernel = nullptr;
  CUdevice device = 0;
  if (cudaError_t e = kernel_of(function, &kernel)) return e;
  if (cudaError_t e = current_device(&device)) return e;
  return from_driver(CU(cuKernelSetCacheConfig)(kernel, static_cast<CUfunc_cache>(config), device));
}

// Documented: without effect on devices that the toolkit still supports.
cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig) {
  CUkernel kernel = nullptr;
  return kernel_of(function, &kernel);
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  if (!name) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  if (cudaError_t e = kernel_of(function, &kernel)) return e;
  return from_driver(CU(cuKernelGetName)(name, kernel));
}

cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* bytes) {
  CUkernel kernel = nullptr;
  if (cudaError_t e = kernel_of(function, &kernel)) return e;
  return from_driver(CU(cuKernelGetParamInfo)(kernel, index, offset, bytes));
}

cudaError_t cudaGetKernel(cudaKernel_t* result, const void* function) {
  if (!result) return cudaErrorInvalidValue;
  return kernel_of(function, result);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* result, const void* function) {
  if (!result) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  if (cudaError_t e = kernel_of(function, &kernel)) return e;
  return from_driver(CU(cuKernelGetFunction)(result, kernel));
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* result, cudaLibrary_t library, const char* name) {
  if (CUresult r = CU(cuLibraryGetKernel)(result, library, name)) return from_driver(r);
  note_kernel(*result);
  return cudaSuccess;
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned room, cudaLibrary_t library) {
  if (CUresult r = CU(cuLibraryEnumerateKernels)(kernels, room, library)) return from_driver(r);
  unsigned count = 0;
  CU(cuLibraryGetKernelCount)(&count, library);
  for (unsigned i = 0; i < count && i < room; ++i) note_kernel(kernels[i]);
  return cudaSuccess;
}

} // namespace api
} // namespace capturesan::runtime
