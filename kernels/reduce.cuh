// Kernel B. Merges the partial results of a request: one block per granule of eight rows and MT value tiles of 16
// columns. The eight warps share the partials, so that a long context (132 partials and more) is not merged serially.
// Which slots belong to a request follows from the same arithmetic as in kernel A: no metadata passes between them.
// The order of every sum is fixed: equal inputs give equal bits.
#pragma once

#include "layout.h"
#include "ptx.cuh"
#include "request_table.cuh"
#include "softmax.cuh"

namespace verify_mla {

inline constexpr int REDUCE_WARPS = REDUCE_THREADS / 32;

// Weights of the partials of eight rows: weights[s][row] = 2^(m_s - M), 0 where a partial holds nothing.
// totals[row] = sum of the merged softmax; maxima[row] = M.
// sums: scratch, [count][8].
__device__ __forceinline__ void merge_weights(float* weights, float* sums, float* totals, float* maxima,
                                              float (*exchange)[8], const kernel_args& args, int first_slot, int count,
                                              int group, int group_rows, int granule, int thread) {
  const int row = thread % 8;
  const int warp = thread / 32;
  const float2* ml = reinterpret_cast<const float2*>(args.partial_ml) +
                     (int64_t{first_slot} * args.groups + group) * group_rows + granule * 8 + row;
  float top = NO_MAXIMUM;
  constexpr int AT_ONCE = 5; // loads in flight: all of a long context's, one latency instead of one per 32 partials
  for (int base = thread / 8; base < count; base += AT_ONCE * REDUCE_THREADS / 8) {
    float2 v[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const int s = base + i * REDUCE_THREADS / 8;
      v[i] = s < count ? ml[int64_t{s} * args.groups * group_rows] : make_float2(0, 0);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const int s = base + i * REDUCE_THREADS / 8;
      if (s >= count) break;
      sums[s * 8 + row] = v[i].y;
      weights[s * 8 + row] = v[i].y > 0 ? v[i].x : -INFINITY;
      if (v[i].y > 0) top = fmaxf(top, v[i].x);
    }
  }
  top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 8));
  top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 16));
  if (thread % 32 < 8) exchange[warp][row] = top;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < REDUCE_WARPS; ++w) top = fmaxf(top, exchange[w][row]);
  __syncthreads();
  float sum = 0;
  for (int s = thread / 8; s < count; s += REDUCE_THREADS / 8) {
    const float w = ptx::exp2_fast(weights[s * 8 + row] - top);
    weights[s * 8 + row] = w;
    if (w > 0) sum += w * sums[s * 8 + row];
  }
  sum += __shfl_xor_sync(0xffffffffu, sum, 8);
  sum += __shfl_xor_sync(0xffffffffu, sum, 16);
  if (thread % 32 < 8) exchange[warp][row] = sum;
  __syncthreads();
  if (thread < 8) {
    sum = 0;
#pragma unroll
    for (int w = 0; w < REDUCE_WARPS; ++w) sum += exchange[w][row];
    totals[row] = sum;
    maxima[row] = top;
  }
}

// Four neighbouring elements of a partial, as they lie in memory.
template <bool BF16>
struct partial_vector;
template <>
struct partial_vector<false> {
  float4 v;
  __device__ __forceinline__ float4 get() const { return v; }
};
template <>
struct partial_vector<true> {
  uint2 v;
  __device__ __forceinline__ float4 get() const {
    return make_float4(ptx::bf16_low(v.x), ptx::bf16_high(v.x), ptx::bf16_low(v.y), ptx::bf16_high(v.y));
  }
};

