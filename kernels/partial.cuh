// Kernel A. One block walks a run of tiles; all query rows of its group share each tile, which serves as keys and,
// by its first 512 columns, as values. The products run transposed: tokens and value columns on the m side, query rows
// on the n side, whose granule is 8 (72 rows cost nine granules, not two 64-row tiles).
//
// The eight math warps are two halves that take turns. In its turn a half scores its rows of one tile and adds the
// values of an earlier one (tensor cores); out of turn it does the softmax of what it scored and, without producer
// warps, fetches. One barrier per phase, two phases per tile:
//
//   phase      2k                          2k + 1
//   half 0     scores k, values k - 2      softmax k, fetch
//   half 1     softmax k - 1, fetch        scores k, values k - 1
//
// Each scheduler holds one warp of each half, so the tensor cores are always in somebody's turn. At the two ends, where
// nobody else needs them, both halves move together: scores 0 in phase 0, softmax 0 in phase 1, and the last values in
// the last phase.
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

// Scores of a tile for the rows of this half, over this warp's slice of the dimensions. Of the ninth granule each half
// takes half of the tokens.
// scores: fp32 [HALF_ROWS, S_PITCH] of this slice and half; extra_scores: fp32 [8, S_PITCH] of this slice.
template <class C>
__device__ __forceinline__ void score_tile(const query_fragments<C>& query, uint32_t stage, uint32_t extra_query,
                                           float* scores, float* extra_scores, int slice, int half, int lane) {
  const int at = lane % 4 * 2 * C::S_PITCH + lane / 4;
  const auto store = [](float* s, const float (&v)[4]) {
    s[0] = v[0];
    s[C::S_PITCH] = v[1];
    s[8] = v[2];
    s[C::S_PITCH + 8] = v[3];
  };
  constexpr int CHAINS = C::QK_N == 1 ? 3 : C::QK_N == 2 ? 2 : 1; // enough independent sums to hide the mma latency
#pragma unroll
  for (int m = 0; m < C::QK_M; ++m) {
    const uint32_t keys = stage + (m * 16 + lane % 16) * ROW_PITCH + slice * K_STEPS * 32 + lane / 16 * 16;
    float acc[CHAINS][C::QK_N][4] = {};
    float acc_extra[4] = {};
    const bool with_extra = C::EXTRA && m == half;
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
      store(scores + n * 8 * C::S_PITCH + m * 16 + at, acc[0][n]);
    }
    if (with_extra) store(extra_scores + m * 16 + at, acc_extra);
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

// Pieces of the dynamic shared memory.
template <class C> struct block_memory {
  char* base;
  __device__ __forceinline__ float* scores(int half) const {
    return reinterpret_cast<float*>(base + C::SCRATCH_OFFSET + half * C::SCRATCH_BYTES);
  }
  __device__ __forceinline__ float* extra_scores(int tile) const {
    return reinterpret_cast<float*>(base + C::S_EXTRA_OFFSET + (tile & 1) * C::S_EXTRA_BYTES);
  }
  __device__ __forceinline__ bf16_bits* p(int tile) const {
    return reinterpret_cast<bf16_bits*>(base + C::P_OFFSET + (tile & 1) * C::P_BYTES);
  }
  __device__ __forceinline__ float* factors(int tile) const {
    return reinterpret_cast<float*>(base + C::FACTOR_OFFSET) + (tile & 1) * C::ROWS;
  }
  __device__ __forceinline__ uint64_t* row_mask() const { return reinterpret_cast<uint64_t*>(base + C::MASK_OFFSET); }
  __device__ __forceinline__ row_state* states() const { return reinterpret_cast<row_state*>(base + C::STATE_OFFSET); }
};

inline constexpr int MATH_BARRIER = 1; // named barriers; 2 and 3 belong to the halves
inline constexpr int HALF_BARRIER = 2;

// What a math warp is and works on.
template <class C> struct math_warp {
  const kernel_args& args;
  const request_table& table;
  const block_memory<C>& memory;
  tile_loader<C>& loader;
  work_range work;
  int first, tiles; // of the block, on the line of tiles
  int group, warp, lane, thread, slice, half;

  __device__ __forceinline__ int64_t unit_of(int request) const {
    return int64_t{args.splits > 0 ? work.unit : partial_slot(work.unit, request)} * args.groups + group;
  }

  // Queries and masks of a request for the rows of this half.
  __device__ __forceinline__ void load_request(query_fragments<C>& query, const tile_cursor& at) const {
    const int draft = at.total - at.prefix;
    const int valid = min(C::ROWS, draft * args.heads - group * C::ROWS);
    const bf16_bits* q = args.q + (int64_t{table.qo_start[at.request]} * args.heads + group * C::ROWS) * HEAD_DIM;
    load_query<C>(query, q, valid, half * C::QK_N, slice,
                  reinterpret_cast<char*>(memory.scores(half)) + slice * Q_STAGE_BYTES, lane);
    if constexpr (C::EXTRA)
      if (half == 0) load_extra_query(memory.base + C::QX_OFFSET, q, valid, thread);
    const uint8_t* mask = args.mask ? args.mask + args.mask_indptr[at.request] : nullptr;
    load_row_masks(memory.row_mask(), mask, at.prefix, draft, group * C::ROWS, half * C::HALF_ROWS,
                   half == 0 ? C::HALF_ROWS : C::ROWS, args, slice, lane);
    ptx::sync_threads(HALF_BARRIER + half, THREADS / 2); // the scratch area becomes the scores
  }

  __device__ __forceinline__ bool softmax(int tile, const tile_cursor& at, int previous, bool fresh) const {
    if (fresh && previous >= 0)
      flush_rows<C>(memory.states(), args.partial_ml + unit_of(previous) * C::ROWS * 2, thread);
    const softmax_buffers<C> buffers{memory.scores(half), memory.extra_scores(tile), memory.p(tile),
                                     memory.factors(tile), memory.states(),          memory.row_mask()};
    return update_rows<C>(buffers, {(first + tile - at.begin) * C::TOK, at.prefix, at.total}, fresh, args, thread);
  }

  __device__ __forceinline__ void run() const {
    query_fragments<C> query;
    accumulators<C> acc = {};
    tile_cursor scored, added; // requests of the tile last scored and of the one whose values are added
    int previous = -1;         // request before `scored`
    bool fresh = false;        // the tile last scored began a request
    int grew = 0;              // last three barriers: did a reference maximum move
    int stage = 0, parity = 0; // of the next tile to score
    int value_stage = 0;

    if constexpr (C::EXTRA) { // in phase 0 both halves read the extra query rows: they must be there before
      tile_cursor start;
      start.move_to(first, table);
      const int rows = min(C::ROWS, (start.total - start.prefix) * args.heads - group * C::ROWS);
      if (half == 0)
        load_extra_query(memory.base + C::QX_OFFSET,
                         args.q + (int64_t{table.qo_start[start.request]} * args.heads + group * C::ROWS) * HEAD_DIM,
                         rows, thread);
      ptx::sync_threads(MATH_BARRIER, THREADS);
    }
    const int last_phase = 2 * tiles + 1;
    for (int phase = 0; phase <= last_phase; ++phase) {
      const bool turn = phase == 0 || phase == last_phase || ((phase & 1) == half && phase != 1);
      bool moved = false;
      if (turn) {
        const int k = (phase + 1 - half) / 2;
        if (k < tiles) {
          previous = scored.request;
          fresh = scored.move_to(first + k, table);
          if (fresh) load_request(query, scored);
          ptx::barrier_wait(loader.full(stage), parity);
          score_tile<C>(query, loader.stage_address(stage), loader.smem + int(C::QX_OFFSET),
                        memory.scores(half) + slice * C::HALF_ROWS * C::S_PITCH,
                        memory.extra_scores(k) + slice * 8 * C::S_PITCH, slice, half, lane);
          if (++stage == C::STAGES) {
            stage = 0;
            parity ^= 1;
          }
        }
        const int v = k - 2 + half;
        if (v >= 0 && v < tiles) {
          added.move_to(first + v, table);
          if (grew) rescale<C>(acc, memory.factors(v), lane);
          add_values<C>(acc, loader.stage_address(value_stage),
                        loader.smem + int(C::P_OFFSET) + (v & 1) * int(C::P_BYTES), warp, lane);
          if (C::PRODUCERS) {
            __syncwarp();
            if (lane == 0) ptx::barrier_arrive(loader.empty(value_stage));
          }
          if (++value_stage == C::STAGES) value_stage = 0;
          if (v + 1 == tiles || first + v + 1 >= added.end)
            flush_values<C>(acc, args, unit_of(added.request), warp, lane);
        }
      } else {
        // Tile (phase - 5 - half) / 2 is used up: the other half added its values in an earlier phase.
        if constexpr (!C::PRODUCERS)
          if (phase >= 5 + half) loader.refill(first, (phase - 5 - half) / 2 + C::STAGES, tiles);
        const int k = (phase - half) / 2;
        if (k < tiles && !(half == 1 && phase == 2)) moved = softmax(k, scored, previous, fresh);
      }
      grew = (grew << 1 | ptx::sync_threads_or(MATH_BARRIER, THREADS, moved)) & 7;
    }
    flush_rows<C>(memory.states(), args.partial_ml + unit_of(scored.request) * C::ROWS * 2, thread);
  }
};

template <class C> __device__ __forceinline__ void run_partial(const kernel_args& args) {
  extern __shared__ __align__(128) char smem[];
  const request_table table(smem + C::TABLE_OFFSET);
  const block_memory<C> memory{smem};
  const int thread = threadIdx.x;
  const int warp = uniform(thread / 32);
  const int lane = thread % 32;
  const int group = blockIdx.x % args.groups;

  tile_loader<C> loader{args, table, static_cast<uint32_t>(uniform(static_cast<int>(ptx::smem_address(smem)))),
                        C::PRODUCERS ? warp - WARPS : warp, lane, {}};
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
  if constexpr (C::PRODUCERS > 0) {
    if (warp >= WARPS) return loader.produce(first, tiles);
  } else {
    loader.fill(first, tiles);
  }
  math_warp<C>{args,  table, memory, loader, work, first, tiles, group,
               warp, lane,  thread, warp % K_SLICES, warp / K_SLICES}
      .run();
}

template <class C>
__global__ void __launch_bounds__(C::BLOCK, 1) partial_kernel(const __grid_constant__ kernel_args args) {
#if __CUDA_ARCH__ >= 1200
  if constexpr (C::SMEM_BYTES > SMEM_SM120) return; // never launched there: make_plan picks narrow tiles
  else
#endif
    run_partial<C>(args);
}

} // namespace verify_mla
