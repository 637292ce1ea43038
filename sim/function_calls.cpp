// Functions and kernels: names, parameter layouts, attributes, occupancy.
#include "sim/api.h"
#include "sim/module.h"

#include <algorithm>
#include <unordered_map>

namespace capturesan::sim {

// Launches and occupancy take a kernel for a function; measured: the cuFunc... calls answer INVALID_HANDLE for one.
const kernel_info* info_of(CUfunction function) {
  if (is_live(function)) return function->info.get();
  auto kernel = reinterpret_cast<CUkernel>(function);
  return is_live(kernel) ? kernel->info.get() : nullptr;
}

namespace {

// Of the simulated device; see device_attributes.def.
constexpr int largest_shared = 232448;
constexpr int shared_without_opt_in = 49152;
constexpr int shared_of_multiprocessor = 233472;
constexpr int threads_of_multiprocessor = 2048;
constexpr int registers_of_multiprocessor = 65536;
constexpr int blocks_of_multiprocessor = 32;
constexpr int multiprocessors = 132;

using attribute_map = std::unordered_map<int, int>;

CUresult get_attribute(int* value, CUfunction_attribute which, const kernel_info& info, const attribute_map& set) {
  if (!value || which < 0 || which >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (auto found = set.find(static_cast<int>(which)); found != set.end()) {
    *value = found->second;
    return CUDA_SUCCESS;
  }
  switch (which) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = info.max_threads;
    break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = info.shared_bytes;
    break;
  case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    *value = info.constant_bytes;
    break;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = info.local_bytes;
    break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    *value = info.registers;
    break;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    *value = info.ptx_version;
    break;
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    *value = info.binary_version;
    break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = shared_without_opt_in - info.shared_bytes;
    break;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    *value = -1;
    break;
  default:
    *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult set_attribute(CUfunction_attribute which, int value, const kernel_info& info, attribute_map& set) {
  switch (which) {
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    if (value < 0 || value > largest_shared - info.shared_bytes) return CUDA_ERROR_INVALID_VALUE;
    break;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
    break;
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
  case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
  case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  set[static_cast<int>(which)] = value;
  return CUDA_SUCCESS;
}

CUresult parameter_at(const kernel_info& info, std::size_t index, std::size_t* offset, std::size_t* size) {
  if (!offset || index >= info.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = info.parameters[index].offset;
  if (size) *size = info.parameters[index].size;
  return CUDA_SUCCESS;
}

int resident_blocks(const kernel_info& info, int block, std::size_t dynamic_shared) {
  if (block <= 0 || block > info.max_threads) return 0;
  const int warps = (block + 31) / 32;
  int fit = std::min(blocks_of_multiprocessor, threads_of_multiprocessor / (warps * 32));
  fit = std::min(fit, registers_of_multiprocessor / (std::max(info.registers, 1) * warps * 32));
  const auto shared =
      dynamic_shared + static_cast<std::size_t>(info.shared_bytes) + 1024; // the driver keeps 1 KiB a block
  return std::min(fit, static_cast<int>(static_cast<std::size_t>(shared_of_multiprocessor) / shared));
}

} // namespace

namespace api {

CUresult cuKernelGetFunction(CUfunction* result, CUkernel kernel) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  CUmodule module = nullptr;
  if (CUresult r = module_of(kernel->library, current_context(), &module)) return r;
  *result = function_of(module, kernel->info->name);
  if (*result) (*result)->kernel = kernel;
  return *result ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuKernelGetLibrary(CUlibrary* result, CUkernel kernel) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  *result = kernel->library;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = kernel->info->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return parameter_at(*kernel->info, index, offset, size);
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute which, CUkernel kernel, CUdevice) {
  return get_attribute(value, which, *kernel->info, kernel->attributes);
}

CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel kernel, CUdevice) {
  return set_attribute(which, value, *kernel->info, kernel->attributes);
}

CUresult cuKernelSetCacheConfig(CUkernel, CUfunc_cache, CUdevice) { return CUDA_SUCCESS; }

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction function) {
  if (!is_live(function)) return CUDA_ERROR_INVALID_HANDLE;
  return get_attribute(value, which, *function->info, function->attributes);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
  if (!is_live(function)) return CUDA_ERROR_INVALID_HANDLE;
  return set_attribute(which, value, *function->info, function->attributes);
}

CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
CUresult cuFuncSetSharedMemConfig(CUfunction, CUsharedconfig) { return CUDA_SUCCESS; }

CUresult cuFuncGetModule(CUmodule* result, CUfunction function) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  if (!is_live(function)) return CUDA_ERROR_INVALID_HANDLE;
  *result = function->module;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  if (!is_live(function)) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->info->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  if (!is_live(function)) return CUDA_ERROR_INVALID_HANDLE;
  return parameter_at(*function->info, index, offset, size);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* loaded, CUfunction) {
  if (!loaded) return CUDA_ERROR_INVALID_VALUE;
  *loaded = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction) { return CUDA_SUCCESS; }

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block, size_t shared) {
  if (!blocks) return CUDA_ERROR_INVALID_VALUE;
  *blocks = resident_blocks(*info_of(function), block, shared);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int block,
                                                              size_t shared, unsigned) {
  return api::cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block, shared);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid, int* block, CUfunction function, CUoccupancyB2DSize shared_for,
                                          size_t shared, int limit) {
  if (!min_grid || !block) return CUDA_ERROR_INVALID_VALUE;
  const kernel_info info = *info_of(function); // a copy: the program's function below may unload the module
  const int most = limit > 0 ? std::min(limit, info.max_threads) : info.max_threads;
  int best = 0;
  for (int size = most / 32 * 32; size > 0; size -= 32) {
    std::size_t need = shared;
    if (shared_for) unlocked([&] { need = shared_for(size); });
    const int resident = resident_blocks(info, size, need);
    if (resident * size <= best) continue;
    best = resident * size;
    *block = size;
    *min_grid = resident * multiprocessors;
  }
  return best ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* min_grid, int* block, CUfunction function,
                                                   CUoccupancyB2DSize shared_for, size_t shared, int limit, unsigned) {
  return api::cuOccupancyMaxPotentialBlockSize(min_grid, block, function, shared_for, shared, limit);
}

// Documented: eight blocks are portable; how many clusters fit is an estimate from the blocks that do.
CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction, const CUlaunchConfig*) {
  if (!size) return CUDA_ERROR_INVALID_VALUE;
  *size = 8;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  if (!clusters) return CUDA_ERROR_INVALID_VALUE;
  unsigned blocks = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if (const auto& a = config->attrs[i]; a.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      blocks = a.value.clusterDim.x * a.value.clusterDim.y * a.value.clusterDim.z;
  if (blocks == 0) return CUDA_ERROR_INVALID_VALUE;
  const int threads = static_cast<int>(config->blockDimX * config->blockDimY * config->blockDimZ);
  const int resident = resident_blocks(*info_of(function), threads, config->sharedMemBytes) * multiprocessors;
  *clusters = resident / static_cast<int>(blocks);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function, int blocks, int) {
  if (!bytes || blocks <= 0) return CUDA_ERROR_INVALID_VALUE;
  const int each = shared_of_multiprocessor / blocks - 1024 - info_of(function)->shared_bytes;
  *bytes = static_cast<size_t>(std::clamp(each, 0, largest_shared));
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace capturesan::sim
