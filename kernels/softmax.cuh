// Online softmax of one tile of scores: four partial sums per score in, bf16 probabilities out.
#pragma once

#include "config.h"
#include "kernel_args.h"
#include "ptx.cuh"

namespace verify_mla {

inline constexpr float LOG2_E = 1.4426950408889634f;
inline constexpr float NO_MAXIMUM = -1e30f; // finite, so that exp2(masked - reference) is 0 and never NaN

// The reference maximum follows the true one only when it falls behind by more than this (base 2). Probabilities are
// then at most 2^8, harmless in bf16 and fp32, and the accumulators are hardly ever rescaled.
inline constexpr float MAXIMUM_SLACK = 8.0f;

// A row as one lane sees it: x, the reference maximum (base 2), and y, the sum of this lane's tokens. It is kept in
// shared memory between tiles, where it costs two accesses instead of two of the registers that are all taken.
using row_state = float2;

struct tile_span {
  int begin;  // first token of the tile within its request
  int prefix; // tokens visible to every row
  int total;  // prefix + draft
};

// tanh by one exponential: the hardware tanh is not accurate enough once multiplied by the cap.
__device__ __forceinline__ float soft_cap(float s, float cap) {
  return cap * (1.0f - __fdividef(2.0f, 1.0f + ptx::exp2_fast(2.0f * LOG2_E / cap * s)));
}

__device__ __forceinline__ bool visible(int j, const tile_span& span, uint64_t draft_mask) {
  if (j < span.prefix) return true;
  return j < span.total && (draft_mask >> (j - span.prefix) & 1);
}

// Updates the state of a row shared by LANES lanes from this lane's N scores, which become probabilities.
// Returns the factor by which everything accumulated before must shrink.
template <int N, int LANES>
__device__ __forceinline__ float update_row(row_state& kept, float (&s)[N], const tile_span& span, int first_token,
                                            const uint64_t& draft_mask, bool fresh, float scale, float cap) {
  row_state state = fresh ? make_float2(NO_MAXIMUM, 0.0f) : kept;
  if (cap > 0) {
#pragma unroll
    for (int i = 0; i < N; ++i) s[i] = soft_cap(s[i] * scale, cap) * LOG2_E;
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) s[i] *= scale * LOG2_E;
  }
  if (span.begin + first_token + N > span.prefix) {
    const uint64_t bits = draft_mask;
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (!visible(span.begin + first_token + i, span, bits)) s[i] = -INFINITY;
  }
  float top = s[0];
#pragma unroll
  for (int i = 1; i < N; ++i) top = fmaxf(top, s[i]);
#pragma unroll
  for (int offset = LANES / 2; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));

  float factor = 1.0f;
  if (top > state.x + MAXIMUM_SLACK) {
    factor = fresh ? 1.0f : ptx::exp2_fast(state.x - top);
    state.x = top;
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    s[i] = ptx::exp2_fast(s[i] - state.x);
    sum += s[i];
  }
  kept = make_float2(state.x, state.y * factor + sum);
  return factor;
}

// N neighbouring floats of every slice, added in slice order. SLICE: floats from one slice to the next.
template <int N, int SLICE>
__device__ __forceinline__ void sum_slices(float (&s)[N], const float* scores) {
#pragma unroll
  for (int slice = 0; slice < K_SLICES; ++slice) {
    float v[N];
    if constexpr (N % 4 == 0) {
#pragma unroll
      for (int i = 0; i < N; i += 4)
        *reinterpret_cast<float4*>(v + i) = *reinterpret_cast<const float4*>(scores + slice * SLICE + i);
    } else if constexpr (N == 2) {
      *reinterpret_cast<float2*>(v) = *reinterpret_cast<const float2*>(scores + slice * SLICE);
    } else {
      v[0] = scores[slice * SLICE];
    }
#pragma unroll
    for (int i = 0; i < N; ++i) s[i] = slice == 0 ? v[i] : s[i] + v[i];
  }
}

template <int N>
__device__ __forceinline__ void store_probabilities(bf16_bits* p, const float (&s)[N]) {
  if constexpr (N == 1) {
    *p = static_cast<bf16_bits>(ptx::pack_bf16(s[0], 0.0f));
  } else {
    uint32_t packed[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; ++i) packed[i] = ptx::pack_bf16(s[2 * i], s[2 * i + 1]);
    if constexpr (N == 2) *reinterpret_cast<uint32_t*>(p) = packed[0];
    if constexpr (N == 4) *reinterpret_cast<uint2*>(p) = *reinterpret_cast<uint2*>(packed);
    if constexpr (N == 8) *reinterpret_cast<uint4*>(p) = *reinterpret_cast<uint4*>(packed);
  }
}

// What one half of the math warps needs to turn the scores of a tile into probabilities. Rows are the group's.
template <class C>
struct softmax_buffers {
  const float* scores;      // fp32 [4, HALF_ROWS, S_PITCH], this half's
  bf16_bits* p;             // bf16 [ROWS, P_PITCH]
  float* factors;           // fp32 [ROWS]
  row_state* states;        // [THREADS]
  const uint64_t* row_mask; // [ROWS]
};

// Every thread has part of one row. Returns true if a row must be rescaled.
template <class C>
__device__ __forceinline__ bool update_rows(const softmax_buffers<C>& b, const tile_span& span, bool fresh,
                                            const kernel_args& args, int thread) {
  constexpr int N = C::TOK_PER_LANE;
  constexpr int LANES = C::LANES_PER_ROW;
  const int row = thread / LANES;
  const int lane = thread % LANES;
  float s[N];
  sum_slices<N, C::HALF_ROWS * C::S_PITCH>(s, b.scores + row % C::HALF_ROWS * C::S_PITCH + lane * N);
  const float f =
      update_row<N, LANES>(b.states[thread], s, span, lane * N, b.row_mask[row], fresh, args.scale, args.cap);
  store_probabilities(b.p + row * C::P_PITCH + lane * N, s);
  if (lane == 0) b.factors[row] = f;
  return f != 1.0f;
}

// ml: fp32 [ROWS, 2] of this slot and group.
template <class C>
__device__ __forceinline__ void flush_rows(const row_state* states, float* ml, int thread) {
  const row_state state = states[thread];
  float sum = state.y;
#pragma unroll
  for (int offset = C::LANES_PER_ROW / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (thread % C::LANES_PER_ROW == 0)
    reinterpret_cast<float2*>(ml)[thread / C::LANES_PER_ROW] = make_float2(state.x, sum);
}

} // namespace verify_mla
