// Kernel A. One block walks a run of tiles; all query rows of its group share each tile, which serves as keys and,
// by its first 512 columns, as values. The products run transposed: tokens and value columns on the m side, query rows
// on the n side, whose granule is 8 (72 rows cost nine granules, not two 64-row tiles).
//
// The eight math warps are two halves of four, one warp of each half per scheduler. A half scores its own rows of tile
// k (tensor cores), turns them into probabilities, and adds the values of tile k - 1, for which it needs the
// probabilities of both halves. Half 0 does the softmax first, half 1 the values. Only a half synchronises with itself
// at every tile; between the halves, and with whoever fetches, there are mbarriers with a tile of slack, so that one
// half's waiting and softmax fall on the other's tensor work:
//
//   full[stage]    the bytes of a tile have come                 -> scores
//   ready[parity]  all probabilities of a tile are written       -> values
//   empty[stage]   all warps have added the values of a tile     -> its stage is fetched anew, its probabilities
//   rewritten
//
// The pipeline of a block drains where its run crosses into another request; fetching does not.
#pragma once

#include "layout.h"
#include "query.cuh"
#include "request_table.cuh"
#include "softmax.cuh"
#include "tile_loader.cuh"

namespace verify_mla {

// Tiles [begin, end) of the line belong to one block.
struct work_range {
  int begin = 0;
  int end = 0;
};

// unit: partition, or with fixed splits request * splits + split.
__device__ __forceinline__ work_range find_work(const kernel_args& args, const request_table& table, int unit) {
  if (args.splits > 0) {
    const int b = unit / args.splits;
    const int first = table.tile_begin[b];
    const int tiles = table.tile_begin[b + 1] - first;
    const int split = unit % args.splits;
    return {first + fixed_split_begin(split, tiles, args.splits),
            first + fixed_split_begin(split + 1, tiles, args.splits)};
  }
  const int tiles = table.tile_begin[args.batch];
  const int effective = effective_partitions(tiles, args.partitions, args.min_tiles);
  if (unit >= effective) return {};
  return {partition_begin(unit, tiles, effective), partition_begin(unit + 1, tiles, effective)};
}

inline constexpr int MATH_BARRIER = 1; // named barriers: of the math warps, and of each half
inline constexpr int HALF_BARRIER = 2;

// Scores of a tile for the rows of this half, over this warp's slice of the dimensions. The ninth granule belongs to
// the second half. Fragments are loaded two steps ahead of their use: the one other warp of the scheduler
// cannot cover their latency.
// Before the first store the half waits until all of it has read the scores of the tile before.
// scores: fp32 [HALF_ROWS, S_PITCH] of this slice and half; extra_scores: fp32 [8, S_PITCH] of this slice.
template <class C>
__device__ __forceinline__ void score_tile(const query_fragments<C>& query, uint32_t stage, uint32_t extra_query,
                                           float* scores, float* extra_scores, int slice, int half, int lane) {
  const int at = lane % 4 * 2 * C::S_PITCH + lane / 4;
  const auto store = [](float* s, const float(&v)[4]) {
    s[0] = v[0];
    s[C::S_PITCH] = v[1];
    s[8] = v[2];
    s[C::S_PITCH + 8] = v[3];
  };
  constexpr int CHAINS = C::QK_N == 1 ? 3 : C::QK_N == 2 ? 2 : 1; // enough independent sums to hide the mma latency
  constexpr int AHEAD = C::EXTRA ? 1 : 2;                         // with nine granules no register is left
  constexpr int STEPS = C::QK_M * K_STEPS;
  const uint32_t keys = stage + lane % 16 * ROW_PITCH + slice * K_STEPS * 32 + lane / 16 * 16;
  const uint32_t extra = extra_query + lane % 8 * ROW_PITCH + slice * K_STEPS * 32 + lane / 8 % 2 * 16;
  uint32_t a[AHEAD + 1][4];
#pragma unroll
  for (int i = 0; i < AHEAD; ++i) ptx::ldmatrix_x4(a[i], keys + i * 32);
  float acc[CHAINS][C::QK_N][4] = {};
  float acc_extra[4] = {};
#pragma unroll
  for (int i = 0; i < STEPS; ++i) {
    const int m = i / K_STEPS;
    const int step = i % K_STEPS;
    const int later = i + AHEAD;
    if (later < STEPS)
      ptx::ldmatrix_x4(a[later % (AHEAD + 1)], keys + later / K_STEPS * 16 * ROW_PITCH + later % K_STEPS * 32);
    uint32_t b0 = 0, b1 = 0;
    const bool with_extra = C::EXTRA && half == 1;
    if (with_extra) ptx::ldmatrix_x2(b0, b1, extra + step * 32);
#pragma unroll
    for (int n = 0; n < C::QK_N; ++n)
      ptx::mma(acc[step % CHAINS][n], a[i % (AHEAD + 1)], query[n][step][0], query[n][step][1]);
    if (with_extra) ptx::mma(acc_extra, a[i % (AHEAD + 1)], b0, b1);
    if (step + 1 < K_STEPS) continue;
    if (m == 0) ptx::sync_threads(HALF_BARRIER + half, THREADS / 2);
#pragma unroll
    for (int n = 0; n < C::QK_N; ++n) {
#pragma unroll
      for (int chain = 1; chain < CHAINS; ++chain)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[0][n][e] += acc[chain][n][e];
      store(scores + n * 8 * C::S_PITCH + m * 16 + at, acc[0][n]);
#pragma unroll
      for (int chain = 0; chain < CHAINS; ++chain)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[chain][n][e] = 0;
    }
    if (with_extra) store(extra_scores + m * 16 + at, acc_extra);
#pragma unroll
    for (int e = 0; e < 4; ++e) acc_extra[e] = 0;
  }
}

// acc: this warp's 64 value columns of all rows.
template <class C>
using accumulators = float[M_TILES][C::NT][4];

template <class C>
__device__ __forceinline__ void rescale(accumulators<C>& acc, const float* factors, int lane) {
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

// The probabilities of a tile times its values. Probability fragments come one unit of two granules ahead, value
// fragments of the next 16 tokens as soon as the last unit of these has used its own.
template <class C>
__device__ __forceinline__ void add_values(accumulators<C>& acc, uint32_t stage, uint32_t p, int warp, int lane) {
  const uint32_t values =
      stage + (lane / 16 * 8 + lane % 8) * ROW_PITCH + warp * VALUES_PER_WARP * 2 + lane / 8 % 2 * 16;
  const uint32_t pairs = p + ((lane / 16 * 8 + lane % 8) * C::P_PITCH + lane / 8 % 2 * 8) * 2;
  const uint32_t single = p + (lane % 8 * C::P_PITCH + lane / 8 % 2 * 8) * 2;
  constexpr int UNITS = (C::NT + 1) / 2;
  constexpr int STEPS = C::TOK / 16;
  uint32_t a[M_TILES][4];
  uint32_t b[2][4];
  const auto load_b = [&](uint32_t(&to)[4], int k, int unit) {
    if (unit * 2 + 1 < C::NT)
      ptx::ldmatrix_x4(to, pairs + (unit * 16 * C::P_PITCH + k * 16) * 2);
    else
      ptx::ldmatrix_x2(to[0], to[1], single + (unit * 16 * C::P_PITCH + k * 16) * 2);
  };
#pragma unroll
  for (int m = 0; m < M_TILES; ++m) ptx::ldmatrix_x4_trans(a[m], values + m * 32);
  load_b(b[0], 0, 0);
#pragma unroll
  for (int i = 0; i < STEPS * UNITS; ++i) {
    const int k = i / UNITS;
    const int unit = i % UNITS;
    const bool last = unit + 1 == UNITS && k + 1 < STEPS;
    if (i + 1 < STEPS * UNITS) load_b(b[(i + 1) % 2], (i + 1) / UNITS, (i + 1) % UNITS);
#pragma unroll
    for (int m = 0; m < M_TILES; ++m) {
      ptx::mma(acc[m][unit * 2], a[m], b[i % 2][0], b[i % 2][1]);
      if (unit * 2 + 1 < C::NT) ptx::mma(acc[m][unit * 2 + 1], a[m], b[i % 2][2], b[i % 2][3]);
      if (last) ptx::ldmatrix_x4_trans(a[m], values + (k + 1) * 16 * ROW_PITCH + m * 32);
    }
  }
}

// Writes the accumulators in register order (layout.h).
template <class C, bool BF16>
__device__ __forceinline__ void flush_values(const accumulators<C>& acc, const kernel_args& args, int64_t unit,
                                             int warp, int lane) {
  const int64_t base = (unit * VALUE_TILES + warp * M_TILES) * C::NT * 32 + lane; // in units of four elements
#pragma unroll
  for (int m = 0; m < M_TILES; ++m)
#pragma unroll
    for (int n = 0; n < C::NT; ++n) {
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
  __device__ __forceinline__ float* extra_scores() const { return reinterpret_cast<float*>(base + C::S_EXTRA_OFFSET); }
  // One byte per warp: did a reference maximum of its rows move with this tile.
  __device__ __forceinline__ uint8_t* flags(int tile) const {
    return reinterpret_cast<uint8_t*>(base + C::FLAG_OFFSET) + (tile & 1) * WARPS;
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

// What a math warp is and works on.
template <class C, bool BF16>
struct math_warp {
  const kernel_args& args;
  const request_table& table;
  const block_memory<C>& memory;
  tile_loader<C>& loader;
  int unit; // balanced: partition; fixed: request * splits + split
  int group, warp, lane, thread, slice, half;
  int stage = 0, parity = 0; // of the next tile to score
  int value_stage = 0;

  // Queries and masks of a request. Followed by a barrier: the scratch area becomes the scores.
  __device__ __forceinline__ void load_request(query_fragments<C>& query, const tile_cursor& at) const {
    const int draft = at.total - at.prefix;
    const int valid = min(C::ROWS, draft * args.heads - group * C::ROWS);
    const bf16_bits* q = args.q + (int64_t{table.qo_start[at.request]} * args.heads + group * C::ROWS) * HEAD_DIM;
    load_query<C>(query, q, valid, half * C::QK_N, slice,
                  reinterpret_cast<char*>(memory.scores(half)) + slice * Q_STAGE_BYTES, lane);
    if constexpr (C::EXTRA) load_extra_query(memory.base + C::QX_OFFSET, q, valid, thread);
    const uint8_t* mask = args.mask ? args.mask + args.mask_indptr[at.request] : nullptr;
    load_row_masks<C>(memory.row_mask(), mask, at.prefix, draft, group * C::ROWS, args, warp, lane);
  }

  // All tile numbers below are the block's.
  __device__ __forceinline__ void score(const query_fragments<C>& query) {
    ptx::barrier_wait(loader.full(stage), parity);
    score_tile<C>(query, loader.stage_address(stage), loader.smem + int(C::QX_OFFSET),
                  memory.scores(half) + slice * C::HALF_ROWS * C::S_PITCH,
                  memory.extra_scores() + slice * 8 * C::S_PITCH, slice, half, lane);
    ptx::sync_threads(HALF_BARRIER + half, THREADS / 2);
    if (++stage == C::STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }

  // token: first of the tile in its request. fresh: first tile of the run.
  __device__ __forceinline__ void softmax(int tile, int token, const tile_cursor& at, bool fresh, bool reused) {
    if (reused) loader.wait_empty(tile - 2);
    const softmax_buffers<C> buffers{memory.scores(half),  memory.extra_scores(), memory.p(tile),
                                     memory.factors(tile), memory.states(),       memory.row_mask()};
    const bool grew = update_rows<C>(buffers, {token, at.prefix, at.total}, fresh, args, thread);
    const bool any = __any_sync(0xffffffffu, grew);
    if (lane == 0) memory.flags(tile)[warp] = any;
    __syncwarp();
    if (lane == 0) ptx::barrier_arrive(loader.ready(tile));
  }

  __device__ __forceinline__ void add(accumulators<C>& acc, int tile) {
    ptx::barrier_wait(loader.ready(tile), tile >> 1 & 1);
    if (*reinterpret_cast<const uint64_t*>(memory.flags(tile)) != 0) rescale<C>(acc, memory.factors(tile), lane);
    add_values<C>(acc, loader.stage_address(value_stage), loader.smem + int(C::P_OFFSET) + (tile & 1) * int(C::P_BYTES),
                  warp, lane);
    __syncwarp();
    if (lane == 0) ptx::barrier_arrive(loader.empty(value_stage));
    if (++value_stage == C::STAGES) value_stage = 0;
  }

  // A run of tiles of one request: n of them, the first one number `from` of the block.
  __device__ __forceinline__ void run(const tile_cursor& at, int from, int n) {
    query_fragments<C> query;
    ptx::sync_threads(MATH_BARRIER, THREADS); // nobody reads scores, masks or queries of the run before
    load_request(query, at);
    ptx::sync_threads(MATH_BARRIER, THREADS);
    accumulators<C> acc = {};
    int token = (loader.first + from - at.begin) * C::TOK;
    for (int k = 0; k <= n; ++k) {
      const bool scoring = k < n;
      if (scoring) score(query);
      if (scoring && half == 0) softmax(from + k, token, at, k == 0, k >= 2);
      if (k > 0) add(acc, from + k - 1);
      if (scoring && half == 1) softmax(from + k, token, at, k == 0, k >= 2);
      token += C::TOK;
      if constexpr (!C::PRODUCERS) loader.refill(from + k - 1); // a tile behind the others at the latest
    }
    const int slot = args.splits > 0 ? unit : partial_slot(unit, at.request);
    const int64_t place = int64_t{slot} * args.groups + group;
    flush_values<C, BF16>(acc, args, place, warp, lane);
    flush_rows<C>(memory.states(), args.partial_ml + place * C::ROWS * 2, thread);
    if constexpr (!C::PRODUCERS)
      while (loader.next < loader.tiles && loader.next - C::STAGES < from + n) loader.refill(from + n);
  }
};

template <class C, bool BF16>
__device__ __forceinline__ void run_partial(const kernel_args& args) {
  extern __shared__ __align__(128) char smem[];
  const request_table table(smem + C::TABLE_OFFSET);
  const block_memory<C> memory{smem};
  const int thread = threadIdx.x;
  const int warp = uniform(thread / 32);
  const int lane = thread % 32;
  const int group = blockIdx.x % args.groups;
  const int unit = blockIdx.x / args.groups;

  tile_loader<C> loader{args,
                        table,
                        static_cast<uint32_t>(uniform(static_cast<int>(ptx::smem_address(smem)))),
                        C::PRODUCERS ? warp - WARPS : warp,
                        lane,
                        0,
                        0,
                        {}};
  loader.init(thread);
  ptx::wait_for_previous_kernel();
  ptx::let_next_kernel_start();
  if (warp == 0) build_request_table(table, args, C::TOK, lane);
  __syncthreads();

  const work_range work = find_work(args, table, unit);
  loader.first = uniform(work.begin);
  loader.tiles = uniform(work.end) - loader.first;
  if (loader.tiles <= 0) {
    // A fixed split has its slot whether or not there is work: say that it holds nothing.
    float2* ml = reinterpret_cast<float2*>(args.partial_ml) + (int64_t{unit} * args.groups + group) * C::ROWS;
    if (args.splits > 0 && thread < C::ROWS) ml[thread] = make_float2(NO_MAXIMUM, 0);
    return;
  }
  if constexpr (C::PRODUCERS > 0) {
    if (warp >= WARPS) return loader.produce();
  } else {
    loader.fill();
  }
  math_warp<C, BF16> math{args, table, memory, loader,          unit,           group,
                          warp, lane,  thread, warp % K_SLICES, warp / K_SLICES};
  tile_cursor at;
  for (int from = 0; from < loader.tiles;) {
    at.move_to(loader.first + from, table);
    const int n = min(loader.first + loader.tiles, at.end) - (loader.first + from);
    math.run(at, from, n);
    from += n;
  }
}

template <class C, bool BF16>
__global__ void __launch_bounds__(C::BLOCK, 1) partial_kernel(const __grid_constant__ kernel_args args) {
#if __CUDA_ARCH__ >= 1200
  if constexpr (C::SMEM_BYTES > SMEM_SM120)
    return; // never launched there: make_plan picks narrow tiles
  else
#endif
    run_partial<C, BF16>(args);
}

} // namespace verify_mla
