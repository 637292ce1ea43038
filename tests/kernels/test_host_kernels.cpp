// The host implementation of the kernels against the double-precision reference, through the real launch arithmetic.
#include "catch_compat.h"

#include "bf16.h"
#include "config.h"
#include "host_kernels.h"
#include "plan.h"
#include "reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

using namespace verify_mla;

namespace {

const verify_mla_device H200{0, 132, 232448, 9, 0, 60 << 20};
const verify_mla_device RTX{0, 188, 101376, 12, 0, 128 << 20};

enum class mask_kind { causal, full, tree, nothing };

struct problem {
  verify_mla_params p = {};
  std::vector<uint16_t> q, kv, out;
  std::vector<int32_t> kv_indptr;
  std::vector<int64_t> kv_indices, qo_indptr, out_cache_loc, mask_indptr;
  std::vector<uint8_t> mask;
  std::vector<float> lse;
  void* workspace = nullptr;
  std::vector<char> workspace_memory;

  problem(const std::vector<int>& prefix, int draft, int heads, mask_kind kind, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto batch = prefix.size();
    const auto rows = batch * static_cast<size_t>(draft * heads);
    const int used = std::accumulate(prefix.begin(), prefix.end(), 0) + static_cast<int>(batch) * draft;
    std::vector<int64_t> order(static_cast<size_t>(used) + 10);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    q.resize(rows * HEAD_DIM);
    for (auto& x : q) x = float_to_bf16(normal(random));
    kv.assign(order.size() * HEAD_DIM, 0x7fff); // NaN where nobody may read
    for (int i = 0; i < used; ++i)
      for (int d = 0; d < HEAD_DIM; ++d)
        kv[static_cast<size_t>(order[static_cast<size_t>(i)]) * HEAD_DIM + static_cast<size_t>(d)] =
            float_to_bf16(0.5f * normal(random));
    out.assign(rows * VALUE_DIM, 0x7fff);
    lse.assign(rows, std::numeric_limits<float>::quiet_NaN());
    size_t next = 0;
    kv_indptr = {0};
    qo_indptr = {0};
    mask_indptr = {3};
    mask.assign(3, 7);
    for (int n : prefix) {
      for (int j = 0; j < n; ++j) kv_indices.push_back(order[next++]);
      for (int t = 0; t < draft; ++t) out_cache_loc.push_back(order[next++]);
      kv_indptr.push_back(kv_indptr.back() + n);
      qo_indptr.push_back(qo_indptr.back() + draft);
      for (int t = 0; t < draft; ++t) {
        for (int j = 0; j < n; ++j) mask.push_back(static_cast<uint8_t>(j + t)); // must be ignored
        for (int d = 0; d < draft; ++d)
          mask.push_back(kind == mask_kind::nothing ? 0 : d == t || (d < t && random() % 2) ? 1 : 0);
      }
      mask_indptr.push_back(static_cast<int64_t>(mask.size()));
    }
    kv_indices.resize(kv_indices.size() + 5, 1 << 30); // a stale tail
    p.struct_bytes = sizeof p;
    p.batch = static_cast<int>(batch);
    p.draft_tokens = draft;
    p.heads = heads;
    p.causal = kind == mask_kind::causal;
    p.scale = 0.1447f;
    const auto at = [](auto& v, int dtype) {
      return verify_mla_buffer{v.data(), static_cast<int64_t>(v.size()), dtype, 0};
    };
    p.q = at(q, VERIFY_MLA_BF16);
    p.kv = at(kv, VERIFY_MLA_BF16);
    p.kv_indptr = at(kv_indptr, VERIFY_MLA_I32);
    p.kv_indices = at(kv_indices, VERIFY_MLA_I64);
    p.qo_indptr = at(qo_indptr, VERIFY_MLA_I64);
    p.out_cache_loc = at(out_cache_loc, VERIFY_MLA_I64);
    if (kind == mask_kind::tree || kind == mask_kind::nothing) {
      p.custom_mask = at(mask, VERIFY_MLA_U8);
      p.mask_indptr = at(mask_indptr, VERIFY_MLA_I64);
    }
    p.out = at(out, VERIFY_MLA_BF16);
    p.lse = at(lse, VERIFY_MLA_F32);
  }

