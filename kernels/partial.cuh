// Kernel A. One block walks a run of tiles; all query rows of its group share each tile, which serves as keys and,
// by its first 512 columns, as values. The products run transposed: tokens and value columns on the m side, query rows
// on the n side, whose granule is 8.
//
// The eight math warps are two halves of four, one warp of each half per scheduler. A half has half of the rows from
// the scores to the output, so that nothing but the tiles connects the two: while one is busy with softmax, or waits
// for its own four warps, the other has the tensor cores. Values are read twice for it, once by each half. (With an odd
// number of granules there is one team of eight instead, see config.h.)
//
//   full[stage]    the bytes of a tile have come                 -> scores
//   empty[stage]   all warps have added the values of a tile     -> its stage is fetched anew
//
// The pipeline of a block drains where its run crosses into another request; fetching does not.
//
// This file has the math warps for up to 32 rows, which wait for memory; deep_math.cuh those for more.
#pragma once

#include "deep_math.cuh"
#include "query.cuh"
#include "request_table.cuh"
#include "softmax.cuh"
#include "tile_loader.cuh"

namespace verify_mla {

// Places [begin, end) of the line belong to one block.
struct work_range {
  int begin = 0;
  int end = 0;
};

// unit: partition, or with fixed splits request * splits + split.
__device__ __forceinline__ work_range find_work(const kernel_args& args, const request_table& table, int unit) {
  if (args.splits > 0) {
    const int b = unit / args.splits;
    const int first = table.tile_begin[b];
    const int tiles = max(table.tile_end[b] - first, 0);
    const int split = unit % args.splits;
    return {first + fixed_split_begin(split, tiles, args.splits),
            first + fixed_split_begin(split + 1, tiles, args.splits)};
  }
  const int tiles = table.tile_begin[args.batch];
  const int effective = effective_partitions(tiles, args.partitions, args.min_tiles, args.few_partitions);
  if (unit >= effective) return {};
  return {partition_begin(unit, tiles, effective), partition_begin(unit + 1, tiles, effective)};
}

// Scores of a tile for the rows of this half, over this warp's slice of the dimensions. Fragments are loaded a few
// steps ahead of their use. scores: fp32 [HALF_ROWS, S_PITCH] of this slice and half.
template <class C>
__device__ __forceinline__ void score_tile(const query_fragments<C>& query, uint32_t stage, float* scores, int slice,
                                           int lane, bool never) {
  constexpr int CHAINS = C::NH == 1 ? 3 : 2; // enough independent sums to hide the mma latency
  constexpr int AHEAD = C::NH == 1 ? 6 : 4;
  constexpr int STEPS = C::QK_M * K_STEPS;
  const uint32_t keys = stage + lane % 16 * ROW_PITCH + slice * K_STEPS * 32 + lane / 16 * 16;
  uint32_t a[AHEAD + 1][4];
  const auto load = [&](int i) {
    if (i < STEPS) ptx::ldmatrix_x4(a[i % (AHEAD + 1)], keys + i / K_STEPS * 16 * ROW_PITCH + i % K_STEPS * 32);
  };
#pragma unroll
  for (int i = 0; i < AHEAD; ++i) load(i);
  float acc[CHAINS][C::NH][4] = {};
#pragma unroll
  for (int i = 0; i < STEPS; ++i) {
    const int m = i / K_STEPS;
    const int step = i % K_STEPS;
    load(i + AHEAD);
    ptx::schedule_fence(never);
#pragma unroll
    for (int n = 0; n < C::NH; ++n)
      ptx::mma(acc[step % CHAINS][n], a[i % (AHEAD + 1)], query[n][step][0], query[n][step][1]);
    if (step + 1 < K_STEPS) continue;
#pragma unroll
    for (int n = 0; n < C::NH; ++n) {
#pragma unroll
      for (int chain = 1; chain < CHAINS; ++chain)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[0][n][e] += acc[chain][n][e];
      float* s = scores + n * 8 * C::S_PITCH + m * 16 + lane % 4 * 2 * C::S_PITCH + lane / 4;
      s[0] = acc[0][n][0];
      s[C::S_PITCH] = acc[0][n][1];
      s[8] = acc[0][n][2];
      s[C::S_PITCH + 8] = acc[0][n][3];
#pragma unroll
      for (int chain = 0; chain < CHAINS; ++chain)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[chain][n][e] = 0;
    }
  }
}

// A math warp.
template <class C, bool BF16>
struct plain_math_warp {
  const kernel_args& args;
  const request_table& table;
  block_memory<C> memory;
  const tile_loader<C>& loader;
  int unit; // partition, or with fixed splits request * splits + split
  int group, slice, half;
  int lane, thread;
  int stage = 0; // of the tile at hand
  int parity = 0;

