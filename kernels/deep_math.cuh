// Math warps for many rows. As the plain ones (partial.cuh) they are two halves of four that share nothing but the tiles,
// but a half works on two tiles at once:
//
//   scores of tile k  ->  barrier of the half  ->  softmax of tile k, and between its instructions the probabilities of
//   tile k - 1 times its values  ->  scores of tile k + 1
//
// There is one barrier per tile: it says both that the scores of tile k are there and that the probabilities of tile
// k - 1 are. What is written before it and read after it exists twice.
//
// Each warp sums, for one granule of its half, what the four warps found for their quarter of the dimensions. The scores
// pass through shared memory as the fragments they are, so that every access is 16 bytes wide and free of conflicts. A
// warp's own go there too: there are no registers to keep them in.
#pragma once

#include "products.cuh"
#include "query.cuh"
#include "request_table.cuh"
#include "tile_loader.cuh"

namespace verify_mla {

// Two rows as one lane sees them: reference maximum (base 2) and sum of this lane's tokens, of each.
using row_pair_state = float4;

// Scores of a granule, one 16-token tile of mma after the other: element e of lane l is token l / 4 + e / 2 * 8, row
// l % 4 * 2 + e % 2.
template <class C>
using granule_scores = float[C::QK_M][4];

template <class C, bool BF16>
struct deep_math_warp {
  static constexpr int FRAGMENT = 512; // bytes: four floats of 32 lanes
  static constexpr int HALF_SCORES = int(C::SCRATCH_BYTES);

  const kernel_args& args;
  const request_table& table;
  block_memory<C> memory;
  const tile_loader<C>& loader;
  int unit; // partition, or with fixed splits request * splits + split
  int group, lane, thread, slice, half;
  int stage = 0; // of the tile at hand
  int parity = 0;

  // Granule `slice` of its half is this warp's, if the half has so many.
  __device__ __forceinline__ bool owner() const { return slice < C::NH; }
  __device__ __forceinline__ uint32_t exchange() const {
    return loader.smem + int(C::SCRATCH_OFFSET) + half * HALF_SCORES;
  }
  // Where this warp leaves its scores of granule g: for the warp in slice g, or for itself.
  __device__ __forceinline__ uint32_t outbox(int g, int buffer) const {
    const int from = (slice - g - 1 + K_SLICES) % K_SLICES;
    return from == K_SLICES - 1
               ? own_box()
               : exchange() + buffer * int(C::EXCHANGE_BYTES) + (g * (K_SLICES - 1) + from) * C::QK_M * FRAGMENT;
  }
  __device__ __forceinline__ uint32_t inbox(int buffer) const {
    return exchange() + buffer * int(C::EXCHANGE_BYTES) + (owner() ? slice : 0) * (K_SLICES - 1) * C::QK_M * FRAGMENT;
  }
  __device__ __forceinline__ uint32_t own_box() const {
    return loader.smem + int(C::OWN_OFFSET) + (half * K_SLICES + slice) * C::QK_M * FRAGMENT;
  }
  __device__ __forceinline__ uint32_t probabilities(int buffer) const {
    return loader.smem + int(C::P_OFFSET) + buffer * int(C::P_BYTES) + half * C::HALF_ROWS * C::P_PITCH * 2;
  }
  __device__ __forceinline__ float* factors(int buffer) const {
    return memory.factors() + buffer * C::ROWS + half * C::HALF_ROWS;
  }

  __device__ __forceinline__ void load_request(query_fragments<C>& query, const tile_cursor& at, const row_run& rows) {
    load_half<C>(query, memory, args, table, at, rows, half, slice, lane);
  }

  __device__ __forceinline__ void leave(int stage) const {
    __syncwarp();
    if (EMPTY_ARRIVALS == 32 || ptx::elect_one()) ptx::barrier_arrive(loader.empty(stage));
  }
  __device__ __forceinline__ void advance() {
    if (++stage == C::STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }

  // This warp's quarter of the scores of a tile.
  __device__ __forceinline__ void score(const query_fragments<C>& query, int buffer, unsigned lane, bool all_granules) {
    constexpr int AHEAD = C::NH == 3 ? 3 : 2;
    constexpr int STEPS = C::QK_M * K_STEPS;
    const uint32_t keys = loader.stage_address(stage) + slice * K_STEPS * 32 + lane % 16 * ROW_PITCH + lane / 16 * 16;
    uint32_t a[AHEAD + 1][4];
    const auto load = [&](int i) {
      if (i < STEPS) ptx::ldmatrix_x4(a[i % (AHEAD + 1)], keys + i / K_STEPS * 16 * ROW_PITCH + i % K_STEPS * 32);
    };
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) load(i);
    float acc[C::NH][4] = {};
#pragma unroll
    for (int i = 0; i < STEPS; ++i) {
      const int m = i / K_STEPS;
      const int step = i % K_STEPS;
      load(i + AHEAD);
      ptx::schedule_fence(args.batch == 0);
#pragma unroll
      for (int n = 0; n < C::NH; ++n) {
        if (C::NH == 3 && n == 2) // may have no row
          ptx::mma_if(all_granules, acc[n], a[i % (AHEAD + 1)], query[n][step][0], query[n][step][1]);
        else
          ptx::mma(acc[n], a[i % (AHEAD + 1)], query[n][step][0], query[n][step][1]);
      }
      if (step + 1 < K_STEPS) continue;
#pragma unroll
      for (int n = 0; n < C::NH; ++n) {
        ptx::store_shared_4(outbox(n, buffer) + lane * 16 + m * FRAGMENT, acc[n]);
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[n][e] = 0;
      }
    }
  }