  void run(const verify_mla_device& device, int variant, uint32_t flags, int min_tiles) {
    p.variant = variant;
    p.flags = flags;
    p.min_tiles = min_tiles;
    launch_plan plan;
    REQUIRE(make_plan(device, p, plan));
    workspace_memory.assign(static_cast<size_t>(plan.workspace_bytes) + 256, static_cast<char>(0xff)); // NaN
    auto address = reinterpret_cast<uintptr_t>(workspace_memory.data());
    p.workspace = {reinterpret_cast<void*>((address + 255) / 256 * 256), plan.workspace_bytes, VERIFY_MLA_U8, 0};
    REQUIRE(check_buffers(p, plan));
    const kernel_args args = make_args(p, plan, p.workspace.data);
    verify_mla_host_partial(static_cast<unsigned>(plan.partial_blocks), 256, args, plan.granules, plan.tile_tokens);
    verify_mla_host_reduce(static_cast<unsigned>(plan.reduce_blocks), 256, args, plan.tile_tokens, plan.granules,
                           plan.reduce_tiles);
  }

  void compare() {
    std::vector<double> o, l;
    reference(p, o, l);
    double error = 0, norm = 0;
    for (size_t i = 0; i < o.size(); ++i) {
      const double v = static_cast<double>(bf16_to_float(out[i]));
      REQUIRE(std::isfinite(v));
      error += (v - o[i]) * (v - o[i]);
      norm += o[i] * o[i];
    }
    CHECK(std::sqrt(error) <= 5e-3 * std::sqrt(norm));
    for (size_t i = 0; i < l.size(); ++i) {
      if (std::isinf(l[i]))
        CHECK(std::isinf(lse[i]));
      else
        CHECK(std::fabs(static_cast<double>(lse[i]) - l[i]) <= 1e-3);
    }
  }
};

} // namespace

TEST_CASE("host kernels agree with the reference") {
  int seed = 0;
  for (mask_kind kind : {mask_kind::causal, mask_kind::full, mask_kind::tree, mask_kind::nothing})
    for (int variant : {VERIFY_MLA_BALANCED, VERIFY_MLA_FIXED_SPLIT_16, VERIFY_MLA_FIXED_SPLIT_64}) {
      problem a({0, 1, 33, 130}, 3, 8, kind, static_cast<unsigned>(++seed));
      a.run(seed % 2 ? H200 : RTX, variant, 0, 1);
      a.compare();
    }
  problem b({70, 5}, 9, 8, mask_kind::tree, 99); // 72 rows
  b.p.cap = 30.0f;
  b.run(H200, VERIFY_MLA_BALANCED, VERIFY_MLA_PARTIAL_F32, 1);
  b.compare();
  b.run(RTX, VERIFY_MLA_BALANCED, 0, 1 << 20);
  b.compare();
}

TEST_CASE("with fixed splits a request does not depend on its neighbours") {
  for (int variant : {VERIFY_MLA_FIXED_SPLIT_16, VERIFY_MLA_FIXED_SPLIT_64}) {
    problem a({200, 1, 77}, 3, 8, mask_kind::tree, 41);
    a.run(H200, variant, 0, 0);
    const std::vector<uint16_t> together = a.out;
    const verify_mla_params all = a.p;
    for (int b = 0; b < 3; ++b) { // the same request as a batch of one: its pointers hold absolute positions
      a.p = all;
      a.p.batch = 1;
      a.p.kv_indptr.data = a.kv_indptr.data() + b;
      a.p.qo_indptr.data = a.qo_indptr.data() + b;
      a.p.mask_indptr.data = a.mask_indptr.data() + b;
      std::fill(a.out.begin(), a.out.end(), uint16_t{0x7fff});
      a.run(H200, variant, 0, 0);
      const auto from = static_cast<std::ptrdiff_t>(b * 3 * 8 * VALUE_DIM), to = from + 3 * 8 * VALUE_DIM;
      CHECK(std::equal(a.out.begin() + from, a.out.begin() + to, together.begin() + from));
    }
  }
}

TEST_CASE("the reference, on a case done by hand") {
  // One row, one head, two prefix tokens and itself. Only dimension 0 of the query is set.
  problem a({2}, 1, 1, mask_kind::causal, 5);
  std::fill(a.q.begin(), a.q.end(), uint16_t{0});
  a.q[0] = float_to_bf16(1.0f);
  a.p.scale = 1.0f;
  const float keys[3] = {0.0f, 1.0f, 2.0f};
  for (int j = 0; j < 3; ++j) {
    const int64_t slot = j < 2 ? a.kv_indices[static_cast<size_t>(j)] : a.out_cache_loc[0];
    for (int d = 0; d < HEAD_DIM; ++d) a.kv[static_cast<size_t>(slot * HEAD_DIM + d)] = 0;
    a.kv[static_cast<size_t>(slot * HEAD_DIM)] = float_to_bf16(keys[j]);
  }
  std::vector<double> o, l;
  reference(a.p, o, l);
  // weights 1, e, e^2 on values 0, 1, 2
  const double e = std::exp(1.0);
  CHECK(o[0] == Approx((e + 2 * e * e) / (1 + e + e * e)));
  CHECK(l[0] == Approx(std::log(1 + e + e * e)));
}
