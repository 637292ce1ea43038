// What the two kinds of math warps share: the product with the values, rescaling, and the way of a partial result to
// memory.
#pragma once

#include "config.h"
#include "kernel_args.h"
#include "layout.h"
#include "ptx.cuh"
#include "query.cuh"
#include "request_table.cuh"
#include "softmax.cuh"
#include "tile_loader.cuh"

namespace verify_mla {

inline constexpr int HALF_BARRIER = 1; // named barriers: of each half

// acc: this warp's 128 (of one team: 64) value columns of its half's rows.
template <class C>
using accumulators = float[C::M_TILES][C::NH][4];

template <class C>
__device__ __forceinline__ void rescale(accumulators<C>& acc, const float* factors, unsigned lane) {
#pragma unroll
  for (int n = 0; n < C::NH; ++n) {
    const float2 f = *reinterpret_cast<const float2*>(factors + n * 8 + lane % 4 * 2);
#pragma unroll
    for (int m = 0; m < C::M_TILES; ++m) {
      acc[m][n][0] *= f.x;
      acc[m][n][1] *= f.y;
      acc[m][n][2] *= f.x;
      acc[m][n][3] *= f.y;
    }
  }
}

// The probabilities of a tile times its values. Value fragments do not depend on the softmax: the first ones are loaded
// by begin(), before the barrier that the probabilities need.
template <class C>
struct value_product {
  static constexpr int AHEAD = 2;
  static constexpr int STEPS = C::TOK / 16 * C::M_TILES;
  uint32_t values; // shared address of this lane's part of the first fragment
  uint32_t a[AHEAD + 1][4];
  uint32_t b[C::NH][2];

  __device__ __forceinline__ void load(int i) {
    ptx::ldmatrix_x4_trans(a[i % (AHEAD + 1)], values + i / C::M_TILES * 16 * ROW_PITCH + i % C::M_TILES * 32);
  }
  __device__ __forceinline__ void begin(uint32_t stage, int member, unsigned lane) {
    values = stage + member * C::VALUES_PER_WARP * 2 + (lane / 16 * 8 + lane % 8) * ROW_PITCH + lane / 8 % 2 * 16;
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) load(i);
  }
  // The probabilities of the 16 tokens of step K. p: shared address of bf16 [HALF_ROWS, P_PITCH].
  template <int K>
  __device__ __forceinline__ void load_pairs(uint32_t p, unsigned lane) {
    const uint32_t pairs = p + ((lane / 16 * 8 + lane % 8) * C::P_PITCH + lane / 8 % 2 * 8) * 2 + K * 32;
    if constexpr (C::NH == 1) {
      ptx::ldmatrix_x2(b[0][0], b[0][1], pairs);
    } else {
#pragma unroll
      for (int n = 0; n < C::NH; n += 2) {
        if (n + 1 == C::NH) {
          ptx::ldmatrix_x2(b[n][0], b[n][1], pairs + n * 8 * C::P_PITCH * 2);
          break;
        }
        uint32_t r[4];
        ptx::ldmatrix_x4(r, pairs + n * 8 * C::P_PITCH * 2);
        b[n][0] = r[0];
        b[n][1] = r[1];
        b[(n + 1) % C::NH][0] = r[2]; // the modulus for odd NH, where this is not reached
        b[(n + 1) % C::NH][1] = r[3];
      }
    }
  }
  // Step K, whose probabilities have been loaded.
  template <int K>
  __device__ __forceinline__ void add(accumulators<C>& acc, bool all_granules) {
#pragma unroll
    for (int m = 0; m < C::M_TILES; ++m) {
      const int i = K * C::M_TILES + m;
      if (i + AHEAD < STEPS) load(i + AHEAD);
#pragma unroll
      for (int n = 0; n < C::NH; ++n) {
        if (C::LAST_MAY_LACK && n + 1 == C::NH)
          ptx::mma_if(all_granules, acc[m][n], a[i % (AHEAD + 1)], b[n][0], b[n][1]);
        else
          ptx::mma(acc[m][n], a[i % (AHEAD + 1)], b[n][0], b[n][1]);
      }
    }
  }
  __device__ __forceinline__ void add_all(accumulators<C>& acc, uint32_t p, unsigned lane, bool all_granules = true) {
    load_pairs<0>(p, lane);
    add<0>(acc, all_granules);
    if constexpr (C::TOK == 32) {
      load_pairs<1>(p, lane);
      add<1>(acc, all_granules);
    }
  }
};

