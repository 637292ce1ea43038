// What object files of a CUDA compiler call: the functions that crt/host_runtime.h declares.
#include "include/capturesan.h"

#include "sim/runtime/driver.h"
#include "sim/runtime/registry.h"
#include "sim/runtime/thread.h"

#include <algorithm>
#include <iterator>

using namespace capturesan::runtime;

namespace {
registered_image* image_of(void** handle) { return static_cast<registered_image*>(*handle); }
} // namespace

#define EXPORTED __attribute__((visibility("default")))

extern "C" {

EXPORTED void** __cudaRegisterFatBinary(void* wrapper) { return reinterpret_cast<void**>(register_image(wrapper)); }
EXPORTED void __cudaRegisterFatBinaryEnd(void**) {}
EXPORTED void __cudaUnregisterFatBinary(void** handle) { unregister_image(image_of(handle)); }

EXPORTED void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*,
                                     dim3*, dim3*, int*) {
  register_function(image_of(handle), host, name);
}

EXPORTED void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t bytes, int, int) {
  register_variable(image_of(handle), host, name, bytes);
}

EXPORTED void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int, size_t bytes, int,
                                       int) {
  register_managed(image_of(handle), host, name, bytes);
}

// Texture and surface references ended with CUDA 11; compilers still declare them.
EXPORTED void __cudaRegisterTexture(void**, const struct textureReference*, const void**, const char*, int, int, int) {}
EXPORTED void __cudaRegisterSurface(void**, const struct surfaceReference*, const void**, const char*, int, int) {}

// Before the host first uses a managed variable.
EXPORTED char __cudaInitModule(void** handle) {
  if (noted(prepare(need::context))) return 0;
  return noted(initialise_managed(image_of(handle))) == cudaSuccess;
}

EXPORTED unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  auto& self = this_thread();
  if (self.depth == std::size(self.shapes)) return 1; // the stub is then not called
  self.shapes[self.depth++] = {grid, block, shared, stream};
  return 0;
}

EXPORTED cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  auto& self = this_thread();
  if (self.depth == 0) return noted(cudaErrorMissingConfiguration);
  const launch_shape& shape = self.shapes[--self.depth];
  *grid = shape.grid;
  *block = shape.block;
  *shared = shape.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = shape.stream;
  return cudaSuccess;
}

// Once for each place of a launch, at the first launch: this is what loads a module in the middle of a capture.
EXPORTED cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  if (!kernel) return noted(cudaErrorInvalidValue);
  if (cudaError_t e = prepare(need::context)) return noted(e);
  return noted(kernel_of(function, kernel));
}

// Host kernels named by their host function; the driver knows them by name. It stands here because a weak reference
// takes nothing out of an archive, and every program with kernels takes this file.
EXPORTED int capturesan_register_host_function(const void* kernel, capturesan_host_kernel function, void* user) {
  const char* name = name_of(kernel);
  auto* in_driver =
      reinterpret_cast<decltype(&capturesan_register_host_kernel)>(driver_symbol("capturesan_register_host_kernel"));
  return name && in_driver ? in_driver(name, function, user) : 0;
}

} // extern "C"
