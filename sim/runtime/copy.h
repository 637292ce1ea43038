// Copies as the runtime describes them, and as the driver does.
#pragma once

#include "sim/runtime/cuda_runtime.h"

namespace capturesan::runtime {

cudaError_t check_kind(cudaMemcpyKind kind);
// InvalidValue: nothing a driver could copy.
cudaError_t as_driver_copy(const cudaMemcpy3DParms& given, CUDA_MEMCPY3D* copy);
cudaMemcpy3DParms as_runtime_copy(const CUDA_MEMCPY3D& copy);
// Bytes in a row.
cudaMemcpy3DParms row(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind);

} // namespace capturesan::runtime
