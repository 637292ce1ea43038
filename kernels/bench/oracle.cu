// The reference on the device, in double precision and by another route than the kernels: explicit scores of a whole
// row, a plain softmax, one thread per value column. Slow and obvious on purpose.
#include "config.h"
#include "problem.h"
#include "reference.h"

#include "capturesan_host.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace verify_mla {
namespace {

__device__ double from_bf16(uint16_t bits) { return static_cast<double>(__uint_as_float(uint32_t{bits} << 16)); }

__device__ double block_reduce(double v, bool maximum) {
  __shared__ double shared[512];
  shared[threadIdx.x] = v;
  __syncthreads();
  for (int n = 256; n > 0; n /= 2) {
    if (threadIdx.x < static_cast<unsigned>(n)) {
      const double other = shared[threadIdx.x + n];
      shared[threadIdx.x] = maximum ? fmax(shared[threadIdx.x], other) : shared[threadIdx.x] + other;
    }
    __syncthreads();
  }
  const double all = shared[0];
  __syncthreads();
  return all;
}

// One block of 512 threads per row. scores: fp64 [rows, longest].
__global__ void oracle_kernel(verify_mla_params p, double* scores, int64_t longest, double* out, double* lse) {
  const auto* qo = static_cast<const int64_t*>(p.qo_indptr.data);
  const auto* kv_indptr = static_cast<const int32_t*>(p.kv_indptr.data);
  const auto* kv = static_cast<const uint16_t*>(p.kv.data);
  const int64_t row = blockIdx.x;
  const int64_t token = row / p.heads;
  int b = 0;
  while (token >= qo[b + 1]) ++b;
  const int64_t t = token - qo[b];
  const int64_t draft = qo[b + 1] - qo[b];
  const int64_t prefix = kv_indptr[b + 1] - kv_indptr[b];
  const auto slot_of = [&](int64_t j) {
    return j < prefix ? static_cast<const int64_t*>(p.kv_indices.data)[kv_indptr[b] + j]
                      : static_cast<const int64_t*>(p.out_cache_loc.data)[qo[b] + j - prefix];
  };
  __shared__ double q[HEAD_DIM];
  for (int i = threadIdx.x; i < HEAD_DIM; i += blockDim.x)
    q[i] = from_bf16(static_cast<const uint16_t*>(p.q.data)[row * HEAD_DIM + i]);
  __syncthreads();
  double* s = scores + row * longest;
  double top = -INFINITY;
  for (int64_t j = threadIdx.x; j < prefix + draft; j += blockDim.x) {
    bool seen = true;
    if (j >= prefix) {
      const int64_t d = j - prefix;
      if (p.custom_mask.data != nullptr)
        seen = static_cast<const uint8_t*>(
            p.custom_mask.data)[static_cast<const int64_t*>(p.mask_indptr.data)[b] + t * (prefix + draft) + j];
      else if (p.causal)
        seen = d <= t;
    }
    double dot = 0;
    if (seen) {
      const uint16_t* k = kv + slot_of(j) * HEAD_DIM;
      for (int i = 0; i < HEAD_DIM; ++i) dot += q[i] * from_bf16(k[i]);
      dot *= static_cast<double>(p.scale);
      if (p.cap > 0) dot = static_cast<double>(p.cap) * tanh(dot / static_cast<double>(p.cap));
    }
    s[j] = seen ? dot : -INFINITY;
    top = fmax(top, s[j]);
  }
  top = block_reduce(top, true);
  double sum = 0;
  for (int64_t j = threadIdx.x; j < prefix + draft; j += blockDim.x) {
    s[j] = top == -INFINITY ? 0.0 : exp(s[j] - top);
    sum += s[j];
  }
  sum = block_reduce(sum, false);
  double o = 0;
  for (int64_t j = 0; j < prefix + draft; ++j)
    if (s[j] > 0) o += s[j] * from_bf16(kv[slot_of(j) * HEAD_DIM + threadIdx.x]);
  out[row * VALUE_DIM + threadIdx.x] = sum > 0 ? o / sum : 0.0;
  if (threadIdx.x == 0) lse[row] = sum > 0 ? top + log(sum) : -INFINITY;
}

double bf16_value(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float f;
  std::memcpy(&f, &wide, 4);
  return static_cast<double>(f);
}

} // namespace

