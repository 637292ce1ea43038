#include "launcher.h"

#include "config.h"
#include "kernels.h"

#include <cstdio>
#include <cstring>

namespace verify_mla {

result cuda_result(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return {};
  return {VERIFY_MLA_CUDA, std::string(call) + ": " + cudaGetErrorName(error) + " (" + cudaGetErrorString(error) + ")"};
}

// Both kernels want the largest share of shared memory: a multiprocessor that has to change it between them must be
// empty first, and then no block of the second kernel can wait there.
result prepare_kernels(const verify_mla_device& device) {
  const bool wide = device.cc_major == 9 && device.smem_per_block >= SMEM_SM90;
  for (int granules : ROW_GRANULES)
    for (bool bf16 : {false, true})
      for (bool is_wide : {false, true}) {
        const kernel_entry k = is_wide ? wide_kernel(granules, bf16) : narrow_kernel(granules, bf16);
        if (k.function == nullptr || (is_wide && !wide)) continue;
        const result r = cuda_result(cudaFuncSetAttribute(k.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                          static_cast<int>(k.smem_bytes)),
                                     "cudaFuncSetAttribute");
        if (!r) return r;
      }
  return {};
}

static result launch(const void* function, int blocks, int threads, size_t smem, cudaStream_t stream, bool pdl,
                     void** parameters, const char* what) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = smem;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = pdl ? 1 : 0;
  return cuda_result(cudaLaunchKernelExC(&config, function, parameters), what);
}

result launch_kernels(const launch_plan& plan, const kernel_args& args, cudaStream_t stream) {
  const kernel_entry partial =
      plan.wide ? wide_kernel(plan.granules, plan.partial_bf16) : narrow_kernel(plan.granules, plan.partial_bf16);
  const kernel_entry reduce = reduce_entry(plan.reduce_tiles, plan.partial_bf16);
  if (partial.function == nullptr || reduce.function == nullptr)
    return {VERIFY_MLA_UNSUPPORTED, "no kernel was built for " + std::to_string(plan.granules) + " granules"};

  kernel_args a = args;
  void* partial_parameters[] = {&a};
  const result first = launch(partial.function, plan.partial_blocks, partial.threads, partial.smem_bytes, stream,
                              plan.pdl, partial_parameters, "launch of the partial kernel");
  if (!first) return first;
  int tile_tokens = plan.tile_tokens;
  int granules = plan.granules;
  void* reduce_parameters[] = {&a, &tile_tokens, &granules};
  return launch(reduce.function, plan.reduce_blocks, REDUCE_THREADS, plan.reduce_smem, stream, plan.pdl,
                reduce_parameters, "launch of the reduce kernel");
}

static int report(const result& r, char* error, size_t bytes) {
  if (error != nullptr && bytes > 0) std::snprintf(error, bytes, "%s", r.message.c_str());
  return r.status;
}

static result open_device(int ordinal, verify_mla_device* device) {
  if (device == nullptr) return {VERIFY_MLA_INVALID, "device is null"};
  const struct {
    cudaDeviceAttr attribute;
    int32_t* value;
  } queries[] = {{cudaDevAttrMultiProcessorCount, &device->sm_count},
                 {cudaDevAttrMaxSharedMemoryPerBlockOptin, &device->smem_per_block},
                 {cudaDevAttrComputeCapabilityMajor, &device->cc_major},
                 {cudaDevAttrComputeCapabilityMinor, &device->cc_minor},
                 {cudaDevAttrL2CacheSize, &device->l2_bytes}};
  for (const auto& q : queries)
    if (const result r = cuda_result(cudaDeviceGetAttribute(q.value, q.attribute, ordinal), "cudaDeviceGetAttribute");
        !r)
      return r;
  device->ordinal = ordinal;
  int current = 0;
  if (const result r = cuda_result(cudaGetDevice(&current), "cudaGetDevice"); !r) return r;
  if (const result r = cuda_result(cudaSetDevice(ordinal), "cudaSetDevice"); !r) return r;
  const result prepared = prepare_kernels(*device);
  const result restored = cuda_result(cudaSetDevice(current), "cudaSetDevice");
  return prepared ? restored : prepared;
}

static result check(const verify_mla_device* device, const verify_mla_params* params, launch_plan& plan) {
  if (device == nullptr || params == nullptr) return {VERIFY_MLA_INVALID, "device or params is null"};
  const result planned = make_plan(*device, *params, plan);
  return planned ? check_buffers(*params, plan) : planned;
}

} // namespace verify_mla

using namespace verify_mla;

extern "C" int verify_mla_open(int ordinal, verify_mla_device* device, char* error, size_t error_bytes) {
  return report(open_device(ordinal, device), error, error_bytes);
}

extern "C" int verify_mla_describe(const verify_mla_device* device, const verify_mla_params* params, char* text,
                                   size_t bytes) {
  launch_plan plan;
  const result r = device && params ? make_plan(*device, *params, plan) : result{VERIFY_MLA_INVALID, "null"};
  if (!r) return std::snprintf(text, bytes, "verify_mla: mode=off (%s)", r.message.c_str());
  const std::string split = plan.splits ? "fixed split " + std::to_string(plan.splits)
                                        : "balanced over " + std::to_string(plan.partitions) + " partitions";
  return std::snprintf(text, bytes,
                       "verify_mla: mode=on, %s, %d rows x %d groups, %d-token tiles, partials %s, workspace %.1f MB, "
                       "%d SMs, cc %d.%d",
                       params->variant == VERIFY_MLA_EAGER ? "eager" : split.c_str(), plan.granules * 8, plan.groups,
                       plan.tile_tokens, plan.partial_bf16 ? "bf16" : "fp32",
                       static_cast<double>(plan.workspace_bytes) / 1e6, device->sm_count, device->cc_major,
                       device->cc_minor);
}

extern "C" int verify_mla_workspace_bytes(const verify_mla_device* device, const verify_mla_params* params,
                                          int64_t* bytes, char* error, size_t error_bytes) {
  if (device == nullptr || params == nullptr || bytes == nullptr)
    return report({VERIFY_MLA_INVALID, "device, params or bytes is null"}, error, error_bytes);
  launch_plan plan;
  const result r = make_plan(*device, *params, plan);
  if (r) *bytes = params->variant == VERIFY_MLA_EAGER ? 0 : plan.workspace_bytes;
  return report(r, error, error_bytes);
}

extern "C" int verify_mla_check(const verify_mla_device* device, const verify_mla_params* params, char* error,
                                size_t error_bytes) {
  launch_plan plan;
  return report(check(device, params, plan), error, error_bytes);
}

extern "C" int verify_mla_launch(const verify_mla_device* device, const verify_mla_params* params, char* error,
                                 size_t error_bytes) {
  if (device != nullptr && params != nullptr && params->variant == VERIFY_MLA_EAGER)
    return report(launch_eager(*device, *params), error, error_bytes);
  launch_plan plan;
  result r = check(device, params, plan);
  if (r)
    r = launch_kernels(plan, make_args(*params, plan, params->workspace.data),
                       static_cast<cudaStream_t>(params->stream));
  return report(r, error, error_bytes);
}