// Writes the accumulators in register order (layout.h).
template <class C, bool BF16>
__device__ __forceinline__ void flush_values(const accumulators<C>& acc, const kernel_args& args, int64_t unit,
                                             int member, int half, unsigned lane) {
  // in units of four elements
  const int64_t base = ((unit * VALUE_TILES + member * C::M_TILES) * C::NT + half * C::NH) * 32 + lane;
#pragma unroll
  for (int m = 0; m < C::M_TILES; ++m)
#pragma unroll
    for (int n = 0; n < C::NH; ++n) {
      const float(&v)[4] = acc[m][n];
      const int64_t at = base + (m * C::NT + n) * 32;
      if constexpr (BF16)
        static_cast<uint2*>(args.partial)[at] = make_uint2(ptx::pack_bf16(v[0], v[1]), ptx::pack_bf16(v[2], v[3]));
      else
        static_cast<float4*>(args.partial)[at] = make_float4(v[0], v[1], v[2], v[3]);
    }
}

// Pieces of the dynamic shared memory.
template <class C>
struct block_memory {
  char* base;
  __device__ __forceinline__ float* scores(int half) const {
    return reinterpret_cast<float*>(base + C::SCRATCH_OFFSET + half * C::SCRATCH_BYTES);
  }
  __device__ __forceinline__ bf16_bits* p() const { return reinterpret_cast<bf16_bits*>(base + C::P_OFFSET); }
  __device__ __forceinline__ float* factors() const { return reinterpret_cast<float*>(base + C::FACTOR_OFFSET); }
  __device__ __forceinline__ int* grew() const { return reinterpret_cast<int*>(base + C::GREW_OFFSET); }
  __device__ __forceinline__ uint64_t* row_mask() const { return reinterpret_cast<uint64_t*>(base + C::MASK_OFFSET); }
  __device__ __forceinline__ row_state* states() const { return reinterpret_cast<row_state*>(base + C::STATE_OFFSET); }
  __device__ __forceinline__ float* references() const { return reinterpret_cast<float*>(base + C::STATE_OFFSET); }
};

// Rows of a request that a half has.
struct row_run {
  int first, count;
};
template <class C>
__device__ __forceinline__ row_run half_rows(const kernel_args& args, int group, int half) {
  const int index = group * C::HALVES + half;
  return {args.dealt.first(index) * 8, args.dealt.count(index) * 8};
}
// Does one of them exist where a request has `all` of them?
__device__ __forceinline__ bool has_rows(const row_run& rows, int all) { return rows.count > 0 && rows.first < all; }

// Queries and masks of the rows of a half. member: this warp within its half.
template <class C>
__device__ __forceinline__ void load_half(query_fragments<C>& query, const block_memory<C>& memory,
                                          const kernel_args& args, const request_table& table, const tile_cursor& at,
                                          const row_run& rows, int half, int member, int lane) {
  const int draft = table.draft[at.request];
  const bf16_bits* q = args.q + (int64_t{table.qo_start[at.request]} * args.heads + rows.first) * HEAD_DIM;
  query_loads<C> loads;
  loads.begin(q, min(rows.count, draft * args.heads - rows.first), member % K_SLICES, lane);
  const uint8_t* mask = args.mask ? args.mask + args.mask_indptr[at.request] : nullptr;
  load_row_masks<C>(memory.row_mask(), mask, at.prefix, draft, rows.first, half, member, args, lane);
  loads.finish(query, ptx::smem_address(memory.scores(half)) + member * Q_STAGE_BYTES, lane);
}

} // namespace verify_mla