void oracle(const verify_mla_params& params, std::vector<double>& out, std::vector<double>& lse) {
  const int64_t rows = int64_t{params.batch} * params.draft_tokens * params.heads;
  std::vector<int32_t> indptr(static_cast<size_t>(params.batch) + 1);
  require(cudaMemcpy(indptr.data(), params.kv_indptr.data, indptr.size() * 4, cudaMemcpyDeviceToHost), "oracle");
  int64_t longest = 0;
  for (size_t b = 0; b + 1 < indptr.size(); ++b) longest = std::max<int64_t>(longest, indptr[b + 1] - indptr[b]);
  longest += params.draft_tokens;
  double *scores = nullptr, *device_out = nullptr, *device_lse = nullptr;
  require(cudaMalloc(&scores, static_cast<size_t>(rows * longest) * 8), "oracle");
  require(cudaMalloc(&device_out, static_cast<size_t>(rows) * VALUE_DIM * 8), "oracle");
  require(cudaMalloc(&device_lse, static_cast<size_t>(rows) * 8), "oracle");
  oracle_kernel<<<static_cast<unsigned>(rows), 512>>>(params, scores, longest, device_out, device_lse);
  require(cudaGetLastError(), "oracle");
  out.resize(static_cast<size_t>(rows) * VALUE_DIM);
  lse.resize(static_cast<size_t>(rows));
  require(cudaMemcpy(out.data(), device_out, out.size() * 8, cudaMemcpyDeviceToHost), "oracle");
  require(cudaMemcpy(lse.data(), device_lse, lse.size() * 8, cudaMemcpyDeviceToHost), "oracle");
  for (double* p : {scores, device_out, device_lse}) cudaFree(p);
}

difference compare(const device_problem& problem, const std::vector<double>& out, const std::vector<double>& lse) {
  std::vector<uint16_t> o(out.size());
  std::vector<float> l(lse.size());
  require(cudaMemcpy(o.data(), problem.out, o.size() * 2, cudaMemcpyDeviceToHost), "read out");
  require(cudaMemcpy(l.data(), problem.lse, l.size() * 4, cudaMemcpyDeviceToHost), "read lse");
  difference d;
  const size_t per_request = out.size() / static_cast<size_t>(problem.batch);
  for (size_t b = 0; b < static_cast<size_t>(problem.batch); ++b) {
    double error = 0, norm = 0;
    for (size_t i = b * per_request; i < (b + 1) * per_request; ++i) {
      const double v = bf16_value(o[i]);
      if (!std::isfinite(v)) d.bad = true;
      error += (v - out[i]) * (v - out[i]);
      norm += out[i] * out[i];
      d.max_abs = std::max(d.max_abs, std::fabs(v - out[i]));
      d.max_ref = std::max(d.max_ref, std::fabs(out[i]));
    }
    d.rel_l2 = std::max(d.rel_l2, norm > 0 ? std::sqrt(error / norm) : std::sqrt(error));
  }
  for (size_t i = 0; i < lse.size(); ++i) {
    const double v = static_cast<double>(l[i]);
    if (std::isinf(lse[i]) || std::isinf(v) || std::isnan(v))
      d.bad |= !(v == lse[i]);
    else
      d.lse = std::max(d.lse, std::fabs(v - lse[i]));
  }
  return d;
}

void use_host_oracle() {
  capturesan::run_on_host(oracle_kernel, [](const capturesan::place& at, const verify_mla_params& params, double*,
                                            int64_t, double* out, double* lse) {
    if (at.x() > 0) return; // one call does it all, by the reference on the CPU
    std::vector<double> o, l;
    reference(params, o, l);
    std::copy(o.begin(), o.end(), out);
    std::copy(l.begin(), l.end(), lse);
  });
}

} // namespace verify_mla