  // The scores of this warp's granule: the sum of what all four warps found, always in the same order.
  __device__ __forceinline__ void collect(granule_scores<C>& s, int buffer, unsigned lane) const {
#pragma unroll
    for (int m = 0; m < C::QK_M; ++m) ptx::load_shared_4(s[m], own_box() + lane * 16 + m * FRAGMENT);
#pragma unroll
    for (int j = 0; j < K_SLICES - 1; ++j)
#pragma unroll
      for (int m = 0; m < C::QK_M; ++m) {
        float v[4];
        ptx::load_shared_4(v, inbox(buffer) + lane * 16 + (j * C::QK_M + m) * FRAGMENT);
#pragma unroll
        for (int e = 0; e < 4; ++e) s[m][e] += v[e];
      }
  }

  // Soft cap and masks. Returns what the scores must still be multiplied with.
  __device__ __forceinline__ float restrict_scores(granule_scores<C>& s, int token, const tile_cursor& at,
                                                   unsigned lane) const {
    if (args.cap > 0)
#pragma unroll
      for (int m = 0; m < C::QK_M; ++m)
#pragma unroll
        for (int e = 0; e < 4; ++e) s[m][e] = soft_cap(s[m][e] * args.scale, args.cap);
    if (token + C::TOK > at.prefix) {
      const tile_span span{token, at.prefix, at.total};
      const uint64_t* words = memory.row_mask() + half * C::HALF_ROWS + (owner() ? slice : 0) * 8 + lane % 4 * 2;
#pragma unroll
      for (int m = 0; m < C::QK_M; ++m)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (!visible(token + m * 16 + e / 2 * 8 + lane / 4, span, words[e % 2])) s[m][e] = -INFINITY;
    }
    return args.cap > 0 ? LOG2_E : args.scale * LOG2_E;
  }

  // Number of the last tile at which a row of this half had to be rescaled, by buffer.
  __device__ __forceinline__ int* grew(int buffer) const { return memory.grew() + buffer * 2 + half; }

  // Scores of tile k to probabilities, in shared memory.
  template <bool FRESH>
  __device__ __forceinline__ void softmax(granule_scores<C>& s, float c, int buffer, int k, unsigned lane) const {
    row_pair_state state = make_float4(NO_MAXIMUM, 0, NO_MAXIMUM, 0);
    row_pair_state* kept = memory.template states<row_pair_state>() + (half * K_SLICES + slice) * 32 + lane;
    if (!FRESH) state = *kept;
    float top[2] = {s[0][0], s[0][1]};
#pragma unroll
    for (int m = 0; m < C::QK_M; ++m)
#pragma unroll
      for (int e = 0; e < 4; ++e) top[e % 2] = fmaxf(top[e % 2], s[m][e]);
#pragma unroll
    for (int offset = 4; offset < 32; offset *= 2)
#pragma unroll
      for (int r = 0; r < 2; ++r) top[r] = fmaxf(top[r], __shfl_xor_sync(0xffffffffu, top[r], offset));
    const float reference[2] = {top[0] * c > state.x + MAXIMUM_SLACK ? top[0] * c : state.x,
                                top[1] * c > state.z + MAXIMUM_SLACK ? top[1] * c : state.z};
    float sum[2] = {0, 0};
    uint32_t packed[4];
#pragma unroll
    for (int m = 0; m < C::QK_M; ++m)
#pragma unroll
      for (int e = 0; e < 4; e += 2) {
        const float p0 = ptx::exp2_fast(fmaf(s[m][e], c, -reference[0]));
        const float p1 = ptx::exp2_fast(fmaf(s[m][e + 1], c, -reference[1]));
        sum[0] += p0;
        sum[1] += p1;
        packed[m * 2 + e / 2] = ptx::pack_bf16(p0, p1);
      }
    // Nothing has been accumulated before the first tile.
    const float2 f = FRESH ? make_float2(1, 1)
                           : make_float2(ptx::exp2_fast(state.x - reference[0]), ptx::exp2_fast(state.z - reference[1]));
    *kept = make_float4(reference[0], FRESH ? sum[0] : fmaf(state.y, f.x, sum[0]), reference[1],
                        FRESH ? sum[1] : fmaf(state.w, f.y, sum[1]));
    if (owner()) {
      const int row = slice * 8;
      ptx::stmatrix_x4_trans(probabilities(buffer) + (row + lane % 8) * C::P_PITCH * 2 + lane / 8 * 16, packed);
      if (!FRESH && lane < 4) *reinterpret_cast<float2*>(factors(buffer) + row + lane * 2) = f;
    }
    if (!FRESH && owner() && (f.x != 1.0f || f.y != 1.0f)) *grew(buffer) = k;
  }

