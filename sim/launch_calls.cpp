#include "sim/api.h"
#include "sim/launch.h"
#include "sim/module.h"
#include "sim/work.h"

#include <algorithm>
#include <cstring>

namespace capturesan::sim {
namespace {

constexpr unsigned shared_without_opt_in = 49152;

// The values, from one of the two forms in which a program may give them.
std::shared_ptr<const arguments> copy_values(const kernel_info& info, void** each, void** extra) {
  auto values = std::make_shared<arguments>();
  values->bytes.resize(std::max<std::size_t>(info.parameter_bytes, 1));
  if (each) {
    for (std::size_t i = 0; i < info.parameters.size(); ++i)
      std::memcpy(values->bytes.data() + info.parameters[i].offset, each[i], info.parameters[i].size);
  } else if (extra) {
    const void* buffer = nullptr;
    std::size_t bytes = info.parameter_bytes;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
      if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
        buffer = extra[1];
      else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
        bytes = *static_cast<const std::size_t*>(extra[1]);
    }
    if (!buffer && info.parameter_bytes) return nullptr;
    if (buffer) std::memcpy(values->bytes.data(), buffer, std::min(bytes, info.parameter_bytes));
    values->buffer_bytes = std::min(bytes, info.parameter_bytes);
    values->extra = {CU_LAUNCH_PARAM_BUFFER_POINTER, values->bytes.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &values->buffer_bytes, CU_LAUNCH_PARAM_END};
  } else if (!info.parameters.empty()) {
    return nullptr;
  }
  for (const auto& p : info.parameters) values->pointers.push_back(values->bytes.data() + p.offset);
  return values;
}

CUresult check_shape(const CUDA_KERNEL_NODE_PARAMS& d, const kernel_info& info, unsigned allowed_shared) {
  if (!d.gridDimX || !d.gridDimY || !d.gridDimZ || !d.blockDimX || !d.blockDimY || !d.blockDimZ)
    return CUDA_ERROR_INVALID_VALUE;
  if (d.gridDimX > 2147483647u || d.gridDimY > 65535 || d.gridDimZ > 65535) return CUDA_ERROR_INVALID_VALUE;
  if (d.blockDimX > 1024 || d.blockDimY > 1024 || d.blockDimZ > 64) return CUDA_ERROR_INVALID_VALUE;
  if (std::uint64_t{d.blockDimX} * d.blockDimY * d.blockDimZ > static_cast<unsigned>(info.max_threads))
    return CUDA_ERROR_INVALID_VALUE;
  return d.sharedMemBytes > allowed_shared ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

unsigned allowed_shared_of(const std::unordered_map<int, int>& attributes, const kernel_info& info) {
  auto found = attributes.find(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  if (found != attributes.end()) return static_cast<unsigned>(found->second);
  return shared_without_opt_in - std::min(shared_without_opt_in, static_cast<unsigned>(info.shared_bytes));
}

} // namespace

CUresult make_kernel_call(const CUDA_KERNEL_NODE_PARAMS& described, CUcontext context, kernel_call& made) {
  if (described.kernelParams && described.extra) return CUDA_ERROR_INVALID_VALUE;
  made.function = described.func;
  made.kernel = described.func ? nullptr : described.kern;
  made.context = context;
  const std::unordered_map<int, int>* attributes = nullptr;
  CUkernel kernel = described.func ? reinterpret_cast<CUkernel>(described.func) : described.kern;
  if (is_live(described.func)) {
    if (described.func->module->context != context) return CUDA_ERROR_INVALID_HANDLE; // of another device
    made.info = described.func->info;
    attributes = &described.func->attributes;
  } else if (is_live(kernel)) {
    made.info = kernel->info;
    attributes = &kernel->attributes;
  } else {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (CUresult r = check_shape(described, *made.info, allowed_shared_of(*attributes, *made.info))) return r;
  made.checked = true;
  made.grid = {described.gridDimX, described.gridDimY, described.gridDimZ};
  made.block = {described.blockDimX, described.blockDimY, described.blockDimZ};
  made.shared_bytes = described.sharedMemBytes;
  made.values = copy_values(*made.info, described.kernelParams, described.extra);
  return made.values ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_KERNEL_NODE_PARAMS describe(const kernel_call& call) {
  CUDA_KERNEL_NODE_PARAMS d{};
  // Measured: whichever handle the launch named, the description names both, the function as well as its kernel.
  CUkernel kernel = call.function ? reinterpret_cast<CUkernel>(call.function) : call.kernel;
  d.func = call.function;
  d.kern = call.kernel;
  if (is_live(call.function)) {
    d.kern = call.function->kernel;
  } else if (CUmodule module = nullptr;
             is_live(kernel) && module_of(kernel->library, call.context, &module) == CUDA_SUCCESS) {
    d.func = function_of(module, kernel->info->name);
    d.kern = kernel;
  }
  d.ctx = call.context;
  d.gridDimX = call.grid.x, d.gridDimY = call.grid.y, d.gridDimZ = call.grid.z;
  d.blockDimX = call.block.x, d.blockDimY = call.block.y, d.blockDimZ = call.block.z;
  d.sharedMemBytes = call.shared_bytes;
  // The vendor's structure has no const; the contract is that nobody writes through it.
  if (call.values->extra.empty())
    d.kernelParams = const_cast<void**>(call.values->pointers.data());
  else
    d.extra = const_cast<void**>(call.values->extra.data());
  return d;
}

namespace {

CUDA_KERNEL_NODE_PARAMS description(CUfunction function, extent grid, extent block, unsigned shared, void** values,
                                    void** extra) {
  CUDA_KERNEL_NODE_PARAMS d{};
  d.func = function;
  d.gridDimX = grid.x, d.gridDimY = grid.y, d.gridDimZ = grid.z;
  d.blockDimX = block.x, d.blockDimY = block.y, d.blockDimZ = block.z;
  d.sharedMemBytes = shared;
  d.kernelParams = values;
  d.extra = extra;
  return d;
}

// A launch that may overlap the kernel before it: its edges in a capture say so.
void allow_overlap(CUstream stream) {
  for (auto& d : stream->tail)
    if (std::holds_alternative<kernel_call>(d.node->work)) {
      d.data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
      d.data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    }
}

// Measured: a launch of a bad shape breaks a capture; one without values, or of a function of another device, does not.
CUresult describe_launch(const CUDA_KERNEL_NODE_PARAMS& described, CUstream stream, kernel_call& made) {
  const CUresult result = make_kernel_call(described, stream->context, made);
  const bool bad_shape = result == CUDA_ERROR_INVALID_VALUE && made.info && !made.checked;
  if (bad_shape && stream->capture && state().options.refuse) stream->capture->invalidate();
  return result;
}

} // namespace

namespace api {

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void** values, void** extra) {
  kernel_call call;
  if (CUresult r =
          describe_launch(description(function, {gx, gy, gz}, {bx, by, bz}, shared, values, extra), stream, call))
    return r;
  return submit(stream, std::move(call));
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CUstream stream, void** values) {
  kernel_call call;
  if (CUresult r =
          describe_launch(description(function, {gx, gy, gz}, {bx, by, bz}, shared, values, nullptr), stream, call))
    return r;
  call.cooperative = true;
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  call.attributes.push_back(cooperative);
  return submit(stream, std::move(call));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** values, void** extra) {
  CUstream stream = stream_of(config->hStream);
  kernel_call call;
  const auto d =
      description(function, {config->gridDimX, config->gridDimY, config->gridDimZ},
                  {config->blockDimX, config->blockDimY, config->blockDimZ}, config->sharedMemBytes, values, extra);
  if (CUresult r = describe_launch(d, stream, call)) return r;
  call.attributes.assign(config->attrs, config->attrs + config->numAttrs);
  for (const auto& a : call.attributes) {
    if (a.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) call.cooperative = a.value.cooperative != 0;
    if (a.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION && a.value.programmaticStreamSerializationAllowed)
      allow_overlap(stream);
  }
  return submit(stream, std::move(call));
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user_data) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  return submit(stream, host_call{function, user_data});
}

} // namespace api
} // namespace capturesan::sim
