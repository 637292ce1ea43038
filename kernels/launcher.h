// The CUDA side of the host: which kernel, and how it is launched.
#pragma once

#include "plan.h"

#include <cuda_runtime_api.h>

namespace verify_mla {

// "<call>: <name of the error>" as a result; VERIFY_MLA_OK for cudaSuccess.
result cuda_result(cudaError_t error, const char* call);

// Raises the shared memory limit of every kernel that can run on the device.
result prepare_kernels(const verify_mla_device& device);

// Kernel A, then kernel B, on `stream`.
result launch_kernels(const launch_plan& plan, const kernel_args& args, cudaStream_t stream);

// The naive path, see eager.cu.
result launch_eager(const verify_mla_device& device, const verify_mla_params& params);

} // namespace verify_mla
