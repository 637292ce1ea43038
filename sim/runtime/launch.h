#pragma once

#include "sim/runtime/cuda_runtime.h"

namespace capturesan::runtime {

cudaError_t launch(CUkernel kernel, dim3 grid, dim3 block, void** values, std::size_t shared, cudaStream_t stream);

// The error of a launch: the driver says INVALID_VALUE for everything, the runtime names a bad shape.
cudaError_t launch_error(CUresult result, dim3 grid, dim3 block);

} // namespace capturesan::runtime