  __device__ __forceinline__ void leave_stage() {
    if (EMPTY_ARRIVALS == 32 || lane == 0) ptx::barrier_arrive(loader.empty(stage));
    if (++stage == C::STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }

  // token: first of the tile in its request. fresh: first tile of the run.
  __device__ __forceinline__ void add_tile(const query_fragments<C>& query, accumulators<C>& acc, int token,
                                           const tile_cursor& at, bool fresh) {
    ptx::barrier_wait(loader.full(stage), parity);
    score_tile<C>(query, loader.stage_address(stage), memory.scores(half) + slice * C::HALF_ROWS * C::S_PITCH, slice,
                  lane, args.batch == 0);
    ptx::sync_threads(HALF_BARRIER + half, THREADS / 2);
    const softmax_buffers<C> buffers{memory.scores(half), memory.p(), memory.factors(), memory.states(),
                                     memory.row_mask()};
    const bool grew = update_rows<C>(buffers, {token, at.prefix, at.total}, fresh, args, thread);
    value_product<C> product;
    product.begin(loader.stage_address(stage), slice, lane);
    // Also: the scores have been read.
    if (ptx::sync_threads_or(HALF_BARRIER + half, THREADS / 2, grew))
      rescale<C>(acc, memory.factors() + half * C::HALF_ROWS, lane);
    product.add_all(acc, loader.smem + int(C::P_OFFSET) + half * C::HALF_ROWS * C::P_PITCH * 2, lane);
    __syncwarp();
    leave_stage();
  }

  // Lets n tiles pass: this half has no row in their request.
  __device__ __forceinline__ void pass(int n) {
    for (int k = 0; k < n; ++k) {
      ptx::barrier_wait(loader.full(stage), parity);
      leave_stage();
    }
  }

  // A run of tiles of one request: n of them from `tile` on. again: not the first run of the block.
  __device__ __forceinline__ void run(const tile_cursor& at, int tile, int n, bool again) {
    const row_run rows = half_rows<C>(args, group, half);
    if (!has_rows(rows, table.draft[at.request] * args.heads)) return pass(n);
    query_fragments<C> query;
    if (again) ptx::sync_threads(HALF_BARRIER + half, THREADS / 2); // nobody reads masks or states of the run before
    load_half<C>(query, memory, args, table, at, rows, half, slice, lane);
    ptx::sync_threads(HALF_BARRIER + half, THREADS / 2);
    accumulators<C> acc = {};
    int token = (tile - at.begin) * C::TOK;
    for (int k = 0; k < n; ++k) {
      add_tile(query, acc, token, at, k == 0);
      token += C::TOK;
    }
    const int slot = args.splits > 0 ? unit : partial_slot(unit, at.request);
    const int64_t place = int64_t{slot} * args.groups + group;
    flush_values<C, BF16>(acc, args, place, slice, half, lane);
    flush_rows<C>(memory.states(), args.partial_ml + place * C::ROWS * 2, thread);
  }
};

// The life of a math warp: its block's tiles, request by request.
template <class MATH, class LOADER>
__device__ __forceinline__ void walk(MATH math, const LOADER& loader, const request_table& table) {
  tile_cursor at;
  bool again = false;
  for (int place = loader.first; place < loader.last;) {
    const int tile = at.move_to(place, table);
    place = min(loader.last, at.end);
    if (tile < place) math.run(at, tile, place - tile, again);
    again = true;
  }
}

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

  tile_loader<C> loader{
      args, table, static_cast<uint32_t>(uniform(static_cast<int>(ptx::smem_address(smem)))), warp - WARPS, lane, 0,
      0,    {}};
  loader.init(thread);
  // A block that has not waited must do so before it reads queries or masks, writes a partial result, or ends.
  if (!args.old_prefix) ptx::wait_for_previous_kernel();
  ptx::let_next_kernel_start();
  if (warp == 0) build_request_table(table, args, C::TOK, lane);
  __syncthreads();

  const work_range work = find_work(args, table, unit);
  loader.first = uniform(work.begin);
  loader.last = uniform(work.end);
  if (loader.first >= loader.last) {
    ptx::wait_for_previous_kernel();
    // A fixed split has its slot whether or not there is work: say that it holds nothing.
    float2* ml = reinterpret_cast<float2*>(args.partial_ml) + (int64_t{unit} * args.groups + group) * C::ROWS;
    if (args.splits > 0 && thread < C::ROWS) ml[thread] = make_float2(NO_MAXIMUM, 0);
    return;
  }
  if (warp >= WARPS) {
    if constexpr (C::TRADE_REGISTERS) ptx::give_registers<PRODUCER_REGISTERS>();
    return loader.produce();
  }
  if constexpr (C::TRADE_REGISTERS) ptx::take_registers<C::MATH_REGISTERS>();
  ptx::wait_for_previous_kernel();
  const int member = warp % C::HALF_WARPS;
  const int half = warp / C::HALF_WARPS;
  if constexpr (C::DEEP)
    walk(deep_math_warp<C, BF16>{args, table, memory, loader, unit, group, member, half}, loader, table);
  else
    walk(plain_math_warp<C, BF16>{args, table, memory, loader, unit, group, member, half, lane, thread}, loader, table);
}

template <class C, bool BF16>
__global__ void __maxnreg__(C::REGISTERS) partial_kernel(const __grid_constant__ kernel_args args) {
#if __CUDA_ARCH__ >= 1200
  if constexpr (C::SMEM_BYTES > SMEM_SM120)
    return; // never launched there: make_plan picks narrow tiles
  else
#endif
    run_partial<C, BF16>(args);
}

} // namespace verify_mla
