#include "reference.h"

#include "bf16.h"
#include "config.h"

#include <cmath>
#include <limits>

namespace verify_mla {
namespace {

template <class T>
const T* as(const verify_mla_buffer& b) {
  return static_cast<const T*>(b.data);
}

bool visible(const verify_mla_params& p, int64_t b, int64_t t, int64_t j, int64_t prefix, int64_t draft) {
  if (j < prefix) return true;
  if (p.custom_mask.data != nullptr)
    return as<uint8_t>(p.custom_mask)[as<int64_t>(p.mask_indptr)[b] + t * (prefix + draft) + j] != 0;
  return !p.causal || j - prefix <= t;
}

} // namespace

void reference(const verify_mla_params& p, std::vector<double>& out, std::vector<double>& lse) {
  const auto* qo = as<int64_t>(p.qo_indptr);
  const auto* kv_indptr = as<int32_t>(p.kv_indptr);
  const auto tokens = static_cast<size_t>(qo[p.batch]);
  const auto heads = static_cast<size_t>(p.heads);
  out.assign(tokens * heads * VALUE_DIM, 0.0);
  lse.assign(tokens * heads, -std::numeric_limits<double>::infinity());
  for (int64_t b = 0; b < p.batch; ++b) {
    const int64_t prefix = kv_indptr[b + 1] - kv_indptr[b];
    const int64_t draft = qo[b + 1] - qo[b];
    std::vector<double> s(static_cast<size_t>(prefix + draft));
    std::vector<const uint16_t*> keys(s.size());
    for (int64_t j = 0; j < prefix + draft; ++j)
      keys[static_cast<size_t>(j)] =
          as<uint16_t>(p.kv) + HEAD_DIM * (j < prefix ? as<int64_t>(p.kv_indices)[kv_indptr[b] + j]
                                                      : as<int64_t>(p.out_cache_loc)[qo[b] + j - prefix]);
    for (int64_t row = qo[b] * p.heads; row < qo[b + 1] * p.heads; ++row) {
      const uint16_t* q = as<uint16_t>(p.q) + row * HEAD_DIM;
      double top = -std::numeric_limits<double>::infinity();
      for (size_t j = 0; j < s.size(); ++j) {
        s[j] = -std::numeric_limits<double>::infinity();
        if (!visible(p, b, row / p.heads - qo[b], static_cast<int64_t>(j), prefix, draft)) continue;
        double dot = 0;
        for (int i = 0; i < HEAD_DIM; ++i)
          dot += static_cast<double>(bf16_to_float(q[i])) * static_cast<double>(bf16_to_float(keys[j][i]));
        s[j] = dot * static_cast<double>(p.scale);
        if (p.cap > 0) s[j] = static_cast<double>(p.cap) * std::tanh(s[j] / static_cast<double>(p.cap));
        top = std::fmax(top, s[j]);
      }
      if (std::isinf(top)) continue; // sees nothing
      double sum = 0;
      double* o = out.data() + row * VALUE_DIM;
      for (size_t j = 0; j < s.size(); ++j) {
        const double weight = std::exp(s[j] - top);
        if (weight == 0) continue;
        sum += weight;
        for (int i = 0; i < VALUE_DIM; ++i) o[i] += weight * static_cast<double>(bf16_to_float(keys[j][i]));
      }
      for (int i = 0; i < VALUE_DIM; ++i) o[i] /= sum;
      lse[static_cast<size_t>(row)] = top + std::log(sum);
    }
  }
}

} // namespace verify_mla
