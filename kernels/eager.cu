#include "eager.h"

#include "config.h"

#include <algorithm>

namespace verify_mla {
namespace {

// from: int32 [n]; to: int64 [n]
__global__ void widen_indices(const int32_t* from, int64_t* to, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}

// Keeps the first failure and lets the path go on, so that one run shows every call that fails.
struct first_error {
  result kept;
  void note(const result& r) {
    if (r) return;
    if (kept) kept = r;
    (void)cudaGetLastError(); // or the next launch would report this one again
  }
  void note(cudaError_t error, const char* call) { note(cuda_result(error, call)); }
};

} // namespace

const void* widen_kernel() { return reinterpret_cast<const void*>(&widen_indices); }

result eager_call::read_back() {
  first_error errors;
  kv_indptr.assign(static_cast<size_t>(params.batch) + 1, 0);
  errors.note(cudaMemcpyAsync(kv_indptr.data(), params.kv_indptr.data, kv_indptr.size() * sizeof(int32_t),
                              cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(params.stream)),
              "read-back of kv_indptr");
  errors.note(cudaStreamSynchronize(static_cast<cudaStream_t>(params.stream)), "wait for the read-back");
  return errors.kept;
}

result eager_call::choose() {
  int longest = 0;
  for (size_t b = 0; b + 1 < kv_indptr.size(); ++b) longest = std::max(longest, kv_indptr[b + 1] - kv_indptr[b]);
  return make_plan(device, params, plan, std::clamp(longest / 128, 1, device.sm_count));
}

result eager_call::allocate() {
  first_error errors;
  errors.note(cudaMalloc(&workspace, static_cast<size_t>(plan.workspace_bytes)), "allocation of the workspace");
  if (given.qo_indptr.dtype == VERIFY_MLA_I32)
    errors.note(cudaMalloc(&qo_copy, (static_cast<size_t>(params.batch) + 1) * sizeof(int64_t)),
                "allocation for int64 qo_indptr");
  if (given.kv_indices.dtype == VERIFY_MLA_I32)
    errors.note(cudaMalloc(&kv_copy, static_cast<size_t>(given.kv_indices.elements) * sizeof(int64_t)),
                "allocation for int64 kv_indices");
  return errors.kept;
}

result eager_call::convert() {
  first_error errors;
  const auto stream = static_cast<cudaStream_t>(params.stream);
  if (qo_copy != nullptr) {
    qo_indptr.resize(static_cast<size_t>(params.batch) + 1);
    for (size_t b = 0; b < qo_indptr.size(); ++b) qo_indptr[b] = static_cast<int64_t>(b) * params.draft_tokens;
    errors.note(
        cudaMemcpyAsync(qo_copy, qo_indptr.data(), qo_indptr.size() * sizeof(int64_t), cudaMemcpyHostToDevice, stream),
        "conversion copy of qo_indptr");
    // The source lives no longer than this call, so such code waits, as a framework does after a pageable copy.
    errors.note(cudaStreamSynchronize(stream), "wait for the conversion copy of qo_indptr");
    params.qo_indptr = {qo_copy, static_cast<int64_t>(qo_indptr.size()), VERIFY_MLA_I64, 0};
  }
  const int64_t n = given.kv_indices.elements;
  if (kv_copy != nullptr && n > 0) {
    widen_indices<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(
        static_cast<const int32_t*>(given.kv_indices.data), static_cast<int64_t*>(kv_copy), n);
    errors.note(cudaGetLastError(), "conversion of kv_indices");
    params.kv_indices = {kv_copy, n, VERIFY_MLA_I64, 0};
  }
  return errors.kept;
}

result eager_call::launch() {
  // Without its buffers the launch would be a wild write.
  if (workspace == nullptr) return {VERIFY_MLA_CUDA, "no workspace: the kernels were not launched"};
  first_error errors;
  errors.note(check_buffers(params, plan));
  if (errors.kept)
    errors.note(launch_kernels(plan, make_args(params, plan, workspace), static_cast<cudaStream_t>(params.stream)));
  return errors.kept;
}

result eager_call::release() {
  first_error errors;
  for (void** p : {&kv_copy, &qo_copy, &workspace}) {
    if (*p == nullptr) continue;
    const result released = cuda_result(cudaFree(*p), "release of a per-call buffer");
    errors.note(released);
    if (released) *p = nullptr; // a refused release, in a capture, can be made up for
  }
  return errors.kept;
}

result launch_eager(const verify_mla_device& device, const verify_mla_params& params) {
  eager_call call(device, params);
  first_error errors;
  errors.note(call.read_back());
  const result chosen = call.choose();
  if (!chosen) return chosen; // the sizes are wrong: nothing was launched
  errors.note(call.allocate());
  errors.note(call.convert());
  errors.note(call.launch());
  errors.note(call.release());
  return errors.kept;
}

} // namespace verify_mla
