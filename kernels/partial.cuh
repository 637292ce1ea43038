// Kernel A. One block walks a run of tiles; all query rows of its group share each tile, which serves as keys and,
// by its first 512 columns, as values. Two barriers per tile:
//
//   scores of tile i + 1 (tensor cores)                     -> four partial sums per score in shared memory
//   barrier
//   half the warps: softmax of tile i + 1, then values of tile i; the other half the other way round
//   barrier                                                 -> the stage of tile i is refilled
//
// so that one half's softmax hides behind the other half's tensor work. The products run transposed: tokens and value
// columns on the m side, query rows on the n side, whose granule is 8 (72 rows cost nine granules, not two 64-row tiles).
#pragma once

#include "layout.h"
#include "query.cuh"
#include "request_table.cuh"
#include "softmax.cuh"
#include "tile_loader.cuh"

namespace verify_mla {

// Runs of tiles, as one block sees its work.
struct work_range {
  int begin = 0;
  int end = 0;
  int unit = 0; // balanced: partition; fixed: request * splits + split
};

template <class C>
__device__ __forceinline__ work_range find_work(const kernel_args& args, const request_table& table, int unit) {
  if (args.splits > 0) {
    const int b = unit / args.splits;
    const int first = table.tile_begin[b];
    const int tiles = table.tile_begin[b + 1] - first;
    const int split = unit % args.splits;
    return {first + static_cast<int>(fixed_split_begin(split, tiles, args.splits)),
            first + static_cast<int>(fixed_split_begin(split + 1, tiles, args.splits)), unit};
  }
  const int tiles = table.tile_begin[args.batch];
  const int effective = effective_partitions(tiles, args.partitions, args.min_tiles);
  if (unit >= effective) return {0, 0, unit};
  return {static_cast<int>(partition_begin(unit, tiles, effective)),
          static_cast<int>(partition_begin(unit + 1, tiles, effective)), unit};
}

// Scores of a tile: this warp's slice of the dimensions, its share of tokens or rows.
template <class C>
__device__ __forceinline__ void score_tile(const query_fragments<C>& query, uint32_t stage, uint32_t extra_query,
                                           float* scores, int slice, int half, int lane) {
  const int first_m = C::BY_TOKEN ? half : 0;
  const int first_n = C::BY_TOKEN || C::ONE_HALF ? 0 : half * C::QK_N;
  if (C::ONE_HALF && half == 1) return;
  float* out = scores + slice * C::ROWS * C::S_PITCH + (lane % 4 * 2) * C::S_PITCH + lane / 4;
  constexpr int CHAINS = C::QK_N == 1 ? 3 : C::QK_N == 2 ? 2 : 1; // enough independent sums to hide the mma latency
#pragma unroll
  for (int i = 0; i < C::QK_M; ++i) {
    const int m = first_m + i;
    const uint32_t keys = stage + (m * 16 + lane % 16) * ROW_PITCH + slice * K_STEPS * 32 + lane / 16 * 16;
    float acc[CHAINS][C::QK_N][4] = {};
    float acc_extra[4] = {};
    const bool with_extra = C::EXTRA && (C::QK_M == 1 ? half == 0 : m == half);
#pragma unroll
    for (int step = 0; step < K_STEPS; ++step) {
      uint32_t a[4];
      ptx::ldmatrix_x4(a, keys + step * 32);
#pragma unroll
      for (int n = 0; n < C::QK_N; ++n) ptx::mma(acc[step % CHAINS][n], a, query[n][step][0], query[n][step][1]);
      if (with_extra) {
        uint32_t b0, b1;
        ptx::ldmatrix_x2(b0, b1,
                         extra_query + lane % 8 * ROW_PITCH + slice * K_STEPS * 32 + step * 32 + lane / 8 % 2 * 16);
        ptx::mma(acc_extra, a, b0, b1);
      }
    }
#pragma unroll
    for (int n = 0; n < C::QK_N; ++n) {
#pragma unroll
      for (int chain = 1; chain < CHAINS; ++chain)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[0][n][e] += acc[chain][n][e];
      float* s = out + (first_n + n) * 8 * C::S_PITCH + m * 16;
      s[0] = acc[0][n][0];
      s[C::S_PITCH] = acc[0][n][1];
      s[8] = acc[0][n][2];
      s[C::S_PITCH + 8] = acc[0][n][3];
    }
    if (with_extra) {
      float* s = out + 64 * C::S_PITCH + m * 16;
      s[0] = acc_extra[0];
      s[C::S_PITCH] = acc_extra[1];
      s[8] = acc_extra[2];
      s[C::S_PITCH + 8] = acc_extra[3];
    }
  }
}

// acc: this warp's 64 value columns of all rows.
template <class C> using accumulators = float[M_TILES][C::NT][4];

template <class C> __device__ __forceinline__ void rescale(accumulators<C>& acc, const float* factors, int lane) {
#pragma unroll
  for (int n = 0; n < C::NT; ++n) {
    const float2 f = *reinterpret_cast<const float2*>(factors + n * 8 + lane % 4 * 2);
#pragma unroll
    for (int m = 0; m < M_TILES; ++m) {
      acc[m][n][0] *= f.x;
      acc[m][n][1] *= f.y;
      acc[m][n][2] *= f.x;
      acc[m][n][3] *= f.y;
    }
  }
}

template <class C>
__device__ __forceinline__ void add_values(accumulators<C>& acc, uint32_t stage, uint32_t p, int warp, int lane) {
  const uint32_t values = stage + (lane / 16 * 8 + lane % 8) * ROW_PITCH + warp * VALUES_PER_WARP * 2 + lane / 8 % 2 * 16;
  const uint32_t pairs = p + ((lane / 16 * 8 + lane % 8) * C::P_PITCH + lane / 8 % 2 * 8) * 2;
  const uint32_t single = p + (lane % 8 * C::P_PITCH + lane / 8 % 2 * 8) * 2;
#pragma unroll
  for (int k = 0; k < C::TOK / 16; ++k) {
    uint32_t a[M_TILES][4];
#pragma unroll
    for (int m = 0; m < M_TILES; ++m) ptx::ldmatrix_x4_trans(a[m], values + k * 16 * ROW_PITCH + m * 32);
#pragma unroll
    for (int n = 0; n + 1 < C::NT; n += 2) {
      uint32_t b[4];
      ptx::ldmatrix_x4(b, pairs + (n * 8 * C::P_PITCH + k * 16) * 2);
#pragma unroll
      for (int m = 0; m < M_TILES; ++m) ptx::mma(acc[m][n], a[m], b[0], b[1]);
#pragma unroll
      for (int m = 0; m < M_TILES; ++m) ptx::mma(acc[m][n + 1], a[m], b[2], b[3]);
    }
    if constexpr (C::NT % 2 == 1) {
      uint32_t b0, b1;
      ptx::ldmatrix_x2(b0, b1, single + ((C::NT - 1) * 8 * C::P_PITCH + k * 16) * 2);
#pragma unroll
      for (int m = 0; m < M_TILES; ++m) ptx::mma(acc[m][C::NT - 1], a[m], b0, b1);
    }
  }
}

// Writes the accumulators in register order (layout.h) and clears them.
template <class C>
__device__ __forceinline__ void flush_values(accumulators<C>& acc, const kernel_args& args, int64_t unit, int warp,
                                             int lane) {
  const int64_t base = (unit * VALUE_TILES + warp * M_TILES) * C::NT * 32 + lane; // in units of four elements
#pragma unroll
  for (int m = 0; m < M_TILES; ++m)
#pragma unroll
    for (int n = 0; n < C::NT; ++n) {
      float(&v)[4] = acc[m][n];
      const int64_t at = base + (m * C::NT + n) * 32;
      if (args.partial_bf16)
        static_cast<uint2*>(args.partial)[at] = make_uint2(ptx::pack_bf16(v[0], v[1]), ptx::pack_bf16(v[2], v[3]));
      else
        static_cast<float4*>(args.partial)[at] = make_float4(v[0], v[1], v[2], v[3]);
      v[0] = v[1] = v[2] = v[3] = 0;
    }
}

// The first STAGES tiles, and the slots of the one behind them.
template <class C>
__device__ __forceinline__ void fill_pipeline(tile_loader<C>& loader, int first, int tiles, int warp, int lane) {
  int slots[C::STAGES];
#pragma unroll
  for (int s = 0; s < C::STAGES; ++s)
    slots[s] = s < tiles ? static_cast<int>(*loader.slot_pointer(first + s, warp, lane)) : 0;
#pragma unroll
  for (int s = 0; s < C::STAGES; ++s)
    if (s < tiles) loader.issue(s, slots[s], warp);
  if (C::STAGES < tiles) loader.prefetch_slots(first + C::STAGES, warp, lane);
}

template <class C> __device__ __forceinline__ void run_partial(const kernel_args& args) {
  extern __shared__ __align__(128) char smem[];
  float* const scores = reinterpret_cast<float*>(smem + C::SCRATCH_OFFSET);
  bf16_bits* const p = reinterpret_cast<bf16_bits*>(smem + C::P_OFFSET);
  float* const factors = reinterpret_cast<float*>(smem + C::ALPHA_OFFSET);
  uint64_t* const row_mask = reinterpret_cast<uint64_t*>(smem + C::MASK_OFFSET);
  float2* const states = reinterpret_cast<float2*>(smem + C::STATE_OFFSET);
  const request_table table(smem + C::TABLE_OFFSET);

  const int thread = threadIdx.x;
  const int warp = uniform(thread / 32);
  const int lane = thread % 32;
  const int slice = warp % K_SLICES;
  const int half = warp / K_SLICES;
  const int group = blockIdx.x % args.groups;

  tile_loader<C> loader{args, table, static_cast<uint32_t>(uniform(static_cast<int>(ptx::smem_address(smem)))), {}};
  loader.init(thread);
  ptx::wait_for_previous_kernel();
  ptx::let_next_kernel_start();
  if (warp == 0) build_request_table(table, args, C::TOK, lane);
  __syncthreads();

  const work_range work = find_work<C>(args, table, blockIdx.x / args.groups);
  const int first = uniform(work.begin);
  const int tiles = uniform(work.end) - first;
  if (tiles <= 0) {
    // A fixed split has its slot whether or not there is work: say that it holds nothing.
    float2* ml = reinterpret_cast<float2*>(args.partial_ml) + (int64_t{work.unit} * args.groups + group) * C::ROWS;
    if (args.splits > 0 && thread < C::ROWS) ml[thread] = make_float2(NO_MAXIMUM, 0);
    return;
  }
  fill_pipeline<C>(loader, first, tiles, warp, lane);

  query_fragments<C> query;
  accumulators<C> acc = {};
  tile_cursor cursor; // of tile i + 1
  int any_grew = 0;
  const auto unit_of = [&](int b) {
    return int64_t{args.splits > 0 ? work.unit : partial_slot(work.unit, b)} * args.groups + group;
  };

  int score_stage = 0;
  int score_parity = 0;
  int value_stage = 0;
  for (int i = -1; i < tiles; ++i) {
    const bool scoring = i + 1 < tiles;
    const int previous = cursor.request;
    bool fresh = false;
    if (scoring) {
      fresh = cursor.move_to(first + i + 1, table);
      if (fresh) {
        const int draft = cursor.total - cursor.prefix;
        const int valid = min(C::ROWS, draft * args.heads - group * C::ROWS);
        const bf16_bits* q =
            args.q + (int64_t{table.qo_start[cursor.request]} * args.heads + group * C::ROWS) * HEAD_DIM;
        load_query<C>(query, q, valid, C::BY_TOKEN || C::ONE_HALF ? 0 : half * C::QK_N, slice,
                      smem + C::SCRATCH_OFFSET + warp * Q_STAGE_BYTES, lane);
        if constexpr (C::EXTRA) load_extra_query(smem + C::QX_OFFSET, q, valid, thread);
        load_row_masks<C>(row_mask, args.mask ? args.mask + args.mask_indptr[cursor.request] : nullptr, cursor.prefix,
                          draft, group * C::ROWS, args, warp, lane);
        __syncthreads(); // the scratch area becomes the scores, the extra rows and the mask become visible
      }
      ptx::barrier_wait(loader.barrier(score_stage), score_parity);
      score_tile<C>(query, loader.stage_address(score_stage), loader.smem + int(C::QX_OFFSET), scores, slice, half,
                    lane);
    }
    __syncthreads();

    bool grew = false;
    const int next = (i + 1) & 1;
    const auto softmax = [&] {
      if (fresh && i >= 0) flush_rows<C>(states, args.partial_ml + unit_of(previous) * C::ROWS * 2, thread);
      const tile_span span{(first + i + 1 - cursor.begin) * C::TOK, cursor.prefix, cursor.total};
      grew = update_rows<C>(states, scores, p + next * C::ROWS * C::P_PITCH, factors + next * C::ROWS, span, row_mask,
                            fresh, args, thread);
    };
    if (half == 0 && scoring) softmax();
    if (i >= 0) {
      if (any_grew) rescale<C>(acc, factors + (i & 1) * C::ROWS, lane);
      add_values<C>(acc, loader.stage_address(value_stage),
                    loader.smem + int(C::P_OFFSET) + (i & 1) * C::ROWS * C::P_PITCH * 2, warp, lane);
      if (fresh || !scoring) flush_values<C>(acc, args, unit_of(previous), warp, lane);
    }
    if (half == 1 && scoring) softmax();
    any_grew = __syncthreads_or(grew);

    if (i >= 0) {
      if (i + C::STAGES < tiles)
        loader.issue(value_stage, loader.prefetched_slot(first + i + C::STAGES, warp, lane), warp);
      if (i + C::STAGES + 1 < tiles) loader.prefetch_slots(first + i + C::STAGES + 1, warp, lane);
      value_stage = value_stage + 1 == C::STAGES ? 0 : value_stage + 1;
    }
    if (++score_stage == C::STAGES) {
      score_stage = 0;
      score_parity ^= 1;
    }
  }
  flush_rows<C>(states, args.partial_ml + unit_of(cursor.request) * C::ROWS * 2, thread);
}

template <class C>
__global__ void __launch_bounds__(THREADS, 1) partial_kernel(const __grid_constant__ kernel_args args) {
#if __CUDA_ARCH__ >= 1200
  if constexpr (C::SMEM_BYTES > SMEM_SM120) return; // never launched there: make_plan picks narrow tiles
  else
#endif
    run_partial<C>(args);
}

} // namespace verify_mla