// MT: value tiles per block. tile_tokens, granules: of the configuration kernel A ran with.
// Dynamic shared memory: 64 bytes per possible partial of a request.
template <int MT, bool BF16>
__global__ void __launch_bounds__(REDUCE_THREADS, MT <= 2 ? 3 : 2)
    reduce_kernel(const __grid_constant__ kernel_args args, int tile_tokens, int granules) {
  extern __shared__ __align__(16) float weights[]; // [partials][8], behind them their sums
  __shared__ int table_memory[TABLE_COLUMNS * (MAX_BATCH + 1)];
  __shared__ float exchange[REDUCE_WARPS][8];
  __shared__ float totals[8], maxima[8];
  __shared__ float4 sums[REDUCE_WARPS][MT][32];

  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  int unit = blockIdx.x;
  const int chunks = MT == 8 ? args.reduce_chunks : 1; // one after the other
  const int pieces = VALUE_TILES / MT / chunks;
  int first_tile = unit % pieces * (MT * chunks);
  unit /= pieces;
  const int row_granule = unit % args.row_granules; // of the request
  const int half = args.dealt.half_of(row_granule);
  const int halves = halves_of_group(granules); // 1 or 2
  const int group = half >> (halves - 1);
  const int granule = // of the group
      (half & (halves - 1)) * (granules / 2) + row_granule - args.dealt.first(half);
  const int request = unit / args.row_granules;

  const request_table table(table_memory);
  if (warp == 0) build_request_table(table, args, tile_tokens, lane);
  __syncthreads();
  const int first_row = row_granule * 8;
  const int rows = table.draft[request] * args.heads - first_row; // rows of this granule that exist
  if (rows <= 0) return;

  const int tiles = table.tile_begin[args.batch];
  const slot_range slots =
      args.splits > 0
          ? slot_range{request * args.splits, args.splits}
          : balanced_slots(request, table.tile_begin[request], table.tile_end[request], tiles,
                           effective_partitions(tiles, args.partitions, args.min_tiles, args.few_partitions));
  const int64_t stride = int64_t{args.groups} * VALUE_TILES * granules * 32;
  const auto* from = static_cast<const partial_vector<BF16>*>(args.partial) + int64_t{slots.first} * stride +
                     (int64_t{group} * VALUE_TILES + first_tile) * granules * 32 + granule * 32 + lane;
  // Partials in flight per warp: with bf16 all of a long context over 132 multiprocessors, or one more latency.
  constexpr int AHEAD = MT == 8   ? (BF16 ? 3 : 2)
                        : MT == 4 ? (BF16 ? 9 : 4)
                        : MT == 2 ? (BF16 ? 9 : 4) // two groups and more: at most 66 partials
                                  : (BF16 ? 17 : 9);

  // The first round has nothing to merge and runs while kernel A does: it brings the instructions into the caches,
  // which cost a cold block more than the merge itself.
#pragma unroll 1
  for (int round = 0; round <= chunks; ++round) {
    const int count = round == 0 ? 0 : slots.count;
    if (MT == 8 && round > 1) {
      from += MT * granules * 32;
      first_tile += MT;
    }
    if (round == 1) {
      ptx::wait_for_previous_kernel();
      ptx::let_next_kernel_start();
    }
    float4 acc[MT] = {};
    partial_vector<BF16> v[AHEAD][MT];
    const auto load = [&](int s) {
#pragma unroll
      for (int a = 0; a < AHEAD; ++a)
#pragma unroll
        for (int m = 0; m < MT; ++m)
          if (s + a * REDUCE_WARPS < count)
            v[a][m] = from[(s + a * REDUCE_WARPS) * stride + int64_t{m} * granules * 32];
    };
    load(warp); // on their way while the weights are worked out
    if (MT < 8 || round <= 1)
      merge_weights(weights, weights + 8 * count, totals, maxima, exchange, args, slots.first, count, group,
                    granules * 8, granule, thread);
    __syncthreads();
    for (int s = warp; s < count; s += REDUCE_WARPS * AHEAD) {
      if (s != warp) load(s);
#pragma unroll
      for (int a = 0; a < AHEAD; ++a) {
        const int at = s + a * REDUCE_WARPS;
        if (at >= count) break;
        const float2 w = *reinterpret_cast<const float2*>(weights + at * 8 + lane % 4 * 2);
#pragma unroll
        for (int m = 0; m < MT; ++m) {
          // A partial without weight may never have been written: it must not even be multiplied.
          const float4 x = v[a][m].get();
          acc[m].x += w.x > 0 ? w.x * x.x : 0.0f;
          acc[m].y += w.y > 0 ? w.y * x.y : 0.0f;
          acc[m].z += w.x > 0 ? w.x * x.z : 0.0f;
          acc[m].w += w.y > 0 ? w.y * x.w : 0.0f;
        }
      }
    }
#pragma unroll
    for (int m = 0; m < MT; ++m) sums[warp][m][lane] = acc[m];
    __syncthreads();

    const int64_t out_row = int64_t{table.qo_start[request]} * args.heads + first_row;
    for (int pair = thread; pair < MT * 64; pair += REDUCE_THREADS) { // two neighbouring columns per thread
      const int m = pair / 64;
      const int row = pair / 8 % 8;
      const int column = pair % 8 * 2;
      float value[2] = {0, 0};
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int source = (column + c) % 8 * 4 + row / 2;
        const int element = (column + c) / 8 * 2 + row % 2;
#pragma unroll
        for (int w = 0; w < REDUCE_WARPS; ++w) value[c] += reinterpret_cast<const float*>(&sums[w][m][source])[element];
      }
      const float inverse = totals[row] > 0 ? 1.0f / totals[row] : 0.0f; // a row that sees nothing is 0, not NaN
      if (round > 0 && row < rows)
        *reinterpret_cast<uint32_t*>(args.out + (out_row + row) * VALUE_DIM + (first_tile + m) * 16 + column) =
            ptx::pack_bf16(value[0] * inverse, value[1] * inverse);
    }
    if (round == 1 && first_tile == 0 && args.lse != nullptr && thread < min(rows, 8))
      args.lse[out_row + thread] = totals[thread] > 0 ? (maxima[thread] + log2f(totals[thread])) / LOG2_E : -INFINITY;
  }
}

} // namespace verify_mla
