// The device code, kernels and variables that the program's object files registered, and what became of them in the
// driver. Loaded when first used, as the real runtime does it with lazy loading: also in the middle of a capture.
#pragma once

#include "sim/runtime/cuda_runtime.h"

#include <cstddef>

namespace capturesan::runtime {

struct registered_image;

registered_image* register_image(const void* wrapper);
void unregister_image(registered_image* image);
void register_function(registered_image* image, const void* host, const char* name);
void register_variable(registered_image* image, const void* host, const char* name, std::size_t bytes);
void register_managed(registered_image* image, void** host, const char* name, std::size_t bytes);

// Loads what the managed variables of the image need, and points the host's pointers to them.
cudaError_t initialise_managed(registered_image* image);

// The kernel behind a host function; also takes a cudaKernel_t or a cudaFunction_t that the runtime has handed out.
cudaError_t kernel_of(const void* function, CUkernel* kernel);
void note_kernel(CUkernel kernel);
// The host function a kernel was found by; else the kernel itself.
const void* host_function_of(CUfunction function, CUkernel kernel);
// The name of a kernel in its image; null: not a registered function.
const char* name_of(const void* function);

struct variable_place {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
};
cudaError_t variable_of(const void* symbol, variable_place* place);

} // namespace capturesan::runtime
