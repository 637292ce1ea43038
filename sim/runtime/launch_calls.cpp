#include "sim/runtime/api.h"
#include "sim/runtime/driver.h"
#include "sim/runtime/launch.h"
#include "sim/runtime/registry.h"
#include "sim/runtime/thread.h"

#include <cstdint>

namespace capturesan::runtime {
namespace {

// A kernel and a function are one handle for a launch.
CUfunction as_function(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

// Documented limits of every device of compute capability 9.0.
bool possible(dim3 grid, dim3 block) {
  if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z) return false;
  if (grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535) return false;
  if (block.x > 1024 || block.y > 1024 || block.z > 64) return false;
  return std::uint64_t{block.x} * block.y * block.z <= 1024;
}

CUlaunchConfig as_driver_config(const cudaLaunchConfig_t& given) {
  CUlaunchConfig c{};
  c.gridDimX = given.gridDim.x, c.gridDimY = given.gridDim.y, c.gridDimZ = given.gridDim.z;
  c.blockDimX = given.blockDim.x, c.blockDimY = given.blockDim.y, c.blockDimZ = given.blockDim.z;
  c.sharedMemBytes = static_cast<unsigned>(given.dynamicSmemBytes);
  c.hStream = given.stream;
  c.attrs = reinterpret_cast<CUlaunchAttribute*>(given.attrs);
  c.numAttrs = given.numAttrs;
  return c;
}

} // namespace

cudaError_t launch_error(CUresult result, dim3 grid, dim3 block) {
  if (result == CUDA_ERROR_INVALID_VALUE && !possible(grid, block)) return cudaErrorInvalidConfiguration;
  return from_driver(result);
}

cudaError_t launch(CUkernel kernel, dim3 grid, dim3 block, void** values, std::size_t shared, cudaStream_t stream) {
  const CUresult r = CU_PTSZ(cuLaunchKernel)(as_function(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                             static_cast<unsigned>(shared), stream, values, nullptr);
  return launch_error(r, grid, block);
}

namespace api {

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** values, size_t shared,
                             cudaStream_t stream) {
  CUkernel kernel = nullptr;
  if (cudaError_t e = kernel_of(function, &kernel)) return e;
  return launch(kernel, grid, block, values, shared, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** values, size_t shared,
                                        cudaStream_t stream) {
  CUkernel kernel = nullptr;
  if (cudaError_t e = kernel_of(function, &kernel)) return e;
  const CUresult r = CU_PTSZ(cuLaunchCooperativeKernel)(as_function(kernel), grid.x, grid.y, grid.z, block.x, block.y,
                                                        block.z, static_cast<unsigned>(shared), stream, values);
  return launch_error(r, grid, block);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** values) {
  if (!config) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  if (cudaError_t e = kernel_of(function, &kernel)) return e;
  const CUlaunchConfig c = as_driver_config(*config);
  return launch_error(CU_PTSZ(cuLaunchKernelEx)(&c, as_function(kernel), values, nullptr), config->gridDim,
                      config->blockDim);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block,
                                                                   size_t shared, unsigned flags) {
  CUkernel kernel = nullptr;
  if (cudaError_t e = kernel_of(function, &kernel)) return e;
  return from_driver(
      CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(blocks, as_function(kernel), block, shared, flags));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block, size_t shared) {
  return api::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block, shared, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks, int block) {
  CUkernel kernel = nullptr;
  if (cudaError_t e = kernel_of(function, &kernel)) return e;
  return from_driver(CU(cuOccupancyAvailableDynamicSMemPerBlock)(bytes, as_function(kernel), blocks, block));
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function, const cudaLaunchConfig_t* config) {
  if (!config) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  if (cudaError_t e = kernel_of(function, &kernel)) return e;
  const CUlaunchConfig c = as_driver_config(*config);
  return from_driver(CU(cuOccupancyMaxActiveClusters)(clusters, as_function(kernel), &c));
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function, const cudaLaunchConfig_t* config) {
  if (!config) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  if (cudaError_t e = kernel_of(function, &kernel)) return e;
  const CUlaunchConfig c = as_driver_config(*config);
  return from_driver(CU(cuOccupancyMaxPotentialClusterSize)(size, as_function(kernel), &c));
}

} // namespace api
} // namespace capturesan::runtime