  __device__ __forceinline__ void first_tile(const query_fragments<C>& query, int token, const tile_cursor& at,
                                             bool all_granules) {
    granule_scores<C> s;
    ptx::barrier_wait(loader.full(stage), parity);
    score(query, 0, lane, all_granules);
    ptx::sync_threads(HALF_BARRIER + half, THREADS / 2);
    collect(s, 0, lane);
    const float c = restrict_scores(s, token, at, lane);
    softmax<true>(s, c, 0, 0, lane);
  }

  // Tile k, k > 0, of a run, and the values of the tile before it.
  __device__ __forceinline__ void tile(const query_fragments<C>& query, accumulators<C>& acc, int token,
                                       const tile_cursor& at, int k, bool all_granules) {
    const int before = stage;
    advance();
    const int buffer = k & 1;
    const unsigned l = ptx::lane_now();
    ptx::barrier_wait(loader.full(stage), parity);
    score(query, buffer, l, all_granules);
    value_product<C> product;
    product.begin(loader.stage_address(before), slice, l);
    ptx::sync_threads(HALF_BARRIER + half, THREADS / 2);
    if (*grew(buffer ^ 1) == k - 1) rescale<C>(acc, factors(buffer ^ 1), l);
    product.template add<0>(acc, probabilities(buffer ^ 1), l, all_granules);
    granule_scores<C> s;
    collect(s, buffer, l);
    const float c = restrict_scores(s, token, at, l);
    softmax<false>(s, c, buffer, k, l);
    product.template add<1>(acc, probabilities(buffer ^ 1), l, all_granules);
    leave(before);
  }

  // The values of tile k, the last of a run.
  __device__ __forceinline__ void last_values(accumulators<C>& acc, int k) {
    value_product<C> product;
    product.begin(loader.stage_address(stage), slice, lane);
    ptx::sync_threads(HALF_BARRIER + half, THREADS / 2);
    if (*grew(k & 1) == k) rescale<C>(acc, factors(k & 1), lane);
    product.add_all(acc, probabilities(k & 1), lane);
    leave(stage);
    advance();
  }

  // Lets n tiles pass: this half has no row in their request.
  __device__ __forceinline__ void pass(int n) {
    for (int k = 0; k < n; ++k) {
      ptx::barrier_wait(loader.full(stage), parity);
      leave(stage);
      advance();
    }
  }

  __device__ __forceinline__ void flush_rows(float* ml) const {
    if (!owner()) return;
    const row_pair_state state = memory.template states<row_pair_state>()[(half * K_SLICES + slice) * 32 + lane];
    float sum[2] = {state.y, state.w};
#pragma unroll
    for (int offset = 4; offset < 32; offset *= 2)
#pragma unroll
      for (int r = 0; r < 2; ++r) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], offset);
    if (lane < 4)
      reinterpret_cast<float4*>(ml)[half * C::HALF_ROWS / 2 + slice * 4 + lane] =
          make_float4(state.x, sum[0], state.z, sum[1]);
  }

  // A run of tiles of one request: n of them, the first one number `from` of the block.
  __device__ __forceinline__ void run(const tile_cursor& at, int from, int n) {
    const row_run rows = half_rows<C>(args, group, half);
    if (!has_rows(rows, table.draft[at.request] * args.heads)) return pass(n);
    query_fragments<C> query;
    ptx::sync_threads(HALF_BARRIER + half, THREADS / 2); // nobody reads masks or probabilities of the run before
    if (slice == 0 && lane < 2) *grew(lane) = -1;
    load_request(query, at, rows);
    ptx::sync_threads(HALF_BARRIER + half, THREADS / 2);
    const bool all_granules = rows.count == C::HALF_ROWS;
    accumulators<C> acc = {};
    int token = (loader.first + from - at.begin) * C::TOK;
    first_tile(query, token, at, all_granules);
    for (int k = 1; k < n; ++k) {
      token += C::TOK;
      tile(query, acc, token, at, k, all_granules);
    }
    last_values(acc, n - 1);
    const int slot = args.splits > 0 ? unit : partial_slot(unit, at.request);
    const int64_t place = int64_t{slot} * args.groups + group;
    flush_values<C, BF16>(acc, args, place, slice, half, lane);
    flush_rows(args.partial_ml + place * C::ROWS * 2);
  }
};

} // namespace verify_mla
