// A small client of the driver for the tests of the simulation itself.
#pragma once

#include <cuda.h>

#include <string>

namespace client {

// add(unsigned* target, unsigned what); boxed({void*, unsigned, void*}): a structure as the only parameter.
inline const char* const kernel_text = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 target, .param .u32 what) { ret; }
.visible .entry boxed(.param .align 8 .b8 box[24]) { ret; }
)";

struct box {
  CUdeviceptr first;
  unsigned count;
  CUdeviceptr second;
};

struct device {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction add = nullptr, boxed = nullptr;
  CUstream stream = nullptr;
  bool good = false;

  explicit device(int ordinal = 0) {
    good = cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, ordinal) == CUDA_SUCCESS &&
           cuCtxSetCurrent(context) == CUDA_SUCCESS && cuModuleLoadData(&module, kernel_text) == CUDA_SUCCESS &&
           cuModuleGetFunction(&add, module, "add") == CUDA_SUCCESS &&
           cuModuleGetFunction(&boxed, module, "boxed") == CUDA_SUCCESS &&
           cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
  }

  CUresult launch(CUstream on, CUdeviceptr target, unsigned what = 1) const {
    void* values[] = {&target, &what};
    return cuLaunchKernel(add, 2, 1, 1, 3, 1, 1, 16, on, values, nullptr);
  }
  CUresult launch_boxed(CUstream on, box value) const {
    void* values[] = {&value};
    return cuLaunchKernel(boxed, 1, 1, 1, 1, 1, 1, 0, on, values, nullptr);
  }
};

} // namespace client
